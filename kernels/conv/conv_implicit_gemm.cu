// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv_implicit_gemm.cuh's tiles, and what their parameters follow from.
#include "kernels/conv/conv_implicit_gemm.hpp"

#include <limits>
#include <type_traits>

#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/conv/conv_implicit_gemm.cuh"

namespace wide::kernels {

namespace {

/// Digits of a stage's number of terms, so that kernels advance without a division.
void set_axes(ConvGemmParams& params, int32_t terms_of_stage) {
  const ConvParams& conv = params.conv;
  const ChannelStrides& x = conv.x_strides;
  const ConvWeightStrides& weight = conv.weight_strides;
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  const ConvTermAxis channel{conv.in_per_group,         0, narrow(x.channel),
                             narrow(weight.in_channel), 0, 0};
  const ConvTermAxis row{
      conv.kernel.height,   0, narrow(conv.dilation.height * x.row), narrow(weight.row),
      conv.dilation.height, 0};
  const ConvTermAxis column{conv.kernel.width,     0, narrow(conv.dilation.width * x.column),
                            narrow(weight.column), 0, conv.dilation.width};
  const bool is_channels_last = weight.in_channel == 1 && conv.in_per_group > 1;
  const ConvTermAxis order[3] = {is_channels_last ? channel : column,
                                 is_channels_last ? column : row, is_channels_last ? row : channel};
  int32_t rest = terms_of_stage;
  for (int i = 0; i < 3; ++i) {
    params.axes[i] = order[i];
    params.axes[i].per_stage = i < 2 ? rest % order[i].count : rest;
    rest /= order[i].count;
  }
  params.num_terms = conv.in_per_group * conv.kernel.height * conv.kernel.width;
  int32_t contiguous = 1;
  params.weight_is_contiguous = true;
  for (const ConvTermAxis& axis : params.axes) {
    if (axis.count > 1 && axis.weight != contiguous) params.weight_is_contiguous = false;
    contiguous *= axis.count;
  }
}

/// Whether the address and all strides that bring one to a vector are whole vectors.
bool is_whole(const void* pointer, const ChannelStrides& strides, int64_t vector, int64_t bytes) {
  return is_aligned(pointer, strides.row, strides.member, vector, bytes) &&
         strides.batch % vector == 0;
}

/// Channels, all of a group, which terms then have to count first: 16 bytes at a time.
bool has_vectors(const ConvGemmParams& params, int64_t bytes) {
  const ConvParams& conv = params.conv;
  const int64_t vector = 16 / bytes;
  return conv.x_strides.channel == 1 && conv.in_per_group % vector == 0 && params.axes[0].x == 1 &&
         params.weight_is_contiguous && params.weight_is_aligned &&
         conv.x_strides.column % vector == 0 && is_whole(conv.x, conv.x_strides, vector, bytes);
}

constexpr int64_t kGroup = 4;

/// Whether four channels of a pixel, from a multiple of four on, may be moved at a time.
bool has_channel_vectors(const ConvParams& conv, const void* pointer, const ChannelStrides& strides,
                         int64_t bytes) {
  return is_whole(pointer, strides, kGroup, bytes) && strides.channel == 1 &&
         strides.column % kGroup == 0 && (conv.groups == 1 || conv.out_per_group % kGroup == 0);
}

/// Likewise four pixels of a channel, which may not end a row of y, or a batch row, in their midst.
bool has_pixel_vectors(const ConvParams& conv, const void* pointer, const ChannelStrides& strides,
                       int64_t bytes) {
  if (!is_whole(pointer, strides, kGroup, bytes)) return false;
  const bool has_one_run = strides.row == conv.output.width;
  const int64_t run =
      has_one_run ? int64_t{conv.output.height} * conv.output.width : int64_t{conv.output.width};
  return strides.column == 1 && strides.channel % kGroup == 0 && run % kGroup == 0;
}

ConvGemmParams gemm_params(const ConvParams& conv, int64_t bytes) {
  ConvGemmParams params{};
  params.conv = conv;
  set_axes(params, static_cast<int32_t>(kRowBytes / bytes));
  const int64_t positions = int64_t{conv.output.height} * conv.output.width;
  params.num_pixels = conv.batch * positions;
  params.positions = Divisor(positions);
  params.columns = Divisor(conv.output.width);
  params.weight_is_aligned = is_aligned(conv.weight, conv.weight_strides.out_channel,
                                        conv.weight_strides.member, 16 / bytes, bytes);
  return params;
}

void set_output_vectors(ConvGemmParams& params, ConvGemmForm form, int64_t bytes) {
  const ConvParams& conv = params.conv;
  const bool has_pixels =
      form == ConvGemmForm::gather && has_pixel_vectors(conv, conv.y, conv.y_strides, bytes);
  const bool has_channels = !has_pixels && has_channel_vectors(conv, conv.y, conv.y_strides, bytes);
  params.y_has_vectors = form == ConvGemmForm::vector ? has_channels : has_pixels;
  params.y_has_channels = form == ConvGemmForm::gather && has_channels;
  const auto has = has_pixels ? has_pixel_vectors : has_channel_vectors;
  params.residual_is_aligned = has(conv, conv.residual, conv.residual_strides, bytes);
  // A group's first channel is y's, which has to be a multiple of four all the same.
  params.bias_is_aligned = is_aligned(conv.bias, 0, conv.bias_member_stride, 4, bytes);
}

template <class Math, ConvGemmForm form, ConvGemmTile tile>
cudaError_t launch(const ConvGemmParams& params, cudaStream_t stream) {
  using Shared = ConvGemmShared<typename Math::Element, form, tile>;
  constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
  const ConvParams& conv = params.conv;
  const int64_t tiles_p = (params.num_pixels - 1) / tile_pixels(tile) + 1;
  const int64_t tiles_c = (conv.out_per_group - 1) / tile_channels(tile) + 1;
  // Each factor is checked before it is used, so that no product can overflow.
  if (tiles_p > kMaxBlocks / tiles_c || conv.groups > kMaxBlocks / (tiles_p * tiles_c) ||
      conv.num_members > kMaxBlocks / (tiles_p * tiles_c * conv.groups)) {
    return cudaErrorInvalidConfiguration;
  }
  const auto kernel = conv_implicit_gemm<Math, form, tile>;
  if (const cudaError_t status = allow_shared_bytes(kernel, Shared::kBytes);
      status != cudaSuccess) {
    return status;
  }
  const auto blocks = static_cast<unsigned>(tiles_p * tiles_c * conv.groups * conv.num_members);
  return launch_kernel(kernel, blocks, Shared::policy.threads(), Shared::kBytes, stream, params,
                       static_cast<uint32_t>(tiles_p), static_cast<uint32_t>(tiles_c));
}

template <class Math, ConvGemmForm form>
cudaError_t launch(const ConvGemmParams& params, ConvGemmTile tile, cudaStream_t stream) {
  switch (tile) {
    case ConvGemmTile::p128c32:
      return launch<Math, form, ConvGemmTile::p128c32>(params, stream);
    case ConvGemmTile::p64c64:
      return launch<Math, form, ConvGemmTile::p64c64>(params, stream);
    case ConvGemmTile::p64c128:
      if constexpr (form == ConvGemmForm::gather) {
        return launch<Math, form, ConvGemmTile::p64c128>(params, stream);
      }
      return cudaErrorInvalidValue;
    case ConvGemmTile::p128c128:
      // The registers of 32-bit operands do not fit beside its sums.
      if constexpr (form == ConvGemmForm::vector && sizeof(typename Math::Element) == 2) {
        return launch<Math, form, ConvGemmTile::p128c128>(params, stream);
      }
      return cudaErrorInvalidValue;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_conv_implicit_gemm(const ConvParams& conv, Dtype dtype,
                                      const ConvGemmTiles& tiles, cudaStream_t stream) {
  if (conv.num_members == 0 || conv.batch == 0 || conv.out_channels == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    using Math = std::conditional_t<std::is_same_v<T, float>, MmaTf32, MmaHalf<T>>;
    ConvGemmParams params = gemm_params(conv, sizeof(T));
    const auto form = has_vectors(params, sizeof(T)) ? ConvGemmForm::vector : ConvGemmForm::gather;
    set_output_vectors(params, form, sizeof(T));
    return form == ConvGemmForm::vector
               ? launch<Math, ConvGemmForm::vector>(params, tiles.vector, stream)
               : launch<Math, ConvGemmForm::gather>(params, tiles.gather, stream);
  });
}

}  // namespace wide::kernels
