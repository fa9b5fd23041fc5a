// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64 over one member's own tensors. Knows no strides, tiles or strategies, and
// works the output's size out by itself.
#include "host/conv/conv_reference.hpp"

#include <cmath>

namespace wide::catalog {

namespace {

/// Element [outer, channel, row, column] of a dense tensor in either order.
size_t index_of(ChannelLayout layout, int64_t channels, int64_t height, int64_t width,
                int64_t outer, int64_t channel, int64_t row, int64_t column) {
  const int64_t index = layout == ChannelLayout::channels_first
                            ? ((outer * channels + channel) * height + row) * width + column
                            : ((outer * height + row) * width + column) * channels + channel;
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
  ConvSum sum;
  for (int64_t c = 0; c < in; ++c) {
    for (int64_t kh = 0; kh < p.kernel.height; ++kh) {
      const int64_t row = at.row * p.stride.height - p.padding.height + kh * p.dilation.height;
      for (int64_t kw = 0; kw < p.kernel.width; ++kw) {
        const int64_t column = at.column * p.stride.width - p.padding.width + kw * p.dilation.width;
        const bool is_padding =
            row < 0 || row >= p.input.height || column < 0 || column >= p.input.width;
        const double x =
            is_padding
                ? 0
                : operands.x[index_of(p.x_layout.value_or(p.layout), p.in_channels, p.input.height,
                                      p.input.width, at.batch, first_channel + c, row, column)];
        const double product = x * operands.weight[index_of(p.layout, in, p.kernel.height,
                                                            p.kernel.width, at.channel, c, kh, kw)];
        sum.value += product;
        sum.magnitude += std::fabs(product);
      }
    }
  }
  const auto add = [&](double value) {
    sum.value += value;
    sum.magnitude += std::fabs(value);
  };
  if (!operands.bias.empty()) add(operands.bias[static_cast<size_t>(at.channel)]);
  if (!operands.residual.empty()) {
    const int64_t height = output_extent(p.input.height, p.kernel.height, p.stride.height,
                                         p.padding.height, p.dilation.height);
    const int64_t width = output_extent(p.input.width, p.kernel.width, p.stride.width,
                                        p.padding.width, p.dilation.width);
    sum.residual = operands.residual[index_of(p.layout, p.out_channels, height, width, at.batch,
                                              at.channel, at.row, at.column)];
    if (p.epilogue.residual == Residual::before_activation) add(sum.residual);
  }
  return sum;
}

}  // namespace wide::catalog
