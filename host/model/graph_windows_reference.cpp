// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The reference's loops over windows and axes.
#include <algorithm>
#include <limits>
#include <vector>

#include "host/model/graph_reference.hpp"

namespace wide::catalog {

namespace {

size_t z(int64_t i) {
  return static_cast<size_t>(i);
}

}  // namespace

namespace {

/// Where a convolution's values lie: one formula for both layouts.
struct Grid {
  int64_t channels, height, width;
  bool is_last;
  int64_t row() const { return is_last ? width * channels : width; }
  int64_t column() const { return is_last ? channels : 1; }
  int64_t start(int64_t image, int64_t channel) const {
    return image * channels * height * width + (is_last ? channel : channel * height * width);
  }
};

/// One weight's products with all that it meets, added to a channel of y: the innermost loop runs
/// along a row, for networks take their time.
void add_products(const ConvOp& op, double weight, const double* x, const Grid& in, int64_t p,
                  int64_t q, double* y, const Grid& out, bool is_signal) {
  for (int64_t i = 0; i < out.height; ++i) {
    const int64_t from =
        is_signal ? 0 : i * op.stride.height - op.padding.height + p * op.dilation.height;
    if (from < 0 || from >= in.height) continue;
    const int64_t offset = q * op.dilation.width - op.padding.width;
    int64_t first = 0, end = out.width;
    while (first < end && first * op.stride.width + offset < 0) ++first;
    while (end > first && (end - 1) * op.stride.width + offset >= in.width) --end;
    const double* row = x + from * in.row() + offset * in.column();
    double* to = y + i * out.row();
    const int64_t step = op.stride.width * in.column();
    for (int64_t j = first; j < end; ++j) to[j * out.column()] += weight * row[j * step];
  }
}

}  // namespace

Doubles conv_of(const ConvOp& op, const Doubles& x, const Doubles& w) {
  const bool is_signal = x.shape.size() == 3, is_last = op.layout == ChannelLayout::channels_last;
  const bool x_is_last = op.x_layout.value_or(op.layout) == ChannelLayout::channels_last;
  const auto c_axis = [&](bool last) { return last ? x.shape.size() - 1 : size_t{1}; };
  const auto w_axis = [&](bool last) { return x.shape.size() - (last ? 2 : 1); };
  const Grid in{x.shape[c_axis(x_is_last)], is_signal ? 1 : x.shape[w_axis(x_is_last) - 1],
                x.shape[w_axis(x_is_last)], x_is_last};
  const int64_t own = w.shape[1], kw = w.shape.back(), kh = is_signal ? 1 : w.shape[2];
  const auto size = [](int64_t n, int64_t k, int64_t s, int64_t p, int64_t d) {
    return (n + 2 * p - d * (k - 1) - 1) / s + 1;
  };
  const Grid out{
      w.shape[0],
      is_signal ? 1 : size(in.height, kh, op.stride.height, op.padding.height, op.dilation.height),
      size(in.width, kw, op.stride.width, op.padding.width, op.dilation.width), is_last};
  Doubles y{x.shape, std::vector<double>(z(x.shape[0] * out.channels * out.height * out.width))};
  y.shape[c_axis(is_last)] = out.channels;
  y.shape[w_axis(is_last)] = out.width;
  if (!is_signal) y.shape[w_axis(is_last) - 1] = out.height;
  const int64_t out_per_group = out.channels / op.groups;
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t o = 0; o < out.channels; ++o)
      for (int64_t c = 0; c < own; ++c)
        for (int64_t p = 0; p < kh; ++p)
          for (int64_t q = 0; q < kw; ++q)
            add_products(op, w.values[z(((o * own + c) * kh + p) * kw + q)],
                         x.values.data() + in.start(b, o / out_per_group * own + c), in, p, q,
                         y.values.data() + out.start(b, o), out, is_signal);
  return y;
}

Doubles pooling_of(const PoolingOp& op, const Doubles& x, int64_t oh, int64_t ow) {
  if (op.layout == ChannelLayout::channels_last) {  // there and back
    const bool is_signal = x.shape.size() == 3;
    PoolingOp first = op;
    first.layout = ChannelLayout::channels_first;
    const Dims to_first = is_signal ? Dims{0, 2, 1} : Dims{0, 3, 1, 2};
    const Dims to_last = is_signal ? Dims{0, 2, 1} : Dims{0, 2, 3, 1};
    return transpose_of({to_last}, pooling_of(first, transpose_of({to_first}, x), oh, ow));
  }
  const bool is_signal = x.shape.size() == 3;
  const int64_t planes = x.shape[0] * x.shape[1], width = x.shape.back();
  const int64_t height = is_signal ? 1 : x.shape[2];
  Doubles y{x.shape, {}};
  y.shape.back() = ow;
  if (!is_signal) y.shape[2] = oh;
  const auto window = [&](int64_t i, int64_t n, int64_t outputs, const PoolingWindow& w,
                          double& divisor) {
    std::vector<int64_t> positions;
    if (op.mode == PoolingMode::adaptive_average) {
      for (int64_t p = i * n / outputs; p < ((i + 1) * n + outputs - 1) / outputs; ++p)
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
