// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[b, n, o, h, i, j] = activation(sum over c, r, p, q of weight[n, o, c, r, p, q] * x[b, n, group
// of o + c, h * stride - padding + r * dilation, i and j likewise] + bias[n, o] + residual), by
// fused multiply-adds in fp32, all members n in one launch.
//
// Plan: a block computes 128 positions of one plane, of up to 64 channels of one member and
// batch row, a warp of it eight channels, a lane four positions of each, in registers. Planes
// of the kernel are taken one after another. A few channels of x at a time are loaded into
// shared memory once, with the halo that the taps need, padding as zeros; a tap is then an
// offset into it. Meanwhile the chunk before is multiplied.
//
// Lanes have four neighbouring positions, so that the taps of a kernel's row are registers of one
// window of x, in whole vectors, and each weight is broadcast to a whole warp: for three taps two
// loads of x and six of weights feed 96 multiply-adds. Kernels without a window take taps one by
// one, and neighbouring lanes have neighbouring positions. Where groups are narrower than a warp's
// eight channels (depthwise), every channel reads its own x.
//
// Memory: the block's place, tables of where x and weights come from, then the chunks, in the end
// the sums and where they go to.
//
// Every output is summed by one thread in order of the kernel's planes, channels, then taps.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/conv/conv_direct.hpp"
#include "kernels/conv/conv_direct_multiply.cuh"
#include "kernels/conv/conv_direct_stage.cuh"
#include "kernels/conv/conv_direct_store.cuh"

namespace wide::kernels {

namespace {

/// Where the groups of a warp's channels begin; missing channels read the last one's.
template <int kPlanes>
__device__ void find_planes(const ConvParams& p, const DirectTile& tile, const DirectPlace& place,
                            int warp_channel, DirectOperands<kPlanes>& operands) {
  const int plane = tile.chunk * tile.plane;
  const int first = place.first_channel + warp_channel;
  const int last = place.num_channels - warp_channel - 1;
  int group = first / p.out_per_group, in_group = first - group * p.out_per_group;
#pragma unroll
  for (int o = 0; o < kPlanes; ++o) {
    operands.planes[o] = (group - place.first_group) * plane;
    if (o < last && ++in_group == p.out_per_group) in_group = 0, ++group;
  }
}

template <class T, bool kHasOwnInput>
__global__ void __launch_bounds__(kHasOwnInput ? kDirectThreads / 2 : kDirectThreads,
                                  kHasOwnInput ? 4 : 2)
    conv_direct(const __grid_constant__ ConvParams p, const __grid_constant__ DirectTile tile) {
  extern __shared__ __align__(16) unsigned char memory[];
  DirectPlace& place = *reinterpret_cast<DirectPlace*>(memory);
  auto* positions = reinterpret_cast<DirectSource*>(memory + kDirectPlaceBytes);
  DirectSource* weights = positions + tile.table_positions();
  auto* shared = reinterpret_cast<float*>(memory + kDirectPlaceBytes + tile.source_bytes());
  if (threadIdx.x == 0) place = direct_place(p, tile);
  __syncthreads();
  if (tile.has_table) find_positions(p, tile, place, positions);
  find_weights(p, tile, weights);
  const int warp_channel = static_cast<int>(threadIdx.x) / kDirectLanes * kDirectChannels;
  const auto input_floats = static_cast<int>(tile.input_floats());
  const auto chunk_floats = static_cast<int>(tile.chunk_floats());
  DirectOperands<kHasOwnInput ? kDirectChannels : 1> operands;
  find_planes(p, tile, place, warp_channel, operands);
  arch::follow_grid();
  DirectSums sums = {};
  DirectChunk staged{}, multiplied{};
  const int behind = tile.buffers - 1;  // chunks
#pragma unroll 1
  for (int step = 0; multiplied.plane < p.depth.kernel; ++step) {
    // What was loaded in the step before is there, and what was read may be overwritten.
    wait_for_chunk<T>();
    if (staged.plane < p.depth.kernel) {
      float* inputs = shared + (step & behind) * chunk_floats;
      stage_inputs<T>(p, tile, place, staged, positions, inputs);
      stage_weights<T>(p, tile, place, staged, weights, inputs + input_floats);
      if constexpr (kDirectIsCopied<T>) arch::cp_async_commit();
      staged.advance(p, tile);
    }
    if (behind == 0) wait_for_chunk<T>();
    if (step < behind) continue;
    if (warp_channel < place.num_channels) {
      operands.inputs = shared + ((step - behind) & behind) * chunk_floats;
      operands.weights = operands.inputs + input_floats + warp_channel * tile.num_weights;
      operands.channels = multiplied.channels(p, tile);
      if (tile.window == 0) {
        multiply_taps(p, tile, operands, sums);
      } else {
        with_window(p, tile, [&]<int kTaps, int kStride, int kDilation>() {
          multiply_windows<kTaps, kStride, kDilation>(p, tile, operands, sums);
        });
      }
    }
    multiplied.advance(p, tile);
  }
  __syncthreads();
  const DirectOutputs outputs(shared);
  find_outputs(p, tile, place, outputs);
  if (tile.y_is_last) {
    store_pixels<T>(p, tile, place, warp_channel, sums, outputs);
  } else {
    store_rows<T>(p, tile, place, warp_channel, sums, outputs);
  }
}

template <class T, bool kHasOwnInput>
cudaError_t launch(const ConvParams& params, const DirectTile& tile, cudaStream_t stream) {
  const auto bytes = static_cast<int>(tile.shared_bytes());
  const auto kernel = conv_direct<T, kHasOwnInput>;
  const cudaError_t status = allow_shared_bytes(kernel, bytes);
  if (status != cudaSuccess) return status;
  const int64_t blocks = params.num_members * tile.blocks_of_member(params);
  return launch_kernel(kernel, static_cast<unsigned>(blocks),
                       static_cast<unsigned>(tile.warps * kDirectLanes), static_cast<size_t>(bytes),
                       stream, params, tile);
}

/// Of x with channels last, neighbouring lanes load the channels of a sector.
int32_t channel_shift(const ConvParams& params, const DirectTile& tile, int64_t element_bytes) {
  if (!tile.x_is_last || !tile.has_table) return 0;
  const int32_t channels = tile.chunk < params.in_per_group ? tile.chunk : tile.chunk * tile.groups;
  int32_t shift = 0;
  while ((2 << shift) * element_bytes <= 32 && 1 << shift < channels) ++shift;
  return shift;
}

}  // namespace

cudaError_t launch_conv_direct(const ConvParams& params, ChannelLayout x_layout,
                               ChannelLayout layout, Dtype dtype, cudaStream_t stream) {
  DirectTile tile = direct_tile(params, dtype == Dtype::fp32);
  tile.x_is_last = x_layout == ChannelLayout::channels_last;
  tile.y_is_last = layout == ChannelLayout::channels_last;
  if (tile.blocks_of_member(params) > INT32_MAX / params.num_members) {
    return cudaErrorInvalidConfiguration;
  }
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    tile.channel_shift = channel_shift(params, tile, sizeof(T));
    return tile.has_own_input ? launch<T, true>(params, tile, stream)
                              : launch<T, false>(params, tile, stream);
  });
}

}  // namespace wide::kernels
