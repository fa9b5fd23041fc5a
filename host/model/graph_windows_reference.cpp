// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The reference's loops over windows and axes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "host/model/graph_reference.hpp"
#include "host/pooling/interpolate_reference.hpp"

namespace wide::catalog {

namespace {

size_t z(int64_t i) {
  return static_cast<size_t>(i);
}

}  // namespace

namespace {

/// One axis of positions: of x and y, and the window between them.
struct Along {
  int64_t in, out, kernel, stride, padding, dilation;

  /// The position of x that output `i` reads through a tap; -1 where it is padding.
  int64_t read(int64_t i, int64_t tap) const {
    const int64_t position = i * stride - padding + tap * dilation;
    return position < in ? position : -1;
  }
};

Along along(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t out = (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  return {in, out, kernel, stride, padding, dilation};
}

/// Where a convolution's values lie: one formula for both layouts.
struct Grid {
  int64_t channels, depth, height, width;
  bool is_last;
  int64_t column() const { return is_last ? channels : 1; }
  int64_t start(int64_t image, int64_t channel) const {
    const int64_t positions = depth * height * width;
    return image * channels * positions + (is_last ? channel : channel * positions);
  }
  int64_t row(int64_t plane, int64_t row) const {
    return (plane * height + row) * width * column();
  }
};

/// A convolution's axes; signals and images have some of one position.
struct ConvAxes {
  Along depth, rows, columns;
};

/// One weight's products with all its inputs, added to a channel of y: the innermost loop runs
/// along a row, for the sake of speed.
void add_products(const ConvAxes& axes, double weight, const double* x, const Grid& in,
                  const std::array<int64_t, 3>& tap, double* y, const Grid& out) {
  const Along& columns = axes.columns;
  const int64_t offset = tap[2] * columns.dilation - columns.padding;
  int64_t first = 0, end = out.width;
  while (first < end && first * columns.stride + offset < 0) ++first;
  while (end > first && (end - 1) * columns.stride + offset >= in.width) --end;
  const int64_t step = columns.stride * in.column();
  for (int64_t i = 0; i < out.depth * out.height; ++i) {
    const int64_t plane = axes.depth.read(i / out.height, tap[0]);
    const int64_t from = axes.rows.read(i % out.height, tap[1]);
    if (plane < 0 || from < 0) continue;
    const double* row = x + in.row(plane, from) + offset * in.column();
    double* to = y + out.row(i / out.height, i % out.height);
    for (int64_t j = first; j < end; ++j) to[j * out.column()] += weight * row[j * step];
  }
}

}  // namespace

Doubles conv_of(const ConvOp& op, const Doubles& x, const Doubles& w) {
  const size_t rank = x.shape.size();
  const bool is_last = op.layout == ChannelLayout::channels_last;
  const bool x_is_last = op.x_layout.value_or(op.layout) == ChannelLayout::channels_last;
  const size_t column = x_is_last ? rank - 2 : rank - 1;
  const auto kernel = [&](size_t from_last) { return w.shape[rank - 1 - from_last]; };
  constexpr Along kNone{1, 1, 1, 1, 0, 1};
  const ConvAxes axes{
      rank < 5 ? kNone
               : along(x.shape[column - 2], kernel(2), op.depth.stride, op.depth.padding,
                       op.depth.dilation),
      rank < 4 ? kNone
               : along(x.shape[column - 1], kernel(1), op.stride.height, op.padding.height,
                       op.dilation.height),
      along(x.shape[column], kernel(0), op.stride.width, op.padding.width, op.dilation.width)};
  const Grid in{x.shape[x_is_last ? rank - 1 : 1], axes.depth.in, axes.rows.in, axes.columns.in,
                x_is_last};
  const Grid out{w.shape[0], axes.depth.out, axes.rows.out, axes.columns.out, is_last};
  Doubles y{x.shape, {}};
  std::vector<int64_t> extents{out.depth, out.height, out.width};
  extents.erase(extents.begin(), extents.end() - static_cast<std::ptrdiff_t>(rank - 2));
  std::copy(extents.begin(), extents.end(), y.shape.begin() + (is_last ? 1 : 2));
  y.shape[is_last ? rank - 1 : 1] = out.channels;
  y.values.resize(z(x.shape[0] * out.channels * out.depth * out.height * out.width));
  const int64_t own = w.shape[1], out_per_group = out.channels / op.groups;
  const int64_t kh = axes.rows.kernel, kw = axes.columns.kernel, taps = axes.depth.kernel * kh * kw;
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t o = 0; o < out.channels; ++o)
      for (int64_t c = 0; c < own; ++c)
        for (int64_t tap = 0; tap < taps; ++tap)
          add_products(axes, w.values[z((o * own + c) * taps + tap)],
                       x.values.data() + in.start(b, o / out_per_group * own + c), in,
                       {tap / kw / kh, tap / kw % kh, tap % kw}, y.values.data() + out.start(b, o),
                       out);
  return y;
}

namespace {

/// An index of as many axes as there are extents, the last one fastest.
std::vector<int64_t> split_index(int64_t i, const std::vector<int64_t>& extents) {
  std::vector<int64_t> index(extents.size());
  for (size_t axis = extents.size(); axis-- > 0;) {
    index[axis] = i % extents[axis];
    i /= extents[axis];
  }
  return index;
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t all = 1;
  for (const int64_t extent : extents) all *= extent;
  return all;
}

}  // namespace

Doubles conv_transpose_of(const ConvTransposeOp& op, const Doubles& x, const Doubles& w) {
  struct Axis {
    int64_t stride, padding, dilation, output_padding;
  };
  std::vector<Axis> axes{
      {op.depth.stride, op.depth.padding, op.depth.dilation, op.depth_output_padding},
      {op.stride.height, op.padding.height, op.dilation.height, op.output_padding.height},
      {op.stride.width, op.padding.width, op.dilation.width, op.output_padding.width}};
  axes.erase(axes.begin(), axes.end() - static_cast<std::ptrdiff_t>(x.shape.size() - 2));
  const std::vector<int64_t> inputs(x.shape.begin() + 2, x.shape.end()),
      taps(w.shape.begin() + 2, w.shape.end());
  std::vector<int64_t> outputs;
  for (size_t a = 0; a < axes.size(); ++a) {
    outputs.push_back((inputs[a] - 1) * axes[a].stride - 2 * axes[a].padding +
                      axes[a].dilation * (taps[a] - 1) + 1 + axes[a].output_padding);
  }
  const int64_t own = w.shape[1], in = x.shape[1], channels = own * op.groups,
                per_group = in / op.groups;
  Doubles y{x.shape, {}};
  y.shape[1] = channels;
  std::copy(outputs.begin(), outputs.end(), y.shape.begin() + 2);
  const int64_t num_in = product(inputs), num_out = product(outputs), num_taps = product(taps);
  y.values.resize(z(x.shape[0] * channels * num_out));
  for (int64_t i = 0; i < num_in; ++i) {
    const std::vector<int64_t> position = split_index(i, inputs);
    for (int64_t tap = 0; tap < num_taps; ++tap) {
      const std::vector<int64_t> offset = split_index(tap, taps);
      int64_t to = 0;
      for (size_t a = 0; a < axes.size() && to >= 0; ++a) {
        const int64_t at =
            position[a] * axes[a].stride - axes[a].padding + offset[a] * axes[a].dilation;
        to = at < 0 || at >= outputs[a] ? -1 : to * outputs[a] + at;
      }
      if (to < 0) continue;
      for (int64_t b = 0; b < x.shape[0]; ++b)
        for (int64_t c = 0; c < in; ++c)
          for (int64_t o = 0; o < own; ++o)
            y.values[z((b * channels + c / per_group * own + o) * num_out + to)] +=
                x.values[z((b * in + c) * num_in + i)] *
                w.values[z((c * own + o) * num_taps + tap)];
    }
  }
  return y;
}

namespace {

/// f(op, x) with channels first; of x with channels last there and back.
template <class Op, class F>
Doubles with_channels_first(Op op, const Doubles& x, const F& f) {
  if (op.layout == ChannelLayout::channels_first) return f(op, x);
  op.layout = ChannelLayout::channels_first;
  const int rank = static_cast<int>(x.shape.size());
  std::vector<int64_t> to_first{0, rank - 1}, to_last{0};
  for (int axis = 1; axis < rank - 1; ++axis) {
    to_first.push_back(axis);
    to_last.push_back(axis + 1);
  }
  to_last.push_back(1);
  return transpose_of({Dims(to_last)}, f(op, transpose_of({Dims(to_first)}, x)));
}

/// [B, C, outputs..] without values.
Doubles shaped(int64_t batch, int64_t channels, const std::vector<int64_t>& outputs) {
  Doubles y{{batch, channels}, {}};
  y.shape.insert(y.shape.end(), outputs.begin(), outputs.end());
  return y;
}

Doubles space_of(const DepthToSpaceOp& op, const Doubles& x, const std::vector<int64_t>& outputs) {
  std::vector<int64_t> blocks{op.depth_block, op.block.height, op.block.width},
      first{op.depth_first, op.first.height, op.first.width};
  const auto unused = static_cast<std::ptrdiff_t>(5 - x.shape.size());
  blocks.erase(blocks.begin(), blocks.begin() + unused);
  first.erase(first.begin(), first.begin() + unused);
  const std::vector<int64_t> inputs(x.shape.begin() + 2, x.shape.end());
  const int64_t channels = x.shape[1] / product(blocks);
  const int64_t of_group = op.groups == 0 ? 1 : channels / op.groups;
  Doubles y = shaped(x.shape[0], channels, outputs);
  const int64_t planes = y.shape[0] * channels, num_out = product(outputs);
  y.values.resize(z(planes * num_out));
  for (int64_t i = 0; i < planes * num_out; ++i) {
    const std::vector<int64_t> position = split_index(i % num_out, outputs);
    int64_t phase = 0, from = 0;
    for (size_t a = 0; a < blocks.size(); ++a) {
      const int64_t at = position[a] + first[a];
      phase = phase * blocks[a] + at % blocks[a];
      from = from * inputs[a] + at / blocks[a];
    }
    const int64_t batch = i / num_out / channels, own = i / num_out % channels;
    const int64_t channel = (own / of_group * product(blocks) + phase) * of_group + own % of_group;
    y.values[z(i)] = x.values[z((batch * x.shape[1] + channel) * product(inputs) + from)];
  }
  return y;
}

Doubles upsampled(const UpsampleOp& op, const Doubles& x) {
  std::vector<int64_t> factors{op.depth_factor, op.factor.height, op.factor.width};
  factors.erase(factors.begin(), factors.begin() + static_cast<std::ptrdiff_t>(5 - x.shape.size()));
  const std::vector<int64_t> inputs(x.shape.begin() + 2, x.shape.end());
  std::vector<int64_t> outputs = inputs;
  for (size_t a = 0; a < outputs.size(); ++a) outputs[a] *= factors[a];
  Doubles y = shaped(x.shape[0], x.shape[1], outputs);
  const int64_t num_out = product(outputs);
  for (int64_t i = 0; i < y.shape[0] * y.shape[1] * num_out; ++i) {
    const std::vector<int64_t> position = split_index(i % num_out, outputs);
    int64_t from = 0;
    for (size_t a = 0; a < factors.size(); ++a) from = from * inputs[a] + position[a] / factors[a];
    y.values.push_back(x.values[z(i / num_out * product(inputs) + from)]);
  }
  return y;
}

/// Positions have weights that fall to 0 one position away from where an output lies.
Doubles interpolated(const InterpolateOp& op, const Doubles& x,
                     const std::vector<int64_t>& outputs) {
  Doubles y = shaped(x.shape[0], x.shape[1], outputs);
  const bool is_signal = x.shape.size() == 3;
  const int64_t height = is_signal ? 1 : x.shape[2], width = x.shape.back();
  const int64_t out_height = is_signal ? 1 : outputs[0], out_width = outputs.back();
  const auto weight = [](double at, int64_t position) {
    return std::max(0.0, 1 - std::fabs(at - static_cast<double>(position)));
  };
  for (int64_t plane = 0; plane < y.shape[0] * y.shape[1]; ++plane)
    for (int64_t i = 0; i < out_height; ++i)
      for (int64_t j = 0; j < out_width; ++j) {
        const double down =
                         interpolate_position(op.coordinates, i, height, out_height, op.row_scale),
                     across =
                         interpolate_position(op.coordinates, j, width, out_width, op.column_scale);
        const auto top = static_cast<int64_t>(down), left = static_cast<int64_t>(across);
        double sum = 0;
        for (int64_t r = top; r < std::min(top + 2, height); ++r)
          for (int64_t c = left; c < std::min(left + 2, width); ++c) {
            const double w = weight(down, r) * weight(across, c);
            if (w > 0) sum += w * x.values[z((plane * height + r) * width + c)];
          }
        y.values.push_back(sum);
      }
  return y;
}

Doubles pooled(const PoolingOp& op, const Doubles& x, const std::vector<int64_t>& outputs) {
  const bool is_signal = x.shape.size() == 3;
  const int64_t planes = x.shape[0] * x.shape[1], width = x.shape.back();
  const int64_t height = is_signal ? 1 : x.shape[2];
  const int64_t oh = is_signal ? 1 : outputs[0], ow = outputs.back();
  Doubles y = shaped(x.shape[0], x.shape[1], outputs);
  const auto window = [&](int64_t i, int64_t n, int64_t num_outputs, const PoolingWindow& w,
                          double& divisor) {
    std::vector<int64_t> positions;
    if (op.mode == PoolingMode::adaptive_average) {
      for (int64_t p = i * n / num_outputs; p < ((i + 1) * n + num_outputs - 1) / num_outputs; ++p)
        positions.push_back(p);
      divisor = static_cast<double>(positions.size());
      return positions;
    }
    const int64_t start = i * (w.stride == 0 ? w.kernel : w.stride) - w.padding;
    int64_t padded = 0;
    for (int64_t t = 0; t < w.kernel; ++t) {
      const int64_t p = start + t * w.dilation;
      if (p >= 0 && p < n) positions.push_back(p);
      if (p < n + w.padding) ++padded;
    }
    divisor =
        static_cast<double>(op.counts_padding ? padded : static_cast<int64_t>(positions.size()));
    return positions;
  };
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t i = 0; i < oh; ++i)
      for (int64_t j = 0; j < ow; ++j) {
        double by_rows = 1, by_columns = 1, sum = 0;
        double most = -std::numeric_limits<double>::infinity();
        const std::vector<int64_t> rows_in =
            is_signal ? std::vector<int64_t>{0} : window(i, height, oh, op.rows, by_rows);
        for (const int64_t r : rows_in)
          for (const int64_t c : window(j, width, ow, op.columns, by_columns)) {
            const double v = x.values[z((plane * height + r) * width + c)];
            sum += v;
            most = std::max(most, v);
          }
        y.values.push_back(op.mode == PoolingMode::max ? most : sum / (by_rows * by_columns));
      }
  return y;
}

}  // namespace

Doubles depth_to_space_of(const DepthToSpaceOp& op, const Doubles& x,
                          const std::vector<int64_t>& outputs) {
  return with_channels_first(
      op, x, [&](const auto& first, const Doubles& of) { return space_of(first, of, outputs); });
}
Doubles upsample_of(const UpsampleOp& op, const Doubles& x) {
  return with_channels_first(op, x, upsampled);
}
Doubles interpolate_of(const InterpolateOp& op, const Doubles& x,
                       const std::vector<int64_t>& outputs) {
  return with_channels_first(op, x, [&](const auto& first, const Doubles& of) {
    return interpolated(first, of, outputs);
  });
}
Doubles pooling_of(const PoolingOp& op, const Doubles& x, const std::vector<int64_t>& outputs) {
  return with_channels_first(
      op, x, [&](const auto& first, const Doubles& of) { return pooled(first, of, outputs); });
}

Doubles transpose_of(const TransposeOp& op, const Doubles& x) {
  Doubles y = x;
  for (size_t axis = 0; axis < y.shape.size(); ++axis)
    y.shape[axis] = x.shape[z(op.order[static_cast<int>(axis)])];
  std::vector<int64_t> index(y.shape.size(), 0);
  for (double& v : y.values) {
    int64_t from = 0;
    for (size_t axis = 0; axis < x.shape.size(); ++axis) {
      size_t where = 0;
      while (op.order[static_cast<int>(where)] != static_cast<int64_t>(axis)) ++where;
      from = from * x.shape[axis] + index[where];
    }
    v = x.values[z(from)];
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < y.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return y;
}

}  // namespace wide::catalog
