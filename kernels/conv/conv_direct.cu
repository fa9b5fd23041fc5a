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
// offset into it. Lanes are neighbouring positions, so that x is read without bank conflicts
// and each weight is broadcast to a whole warp: four loads of x and two of weights feed 32
// multiply-adds. Where groups are narrower than a warp's eight channels (depthwise), every
// channel reads its own x, and the loads of x are the limit in shared memory as in global
// memory.
//
// Memory: x as [groups, chunk, rows, columns] floats, the planes of channels an odd number apart;
// weights as [chunk, taps, channels]. With channels last, sums are transposed there in the end, so
// that neighbouring lanes store neighbouring channels.
//
// Every output is summed by one thread in order of the kernel's planes, channels, then taps.
#include "kernels/arch/grid.cuh"
#include "kernels/common/activation.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/conv/conv_direct.hpp"
#include "kernels/conv/conv_direct_tile.hpp"

namespace wide::kernels {

namespace {

constexpr int kLanes = 32;
constexpr int kThreads = kLanes * kDirectMaxWarps;
constexpr int kPositions = kDirectPositions / kLanes;  // per lane

/// A block's position.
struct Place {
  int member;
  int image;  ///< of y: a plane of a batch row. Both in one, to save registers
  int first_channel, num_channels;  ///< of the member's y
  int first_group;
  int row, column;  ///< the first output

  __device__ int batch(const ConvParams& p) const { return image / p.depth.output; }
  __device__ int depth(const ConvParams& p) const { return image % p.depth.output; }
};

__device__ Place place_of(const ConvParams& p, const DirectTile& tile) {
  uint32_t index = blockIdx.x;
  const auto next = [&](int64_t count) {
    const uint32_t digit = index % static_cast<uint32_t>(count);
    index /= static_cast<uint32_t>(count);
    return static_cast<int>(digit);
  };
  Place place;
  place.column = next(tile.columns.tiles) << tile.columns.shift;
  place.row = next(tile.rows.tiles) << tile.rows.shift;
  place.image = next(p.batch * p.depth.output);
  const int in_span = next(tile.channel_tiles) * tile.channels();
  place.first_channel = next(p.out_channels / tile.span) * tile.span + in_span;
  place.num_channels = min(tile.channels(), tile.span - in_span);
  place.first_group = place.first_channel / p.out_per_group;
  place.member = static_cast<int>(index);
  return place;
}

/// The position of x that a place along an axis holds; `first` is that of place 0.
__device__ int position_of(const DirectAxis& axis, int place, int first, int stride, int dilation) {
  if (axis.is_halo) return first + place;
  return first + (place & (axis.outputs() - 1)) * stride + (place >> axis.shift) * dilation;
}

/// The rows of places of a chunk's channels, one after another. Lanes take `together` channels that
/// are contiguous in memory at once: one with channels first, otherwise a group's, or those of all
/// groups where the chunk has all of them.
struct InputRows {
  int together;
  int group, channel, row;

  __device__ InputRows(const ConvParams& p, const DirectTile& tile) {
    together = !tile.x_is_last               ? 1
               : tile.chunk < p.in_per_group ? tile.chunk
                                             : tile.groups * tile.chunk;
    group = channel = row = 0;
  }
  __device__ int count(const DirectTile& tile) const {
    return tile.groups * tile.chunk / together * tile.rows.places;
  }
  __device__ void seek(const DirectTile& tile, int index) {
    row = index % tile.rows.places;
    const int first = index / tile.rows.places * together;
    group = first / tile.chunk;
    channel = first % tile.chunk;
  }
  __device__ void advance(const DirectTile& tile) {
    if (++row < tile.rows.places) return;
    row = 0;
    channel += together;
    if (channel < tile.chunk) return;
    channel = 0;
    ++group;
  }
  /// How many of its channels exist, in the chunk that begins at `first`.
  __device__ int existing(const ConvParams& p, const DirectTile& tile, const Place& place,
                          int first) const {
    const int in_group = p.in_per_group - first - channel;
    const int in_member =
        p.in_channels - (place.first_group + group) * p.in_per_group - first - channel;
    return together > tile.chunk ? in_member : min(in_group, in_member);
  }
};

/// Loads `chunk` channels of every group from `first` on, in the plane that the kernel's `tap`
/// reads, padding and missing elements as zeros. A warp takes neighbouring rows, four at a time.
template <class T>
__device__ void stage_inputs(const ConvParams& p, const DirectTile& tile, const Place& place,
                             int tap, int first, float* inputs) {
  constexpr int kRows = 4;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int plane = static_cast<int>(tile.plane);
  InputRows rows(p, tile);
  const int channel_lanes = tile.x_is_last ? min(rows.together, kLanes) : 1;
  const int column_lanes = kLanes / channel_lanes;
  // Excess lanes have no column.
  const int lane_channel = lane % channel_lanes;
  const int lane_column =
      lane / channel_lanes < column_lanes ? lane / channel_lanes : tile.columns.places;
  const int first_row = place.row * p.stride.height - p.padding.height;
  const int first_column = place.column * p.stride.width - p.padding.width;
  // With channels first, a row begins at the first place of a sector, so that no sector is
  // requested twice; the places before come last.
  const int in_sector = tile.x_is_last ? 0 : -first_column & 15;
  const int skipped = in_sector < tile.columns.places ? in_sector : 0;
  const int depth_of_x = place.depth(p) * p.depth.stride - p.depth.padding + tap * p.depth.dilation;
  const bool has_depth = depth_of_x >= 0 && depth_of_x < p.depth.input;
  const T* x = static_cast<const T*>(p.x) + place.batch(p) * p.x_strides.batch +
               place.member * p.x_strides.member + depth_of_x * p.depth.x +
               (int64_t{place.first_group} * p.in_per_group + first) * p.x_strides.channel;
  const int per_warp = (rows.count(tile) - 1) / tile.warps + 1;
  const int end = min(rows.count(tile), (warp + 1) * per_warp);
  rows.seek(tile, warp * per_warp);
  for (int index = warp * per_warp; index < end; index += kRows) {
    int64_t from[kRows];
    int to[kRows], existing[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int position =
          position_of(tile.rows, rows.row, first_row, p.stride.height, p.dilation.height);
      const bool is_inside =
          has_depth && position >= 0 && position < p.input.height && index + r < end;
      existing[r] = is_inside ? rows.existing(p, tile, place, first) : 0;
      from[r] = (rows.group * p.in_per_group + rows.channel) * p.x_strides.channel +
                position * p.x_strides.row;
      to[r] = index + r < end ? (rows.group * tile.chunk + rows.channel) * plane +
                                    rows.row * tile.columns.places
                              : -1;
      rows.advance(tile);
    }
    for (int channel = lane_channel; channel < rows.together; channel += kLanes) {
#pragma unroll 1
      for (int index_in_row = lane_column; index_in_row < tile.columns.places;
           index_in_row += column_lanes) {
        const int behind = index_in_row + skipped - tile.columns.places;
        const int column = behind < 0 ? behind + tile.columns.places : behind;
        const int position =
            position_of(tile.columns, column, first_column, p.stride.width, p.dilation.width);
        const bool is_inside = position >= 0 && position < p.input.width;
        const int64_t offset = position * p.x_strides.column + channel * p.x_strides.channel;
        float values[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const bool is_read = is_inside && channel < existing[r];
          values[r] = is_read ? to_float(x[from[r] + offset]) : 0.0f;
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (to[r] >= 0) inputs[to[r] + channel * plane + column] = values[r];
        }
      }
    }
  }
}

/// One weight of an output channel; advances in memory order.
template <bool kIsLast>
struct WeightWalk {
  int channel, row, column;

  __device__ void advance(const ConvParams& p, int channels, int count) {
    int& inner = kIsLast ? channel : column;
    inner += count;
    const int extent = kIsLast ? channels : p.kernel.width;
    while (inner >= extent) {
      inner -= extent;
      if (kIsLast) {
        if (++column == p.kernel.width) column = 0, ++row;
      } else {
        if (++row == p.kernel.height) row = 0, ++channel;
      }
    }
  }
};

/// Loads the weights of the kernel's plane `tap`, of `channels` channels from `first` on, for the
/// block's outputs: a warp loads a sector of some output channels at a time.
template <bool kIsLast, class T>
__device__ void stage_weights(const ConvParams& p, const DirectTile& tile, const Place& place,
                              int tap, int first, int channels, float* weights) {
  constexpr int kTaps = 32 / static_cast<int>(sizeof(T)), kOutputs = kLanes / kTaps;
  const ConvWeightStrides& s = p.weight_strides;
  const T* from = static_cast<const T*>(p.weight) + place.member * s.member +
                  place.first_channel * s.out_channel + first * s.in_channel + tap * p.depth.weight;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int count = channels * p.kernel.height * p.kernel.width;
  WeightWalk<kIsLast> walk{0, 0, 0};
  walk.advance(p, channels, lane % kTaps);
  for (int index = lane % kTaps; index < count; index += kTaps) {
    const int64_t offset = walk.channel * s.in_channel + walk.row * s.row + walk.column * s.column;
    const int in_plane = (walk.channel * p.kernel.height + walk.row) * p.kernel.width + walk.column;
#pragma unroll
    for (int pass = 0; pass < kDirectChannels / kOutputs; ++pass) {
      const int output = (pass * tile.warps + warp) * kOutputs + lane / kTaps;
      weights[in_plane * tile.weight_pitch() + output] =
          output < place.num_channels ? to_float(from[output * s.out_channel + offset]) : 0.0f;
    }
    walk.advance(p, channels, kTaps);
  }
}

using Sums = float[kDirectChannels][kPositions];

/// A tap's products; x(o, i): what the lane's i-th position of the warp's o-th channel reads.
template <class X>
__device__ void multiply_tap(const float* weight, Sums& sums, const X& x) {
  float w[kDirectChannels];
#pragma unroll
  for (int o = 0; o < kDirectChannels; o += 4) {
    *reinterpret_cast<float4*>(w + o) = *reinterpret_cast<const float4*>(weight + o);
  }
#pragma unroll
  for (int o = 0; o < kDirectChannels; ++o) {
#pragma unroll
    for (int i = 0; i < kPositions; ++i) sums[o][i] = fmaf(x(o, i), w[o], sums[o][i]);
  }
}

/// A chunk's products. `places` are those of the lane's outputs, `planes` where the groups of the
/// warp's channels begin. kTogether adjacent columns of the kernel, which has as many, are taken at
/// once; other kernels' (1) one by one, as loads that are unrolled further are hoisted until
/// registers spill.
template <int kTogether, int kPlanes>
__device__ void multiply(const ConvParams& p, const DirectTile& tile, int warp_channel,
                         int channels, const float* inputs, const float* weights,
                         const int (&places)[kPositions], const int (&planes)[kPlanes],
                         Sums& sums) {
  const int plane = static_cast<int>(tile.plane), pitch = tile.weight_pitch();
  const float* weight = weights + warp_channel;
#pragma unroll 1
  for (int c = 0; c < channels; ++c) {
#pragma unroll 1
    for (int row = 0; row < p.kernel.height; ++row) {
      const float* input = inputs + c * plane + row * tile.rows.tap_step * tile.columns.places;
#pragma unroll 1
      for (int column = 0; column < (kTogether > 1 ? 1 : p.kernel.width); ++column) {
        if constexpr (kPlanes > 1) {
          multiply_tap(weight, sums, [&](int o, int i) { return input[planes[o] + places[i]]; });
          weight += pitch;
        } else {
          float x[kTogether][kPositions];
#pragma unroll
          for (int i = 0; i < kPositions; ++i) {
#pragma unroll
            for (int k = 0; k < kTogether; ++k) x[k][i] = input[planes[0] + places[i] + k];
          }
#pragma unroll
          for (const auto& of_column : x) {
            multiply_tap(weight, sums, [&](int, int i) { return of_column[i]; });
            weight += pitch;
          }
        }
        input += tile.columns.tap_step;
      }
    }
  }
}

/// Stores one output: bias, residual, activation, one rounding; nothing outside y.
template <class T>
__device__ void store_at(const ConvParams& p, const DirectTile& tile, const Place& place,
                         int position, int channel, float bias, float sum) {
  const int row = place.row + (position >> tile.columns.shift);
  const int column = place.column + (position & (tile.columns.outputs() - 1));
  if (row >= p.output.height || column >= p.output.width) return;
  const auto offset = [&](const ChannelStrides& s, int64_t depth_stride) {
    return place.batch(p) * s.batch + place.member * s.member + channel * s.channel +
           place.depth(p) * depth_stride + row * s.row + column * s.column;
  };
  if (p.bias != nullptr) sum += bias;  // adding 0 would make +0 of -0
  float residual = 0;
  if (p.residual != nullptr) {
    residual =
        to_float(static_cast<const T*>(p.residual)[offset(p.residual_strides, p.depth.residual)]);
    if (p.residual_is_activated) sum += residual;
  }
  with_activation(p.activation, [&]<Activation fixed>() { sum = activate<fixed>(sum); });
  if (p.residual != nullptr && !p.residual_is_activated) sum += residual;
  static_cast<T*>(p.y)[offset(p.y_strides, p.depth.y)] = from_float<T>(sum);
}

/// Via shared memory: with channels last, so that neighbouring lanes store neighbouring channels;
/// otherwise to take the sums out of their registers, for a loop around one copy of the epilogue's
/// code.
template <bool kIsLast, class T>
__device__ void store_tile(const ConvParams& p, const DirectTile& tile, const Place& place,
                           int warp_channel, const Sums& sums, float* shared) {
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const auto slot = [&](int channel, int position) -> float& {
    return kIsLast ? shared[position * tile.sum_pitch() + channel]
                   : shared[channel * kDirectPositions + position];
  };
#pragma unroll
  for (int o = 0; o < kDirectChannels; ++o) {
#pragma unroll
    for (int i = 0; i < kPositions; ++i) slot(warp_channel + o, i * kLanes + lane) = sums[o][i];
  }
  if constexpr (kIsLast) __syncthreads();
  const int first = kIsLast ? lane : warp_channel;
  const int end =
      kIsLast ? place.num_channels : min(warp_channel + kDirectChannels, place.num_channels);
  const int first_position = kIsLast ? warp : lane, step = kIsLast ? tile.warps : kLanes;
#pragma unroll 1
  for (int in_block = first; in_block < end; in_block += kIsLast ? kLanes : 1) {
    const int channel = place.first_channel + in_block;
    const float bias = p.bias == nullptr
                           ? 0.0f
                           : to_float(static_cast<const T*>(
                                 p.bias)[place.member * p.bias_member_stride + channel]);
#pragma unroll 1
    for (int position = first_position; position < kDirectPositions; position += step) {
      store_at<T>(p, tile, place, position, channel, bias, slot(in_block, position));
    }
  }
}

template <class T, bool kIsLast, bool kHasOwnInput>
__global__ void __launch_bounds__(kHasOwnInput ? kThreads / 2 : kThreads, kHasOwnInput ? 4 : 2)
    conv_direct(const __grid_constant__ ConvParams p, const __grid_constant__ DirectTile tile) {
  extern __shared__ __align__(16) float shared[];
  float* inputs = shared;
  float* weights = shared + tile.input_floats();
  const Place place = place_of(p, tile);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warp_channel = static_cast<int>(threadIdx.x) / kLanes * kDirectChannels;
  int places[kPositions];
#pragma unroll
  for (int i = 0; i < kPositions; ++i) {
    const int position = i * kLanes + lane;
    places[i] = (position >> tile.columns.shift) * tile.rows.output_step * tile.columns.places +
                (position & (tile.columns.outputs() - 1)) * tile.columns.output_step;
  }
  int planes[kHasOwnInput ? kDirectChannels : 1];
#pragma unroll
  for (int o = 0; o < (kHasOwnInput ? kDirectChannels : 1); ++o) {
    // Missing channels read the last one's.
    const int channel = place.first_channel + min(warp_channel + o, place.num_channels - 1);
    planes[o] =
        (channel / p.out_per_group - place.first_group) * tile.chunk * static_cast<int>(tile.plane);
  }
  constexpr int kTogether = kHasOwnInput ? 1 : 3;
  const bool is_together =
      kTogether > 1 && p.kernel.width == kTogether && tile.columns.tap_step == 1;
  arch::follow_grid();
  Sums sums = {};
#pragma unroll 1
  for (int tap = 0; tap < p.depth.kernel; ++tap) {
    for (int first = 0; first < p.in_per_group; first += tile.chunk) {
      const int channels = min(tile.chunk, p.in_per_group - first);
      stage_inputs<T>(p, tile, place, tap, first, inputs);
      stage_weights<kIsLast, T>(p, tile, place, tap, first, channels, weights);
      __syncthreads();
      if (warp_channel < place.num_channels) {
        if (is_together) {
          multiply<kTogether>(p, tile, warp_channel, channels, inputs, weights, places, planes,
                              sums);
        } else {
          multiply<1>(p, tile, warp_channel, channels, inputs, weights, places, planes, sums);
        }
      }
      __syncthreads();
    }
  }
  store_tile<kIsLast, T>(p, tile, place, warp_channel, sums, shared);
}

template <class T, bool kIsLast, bool kHasOwnInput>
cudaError_t launch(const ConvParams& params, const DirectTile& tile, cudaStream_t stream) {
  const auto bytes = static_cast<int>(tile.shared_bytes(params));
  const auto kernel = conv_direct<T, kIsLast, kHasOwnInput>;
  const cudaError_t status = allow_shared_bytes(kernel, bytes);
  if (status != cudaSuccess) return status;
  const int64_t blocks = params.num_members * tile.blocks_of_member(params);
  return launch_kernel(kernel, static_cast<unsigned>(blocks),
                       static_cast<unsigned>(tile.warps * kLanes), static_cast<size_t>(bytes),
                       stream, params, tile);
}

}  // namespace

cudaError_t launch_conv_direct(const ConvParams& params, ChannelLayout x_layout,
                               ChannelLayout layout, Dtype dtype, cudaStream_t stream) {
  DirectTile tile = direct_tile(params);
  tile.x_is_last = x_layout == ChannelLayout::channels_last;
  if (tile.blocks_of_member(params) > INT32_MAX / params.num_members) {
    return cudaErrorInvalidConfiguration;
  }
  const bool is_last = layout == ChannelLayout::channels_last;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    if (tile.has_own_input) {
      return is_last ? launch<T, true, true>(params, tile, stream)
                     : launch<T, false, true>(params, tile, stream);
    }
    return is_last ? launch<T, true, false>(params, tile, stream)
                   : launch<T, false, false>(params, tile, stream);
  });
}

}  // namespace wide::kernels
