// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Convolution as a matrix product on warp-level matrix instructions (mma.sync m16n8), without ever
// writing the matrix of x: each stage of the ring gathers the terms of its pixels.
//
// One block computes one tile, pixels by output channels, of one group of one member; the grid is
// one-dimensional over (member, group, pixels, channels), so that blocks that read the same pixels
// are neighbours. A stage has 128 bytes of terms of each pixel and of each row of the weight;
// tiles, their swizzle, fragments and sums are linear_mma.cuh's. The order of terms is always the
// weight's: a sum's bits depend on neither tile nor form nor strides.
//
//   vector   A = pixels, B = weights        both by cp.async, stages - 1 in flight
//   gather   A = weights, B = pixels        pixels through registers, issued a quarter of a stage
//                                           ahead of the products that cover them
#pragma once

#include "kernels/arch/cp_async.cuh"
#include "kernels/arch/grid.cuh"
#include "kernels/common/shared_bytes.hpp"
#include "kernels/conv/conv_implicit_gemm_store.cuh"
#include "kernels/conv/conv_implicit_gemm_tile.hpp"
#include "kernels/linear/linear_mma.cuh"

namespace wide::kernels {

/// Rows and columns of the product are A's and B's.
constexpr MmaPolicy policy_of(ConvGemmForm form, ConvGemmTile tile) {
  const bool is_vector = form == ConvGemmForm::vector;
  switch (tile) {
    case ConvGemmTile::p128c32:  // 60 KiB, 32 x 32 a warp
      return is_vector ? MmaPolicy{false, 128, 32, 4, 1, 1, 3, 3}
                       : MmaPolicy{false, 32, 128, 1, 4, 1, 3, 3};
    case ConvGemmTile::p64c64:  // 64 KiB, 32 x 32 a warp
      return {false, 64, 64, 2, 2, 1, 4, 3};
    case ConvGemmTile::p64c128:  // 72 KiB, 64 x 32 a warp
      return {false, 128, 64, 2, 2, 1, 3, 2};
    case ConvGemmTile::p128c128:  // 96 KiB, 64 x 32 a warp; some devices have 99 for a block
      return {false, 128, 128, 2, 4, 1, 3, 2};
  }
  return {};
}

/// A kernel's shared memory: the ring, which becomes the sums; the pixels' places in y; and, for
/// the form `gather`, the table of terms.
template <class T, int kAxes, ConvGemmForm form, ConvGemmTile tile>
struct ConvGemmShared {
  static constexpr MmaPolicy policy = policy_of(form, tile);
  static constexpr int kPixels = static_cast<int>(tile_pixels(tile));
  static constexpr int kOutputs = policy.shared_bytes();
  static constexpr int kTable = kOutputs + static_cast<int>(sizeof(ConvOutputPlaces<kPixels>));
  static constexpr int kBytes =
      kTable + (form == ConvGemmForm::gather
                    ? ConvGather<T, kAxes, kPixels, policy.threads()>::kTableBytes
                    : 0);
};

/// A block's position in the problem.
struct ConvGemmBlock {
  int64_t member, first_pixel;
  int32_t group, first_channel;  ///< of the group's
  int num_pixels, num_channels;
};

template <ConvGemmTile tile>
__device__ inline ConvGemmBlock locate_block(const ConvGemmParams& params, uint32_t tiles_p,
                                             uint32_t tiles_c) {
  constexpr int64_t pixels = tile_pixels(tile), channels = tile_channels(tile);
  const uint32_t of_pixels = blockIdx.x / tiles_c, of_group = of_pixels / tiles_p;
  const auto groups = static_cast<uint32_t>(params.conv.groups);
  ConvGemmBlock block;
  block.member = of_group / groups;
  block.group = static_cast<int32_t>(of_group % groups);
  block.first_pixel = of_pixels % tiles_p * pixels;
  block.first_channel = static_cast<int32_t>(blockIdx.x % tiles_c * channels);
  block.num_pixels = static_cast<int>(min(params.num_pixels - block.first_pixel, pixels));
  block.num_channels =
      min(params.conv.out_per_group - block.first_channel, static_cast<int>(channels));
  return block;
}

template <class T>
__device__ inline const T* pixels_of(const ConvParams& conv, const ConvGemmBlock& block) {
  return static_cast<const T*>(conv.x) + block.member * conv.x_strides.member +
         int64_t{block.group} * conv.in_per_group * conv.x_strides.channel;
}

template <class T>
__device__ inline Source<T> weights_of(const ConvGemmParams& params, const ConvGemmBlock& block) {
  const ConvWeightStrides& strides = params.conv.weight_strides;
  const int64_t channel = int64_t{block.group} * params.conv.out_per_group + block.first_channel;
  return {static_cast<const T*>(params.conv.weight) + block.member * strides.member +
              channel * strides.out_channel,
          strides.out_channel, block.num_channels, params.weight_is_aligned};
}

template <class T, int kPixels>
__device__ inline ConvOutput<T, kPixels> output_of(const ConvParams& conv,
                                                   const ConvGemmBlock& block,
                                                   const ConvOutputPlaces<kPixels>* places) {
  const int64_t channel = int64_t{block.group} * conv.out_per_group + block.first_channel;
  const auto at = [&](const void* base, const ChannelStrides& strides) {
    return static_cast<const T*>(base) + block.member * strides.member + channel * strides.channel;
  };
  ConvOutput<T, kPixels> to;
  to.y = const_cast<T*>(at(conv.y, conv.y_strides));
  to.bias = conv.bias == nullptr ? nullptr
                                 : static_cast<const T*>(conv.bias) +
                                       block.member * conv.bias_member_stride + channel;
  to.residual = conv.residual == nullptr ? nullptr : at(conv.residual, conv.residual_strides);
  to.places = places;
  to.num_pixels = block.num_pixels, to.num_channels = block.num_channels;
  return to;
}

/// Two chunks of a stage: one instruction's terms.
template <class Math, MmaPolicy policy>
__device__ inline void multiply_pair(const char* stage, const MmaWarp& warp, int pair,
                                     float (&sums)[policy.blocks_a()][policy.blocks_b()][4]) {
  MmaFragment<4> a[policy.blocks_a()];
  MmaFragment<2> b[policy.blocks_b()];
#pragma unroll
  for (int i = 0; i < policy.blocks_a(); ++i) {
    arch::ldmatrix(a[i].high, a_row(stage, warp.first_a + 16 * i, 2 * pair, warp.lane));
    Math::prepare(a[i]);
  }
  load_b<Math, policy>(stage + policy.a_bytes(), warp, 2 * pair, b);
#pragma unroll
  for (int i = 0; i < policy.blocks_a(); ++i) {
#pragma unroll
    for (int j = 0; j < policy.blocks_b(); ++j) Math::multiply(sums[i][j], a[i], b[j]);
  }
}

/// Adds up all terms of the tile. In both forms the barrier of a step makes its stage visible and
/// ensures that the stage that is filled next is no longer read.
template <class Math, int kAxes, ConvGemmTile tile>
__device__ inline void add_up_vectors(
    const ConvGemmParams& params, const ConvGemmBlock& block, char* shared, const MmaWarp& warp,
    float (&sums)[policy_of(ConvGemmForm::vector, tile).blocks_a()]
                 [policy_of(ConvGemmForm::vector, tile).blocks_b()][4]) {
  using T = typename Math::Element;
  constexpr MmaPolicy policy = policy_of(ConvGemmForm::vector, tile);
  constexpr int kTerms = kRowBytes / static_cast<int>(sizeof(T)), kPairs = kChunks / 2;
  // Each pixel is located once, in the stage that is filled last, before a barrier.
  auto* pixels =
      reinterpret_cast<ConvPixel<kAxes>*>(shared + (policy.stages - 1) * policy.stage_bytes());
  if (const auto thread = static_cast<int>(threadIdx.x); thread < policy.tile_a) {
    pixels[thread] = locate_pixel<kAxes>(params, block.first_pixel + thread);
  }
  __syncthreads();
  ConvVectors<T, kAxes, policy.tile_a, policy.tile_b, policy.threads()> operands(
      params, pixels_of<T>(params.conv, block), pixels, weights_of<T>(params, block));
  const int32_t num_steps = (params.num_terms - 1) / kTerms + 1;
  const auto load_step = [&](int32_t step, int stage) {
    if (step < num_steps) operands.load(shared + stage * policy.stage_bytes());
    arch::cp_async_commit();  // empty groups keep the pending count
  };
#pragma unroll
  for (int stage = 0; stage < policy.stages - 1; ++stage) load_step(stage, stage);
  int stage = 0;
  for (int32_t step = 0; step < num_steps; ++step) {
    arch::cp_async_wait<policy.stages - 2>();
    __syncthreads();
    load_step(step + policy.stages - 1, stage == 0 ? policy.stages - 1 : stage - 1);
    const char* buffer = shared + stage * policy.stage_bytes();
    if (params.num_terms - step * kTerms >= kTerms) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair)
        multiply_pair<Math, policy>(buffer, warp, pair, sums);
    } else {  // skips all-zero pairs
      const int left = params.num_terms - step * kTerms;
#pragma unroll 1
      for (int pair = 0; pair * kTerms < left * kPairs; ++pair) {
        multiply_pair<Math, policy>(buffer, warp, pair, sums);
      }
    }
    stage = stage == policy.stages - 1 ? 0 : stage + 1;
  }
}

template <class Math, int kAxes, ConvGemmTile tile>
__device__ inline void add_up_gathered(
    const ConvGemmParams& params, const ConvGemmBlock& block, char* shared, const MmaWarp& warp,
    float (&sums)[policy_of(ConvGemmForm::gather, tile).blocks_a()]
                 [policy_of(ConvGemmForm::gather, tile).blocks_b()][4]) {
  using T = typename Math::Element;
  constexpr MmaPolicy policy = policy_of(ConvGemmForm::gather, tile);
  using Gather = ConvGather<T, kAxes, policy.tile_b, policy.threads()>;
  constexpr int kTerms = Gather::kTerms, kPairs = kChunks / 2;
  const Source<T> weights = weights_of<T>(params, block);
  Gather pixels(params, pixels_of<T>(params.conv, block), block.first_pixel,
                shared + ConvGemmShared<T, kAxes, ConvGemmForm::gather, tile>::kTable);
  const int32_t num_steps = (params.num_terms - 1) / kTerms + 1;
  const auto load_weights = [&](int32_t step, char* buffer) {
    if (step < num_steps && params.weight_is_contiguous) {
      load_tile<T, policy.tile_a, 1, policy.threads()>(buffer, weights, step * kTerms,
                                                       params.num_terms - step * kTerms);
    } else if (step < num_steps) {
      pixels.template load_weights<policy.tile_a>(buffer, weights, step);
    }
    arch::cp_async_commit();
  };
  typename Gather::Values values;
#pragma unroll 1
  for (int stage = 0; stage < policy.stages - 1; ++stage) {
    pixels.describe_next();
    __syncthreads();
    char* buffer = shared + stage * policy.stage_bytes();
    load_weights(stage, buffer);
#pragma unroll 1
    for (int pair = 0; pair < kPairs; ++pair) {
      pixels.fetch(stage, pair, values);
      pixels.put(buffer + policy.a_bytes(), pair, values);
    }
  }
  pixels.describe_next();
  int stage = 0;
  for (int32_t step = 0; step < num_steps; ++step) {
    arch::cp_async_wait<policy.stages - 2>();
    __syncthreads();
    const int32_t ahead = step + policy.stages - 1;
    char* next = shared + (stage == 0 ? policy.stages - 1 : stage - 1) * policy.stage_bytes();
    load_weights(ahead, next);
    pixels.describe_next();
    const char* buffer = shared + stage * policy.stage_bytes();
    const int left = params.num_terms - step * kTerms;
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      if (ahead < num_steps) pixels.fetch(ahead, pair, values);
      if (pair * (kTerms / kPairs) < left) multiply_pair<Math, policy>(buffer, warp, pair, sums);
      if (ahead < num_steps) pixels.put(next + policy.a_bytes(), pair, values);
    }
    stage = stage == policy.stages - 1 ? 0 : stage + 1;
  }
}

template <class Math, int kAxes, ConvGemmForm form, ConvGemmTile tile>
__global__ void __launch_bounds__(policy_of(form, tile).threads(),
                                  policy_of(form, tile).blocks_per_multiprocessor)
    conv_implicit_gemm(const __grid_constant__ ConvGemmParams params, uint32_t tiles_p,
                       uint32_t tiles_c) {
  using T = typename Math::Element;
  using Shared = ConvGemmShared<T, kAxes, form, tile>;
  constexpr MmaPolicy policy = policy_of(form, tile);
  static_assert(policy.threads() >= Shared::kPixels && Shared::kBytes <= kLeastSharedBytes);
  extern __shared__ __align__(128) char shared[];
  const ConvGemmBlock block = locate_block<tile>(params, tiles_p, tiles_c);
  auto* outputs = reinterpret_cast<ConvOutputPlaces<Shared::kPixels>*>(shared + Shared::kOutputs);
  if (const auto thread = static_cast<int>(threadIdx.x); thread < block.num_pixels) {
    outputs->template locate<kAxes>(params, thread, block.first_pixel + thread);
  }
  const MmaWarp warp = locate_warp<policy>();
  float sums[policy.blocks_a()][policy.blocks_b()][4] = {};
  arch::follow_grid();
  if constexpr (form == ConvGemmForm::vector) {
    add_up_vectors<Math, kAxes, tile>(params, block, shared, warp, sums);
  } else {
    add_up_gathered<Math, kAxes, tile>(params, block, shared, warp, sums);
  }

  // The sums replace the operands. Only empty groups are still pending.
  __syncthreads();
  auto* tile_sums = reinterpret_cast<float*>(shared);
  put_sums<policy>(tile_sums, warp, sums);
  __syncthreads();
  constexpr bool kColumnsAreChannels = form == ConvGemmForm::vector;
  const auto to = output_of<T>(params.conv, block, outputs);
  if (params.y_has_vectors) {
    store_vectors<kColumnsAreChannels, policy.tile_b, policy.pitch(), policy.threads()>(params, to,
                                                                                        tile_sums);
  } else if (!kColumnsAreChannels && params.y_has_channels) {
    store_channels<policy.tile_a, policy.tile_b, policy.pitch(), policy.threads()>(params, to,
                                                                                   tile_sums);
  } else {
    store_elements<kColumnsAreChannels, policy.tile_a, policy.tile_b, policy.pitch(),
                   policy.threads()>(params, to, tile_sums);
  }
}

}  // namespace wide::kernels
