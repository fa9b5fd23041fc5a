// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64 over one member's own tensors. Knows no strides, tiles or strategies, and
// computes the output's size itself.
#include "host/conv/conv_reference.hpp"

#include <cmath>

namespace wide::catalog {

namespace {

/// Extents of a dense tensor except the outermost.
struct Extents {
  int64_t channels, depth, height, width;
};

/// Element [outer, channel, plane, row, column] in either order.
size_t index_of(ChannelLayout layout, const Extents& of, int64_t outer, int64_t channel,
                int64_t plane, int64_t row, int64_t column) {
  const auto position = [&](int64_t first) {
    return ((first * of.depth + plane) * of.height + row) * of.width + column;
  };
  const int64_t index = layout == ChannelLayout::channels_first
                            ? position(outer * of.channels + channel)
                            : position(outer) * of.channels + channel;
  return static_cast<size_t>(index);
}

int64_t output_extent(int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                      int64_t dilation) {
  int64_t count = 0;
  const int64_t last = input + padding - 1;  // the rightmost position that the kernel may reach
  for (int64_t first = -padding; first + (kernel - 1) * dilation <= last; first += stride) ++count;
  return count;
}

}  // namespace

ConvSum conv_reference_sum(const ConvProblem& p, const ConvReferenceOperands& operands,
                           const ConvOutput& at) {
  const int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups;
  const int64_t first_channel = at.channel / out * in;
  const ConvDepth& d = p.depth;
  const Extents of_x{p.in_channels, d.input, p.input.height, p.input.width};
  const Extents of_weight{in, d.kernel, p.kernel.height, p.kernel.width};
  const auto is_within = [](int64_t position, int64_t extent) {
    return position >= 0 && position < extent;
  };
  ConvSum sum;
  const auto add_tap = [&](int64_t kd, int64_t kh, int64_t kw) {
    const int64_t plane = at.depth * d.stride - d.padding + kd * d.dilation;
    const int64_t row = at.row * p.stride.height - p.padding.height + kh * p.dilation.height;
    const int64_t column = at.column * p.stride.width - p.padding.width + kw * p.dilation.width;
    const bool is_padding = !is_within(plane, d.input) || !is_within(row, p.input.height) ||
                            !is_within(column, p.input.width);
    for (int64_t c = 0; c < in; ++c) {
      const double x = is_padding
                           ? 0
                           : operands.x[index_of(p.x_layout.value_or(p.layout), of_x, at.batch,
                                                 first_channel + c, plane, row, column)];
      const double product =
          x * operands.weight[index_of(p.layout, of_weight, at.channel, c, kd, kh, kw)];
      sum.value += product;
      sum.magnitude += std::fabs(product);
    }
  };
  for (int64_t kd = 0; kd < d.kernel; ++kd) {
    for (int64_t kh = 0; kh < p.kernel.height; ++kh) {
      for (int64_t kw = 0; kw < p.kernel.width; ++kw) add_tap(kd, kh, kw);
    }
  }
  const auto add = [&](double value) {
    sum.value += value;
    sum.magnitude += std::fabs(value);
  };
  if (!operands.bias.empty()) add(operands.bias[static_cast<size_t>(at.channel)]);
  if (!operands.residual.empty()) {
    const Extents of_y{p.out_channels,
                       output_extent(d.input, d.kernel, d.stride, d.padding, d.dilation),
                       output_extent(p.input.height, p.kernel.height, p.stride.height,
                                     p.padding.height, p.dilation.height),
                       output_extent(p.input.width, p.kernel.width, p.stride.width, p.padding.width,
                                     p.dilation.width)};
    sum.residual =
        operands
            .residual[index_of(p.layout, of_y, at.batch, at.channel, at.depth, at.row, at.column)];
    if (p.epilogue.residual == Residual::before_activation) add(sum.residual);
  }
  return sum;
}

}  // namespace wide::catalog
