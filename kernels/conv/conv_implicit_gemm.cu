// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Derives the kernels' parameters; conv_implicit_gemm.cuh for images.
#include "kernels/conv/conv_implicit_gemm.hpp"

#include <array>

#include "kernels/conv/conv_implicit_gemm_launch.cuh"
#include "kernels/conv/conv_implicit_gemm_volumes.hpp"

namespace wide::kernels {

namespace {

/// Digits of a stage's number of terms, so that kernels advance without divisions.
void set_axes(ConvGemmParams& params, int32_t terms_of_stage) {
  const ConvParams& conv = params.conv;
  const ChannelStrides& x = conv.x_strides;
  const ConvWeightStrides& weight = conv.weight_strides;
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  ConvTermAxis channel{}, depth{}, row{}, column{};
  channel.count = conv.in_per_group;
  channel.x = narrow(x.channel), channel.weight = narrow(weight.in_channel);
  depth.count = conv.depth.kernel, depth.depth = conv.depth.dilation;
  depth.x = narrow(conv.depth.dilation * conv.depth.x), depth.weight = narrow(conv.depth.weight);
  row.count = conv.kernel.height, row.row = conv.dilation.height;
  row.x = narrow(conv.dilation.height * x.row), row.weight = narrow(weight.row);
  column.count = conv.kernel.width, column.column = conv.dilation.width;
  column.x = narrow(conv.dilation.width * x.column), column.weight = narrow(weight.column);
  const bool is_channels_last = weight.in_channel == 1 && conv.in_per_group > 1;
  // Images have no step along the depth: it is the last of four axes, which they ignore.
  std::array<ConvTermAxis, kVolumeAxes> order{column, row, channel, depth};
  if (is_channels_last) {
    order = {channel, column, row, depth};
  } else if (conv.depth.has_planes()) {
    order = {column, row, depth, channel};
  }
  const int num_axes = conv.depth.has_planes() ? kVolumeAxes : kImageAxes;
  int32_t rest = terms_of_stage, contiguous = 1;
  params.weight_is_contiguous = true;
  for (int i = 0; i < kVolumeAxes; ++i) {
    ConvTermAxis& axis = params.axes[i];
    axis = order[static_cast<size_t>(i)];
    axis.per_stage = i < num_axes - 1 ? rest % axis.count : rest;
    rest /= axis.count;
    if (axis.count > 1 && axis.weight != contiguous) params.weight_is_contiguous = false;
    contiguous *= axis.count;
  }
  params.num_terms = contiguous;
}

/// An operand's address, and the strides that have to be multiples of a vector.
struct Addresses {
  const void* pointer;
  const ChannelStrides& strides;
  int64_t depth_stride;

  bool are_whole(int64_t vector, int64_t bytes) const {
    return is_aligned(pointer, strides.row, strides.member, vector, bytes) &&
           strides.batch % vector == 0 && depth_stride % vector == 0;
  }
};

/// Whether a group's channels, which terms then have to count first, are read in 16 bytes.
bool has_vectors(const ConvGemmParams& params, int64_t bytes) {
  const ConvParams& conv = params.conv;
  const int64_t vector = 16 / bytes;
  return conv.x_strides.channel == 1 && conv.in_per_group % vector == 0 && params.axes[0].x == 1 &&
         params.weight_is_contiguous && params.weight_is_aligned &&
         conv.x_strides.column % vector == 0 &&
         Addresses{conv.x, conv.x_strides, conv.depth.x}.are_whole(vector, bytes);
}

constexpr int64_t kGroup = 4;

/// Whether four channels of a pixel, from a multiple of four on, may be moved at a time.
bool has_channel_vectors(const ConvParams& conv, const Addresses& of, int64_t bytes) {
  return of.are_whole(kGroup, bytes) && of.strides.channel == 1 &&
         of.strides.column % kGroup == 0 && (conv.groups == 1 || conv.out_per_group % kGroup == 0);
}

/// The same for four pixels of a channel, which may not straddle rows of y, or planes.
bool has_pixel_vectors(const ConvParams& conv, const Addresses& of, int64_t bytes) {
  if (!of.are_whole(kGroup, bytes)) return false;
  const bool has_one_run = of.strides.row == conv.output.width;
  const int64_t run =
      has_one_run ? int64_t{conv.output.height} * conv.output.width : int64_t{conv.output.width};
  return of.strides.column == 1 && of.strides.channel % kGroup == 0 && run % kGroup == 0;
}

ConvGemmParams gemm_params(const ConvParams& conv, int64_t bytes) {
  ConvGemmParams params{};
  params.conv = conv;
  set_axes(params, static_cast<int32_t>(kRowBytes / bytes));
  const int64_t positions = int64_t{conv.output.height} * conv.output.width;
  params.num_pixels = conv.batch * conv.depth.output * positions;
  params.planes = Divisor(conv.depth.output);
  params.positions = Divisor(positions);
  params.columns = Divisor(conv.output.width);
  params.weight_is_aligned = is_aligned(conv.weight, conv.weight_strides.out_channel,
                                        conv.weight_strides.member, 16 / bytes, bytes);
  return params;
}

void set_output_vectors(ConvGemmParams& params, ConvGemmForm form, int64_t bytes) {
  const ConvParams& conv = params.conv;
  const Addresses y{conv.y, conv.y_strides, conv.depth.y};
  const Addresses residual{conv.residual, conv.residual_strides, conv.depth.residual};
  const bool has_pixels = form == ConvGemmForm::gather && has_pixel_vectors(conv, y, bytes);
  const bool has_channels = !has_pixels && has_channel_vectors(conv, y, bytes);
  params.y_has_vectors = form == ConvGemmForm::vector ? has_channels : has_pixels;
  params.y_has_channels = form == ConvGemmForm::gather && has_channels;
  const auto has = has_pixels ? has_pixel_vectors : has_channel_vectors;
  params.residual_is_aligned = has(conv, residual, bytes);
  // A group's first channel in y has to be a multiple of four, too.
  params.bias_is_aligned = is_aligned(conv.bias, 0, conv.bias_member_stride, 4, bytes);
}

}  // namespace

cudaError_t launch_conv_implicit_gemm(const ConvParams& conv, Dtype dtype,
                                      const ConvGemmTiles& tiles, cudaStream_t stream) {
  if (conv.num_members == 0 || conv.batch == 0 || conv.out_channels == 0) return cudaSuccess;
  const int64_t bytes = dtype == Dtype::fp32 ? 4 : 2;
  ConvGemmParams params = gemm_params(conv, bytes);
  const auto form = has_vectors(params, bytes) ? ConvGemmForm::vector : ConvGemmForm::gather;
  set_output_vectors(params, form, bytes);
  const auto launch =
      conv.depth.has_planes() ? launch_conv_gemm_of_volumes : launch_conv_gemm<kImageAxes>;
  return launch(params, form, dtype, tiles, stream);
}

}  // namespace wide::kernels
