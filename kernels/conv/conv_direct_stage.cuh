// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How conv_direct brings x and weights into shared memory, as floats: fp32 is copied behind the
// arithmetic on the chunk before (cp.async), narrower values are converted on their way.
//
// x: [groups, chunk, rows, columns], padding and what is missing as zeros. weights: [channels of y
// / 4, chunk, taps, 4]. Chunks differ in where they begin only, so that a table says once where
// each position of x and each weight comes from and goes to; of positions only where there is
// room for it (DirectTile::has_table).
#pragma once

#include "kernels/arch/cp_async.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/conv/conv_direct_place.cuh"

namespace wide::kernels {

/// Whether values are copied as they are, asynchronously.
template <class T>
inline constexpr bool kDirectIsCopied = sizeof(T) == sizeof(float);

/// Until what the block's threads staged is there for all of them.
template <class T>
__device__ void wait_for_chunk() {
  if constexpr (kDirectIsCopied<T>) arch::cp_async_wait<0>();
  __syncthreads();
}

/// Some channels of x of each group, in the plane that one of the kernel's planes reads.
struct DirectChunk {
  int plane;  ///< of the kernel
  int first;

  __device__ int channels(const ConvParams& p, const DirectTile& tile) const {
    return min(tile.chunk, p.in_per_group - first);
  }
  __device__ void advance(const ConvParams& p, const DirectTile& tile) {
    first += tile.chunk;
    if (first >= p.in_per_group) first = 0, ++plane;
  }
};

/// Elements from where a chunk begins in memory, or -1 for zeros, and floats from where it goes to
/// in shared memory, which has fewer than 2^16.
struct DirectSource {
  int64_t packed;

  __device__ DirectSource(int64_t offset, int place) : packed(offset << 16 | place) {}
  __device__ bool exists() const { return packed >= 0; }
  __device__ int64_t offset() const { return packed >> 16; }
  __device__ int place() const { return static_cast<int>(packed & 0xFFFF); }
};

/// Of positions of x, in the order in which lanes load them: with channels first, first the whole
/// sectors of all rows, so that hardly any sector is requested by two warps, then their ends.
class DirectPositions {
 public:
  __device__ DirectPositions(const ConvParams& p, const DirectTile& tile, const DirectPlace& at)
      : first_row_(at.row * p.stride.height - p.padding.height),
        first_column_(at.column * p.stride.width - p.padding.width) {
    constexpr int kSector = 16;  // elements, at most
    const int places = tile.columns.places;
    const bool has_ends = tile.columns.is_halo && !tile.x_is_last;
    before_ = has_ends ? min(-first_column_ & (kSector - 1), places) : 0;
    whole_ = has_ends ? (places - before_) / kSector * kSector : places;
  }

  __device__ DirectSource source(const ConvParams& p, const DirectTile& tile, int index) const {
    const DirectAxis &rows = tile.rows, &columns = tile.columns;
    const int position_of_ends = rows.places * whole_;
    const bool is_end = index >= position_of_ends;
    const int in_part = is_end ? index - position_of_ends : index;
    const int part = is_end ? columns.places - whole_ : whole_;
    const int row = in_part / part;
    const int turned = before_ + in_part - row * part + (is_end ? whole_ : 0);
    const int column = turned < columns.places ? turned : turned - columns.places;
    const int x_row = first_row_ + position_of(rows, row, p.stride.height, p.dilation.height);
    const int x_column =
        first_column_ + position_of(columns, column, p.stride.width, p.dilation.width);
    const bool is_inside =
        x_row >= 0 && x_row < p.input.height && x_column >= 0 && x_column < p.input.width;
    const int in_row = tile.odd > 0   ? column / 2 + column % 2 * tile.odd
                       : tile.gap > 0 ? column + column / tile.gap
                                      : column;
    return {is_inside ? x_row * p.x_strides.row + x_column * p.x_strides.column : -1,
            row * tile.pitch + in_row};
  }

 private:
  int first_row_, first_column_;
  int before_, whole_;  ///< places of a row before its first whole sector, and in whole ones
};

__device__ inline void find_positions(const ConvParams& p, const DirectTile& tile,
                                      const DirectPlace& at, DirectSource* sources) {
  const DirectPositions positions(p, tile, at);
  for (int index = static_cast<int>(threadIdx.x); index < tile.num_positions;
       index += static_cast<int>(blockDim.x)) {
    sources[index] = positions.source(p, tile, index);
  }
}

/// Of one output channel's weights, in memory order.
__device__ inline void find_weights(const ConvParams& p, const DirectTile& tile,
                                    DirectSource* sources) {
  const ConvWeightStrides& s = p.weight_strides;
  const int taps = p.kernel.height * p.kernel.width;
  for (int index = static_cast<int>(threadIdx.x); index < tile.num_weights;
       index += static_cast<int>(blockDim.x)) {
    const int inner = tile.y_is_last ? tile.chunk : taps;
    const int quotient = index / inner, remainder = index - quotient * inner;
    const int channel = tile.y_is_last ? remainder : quotient;
    const int tap = tile.y_is_last ? quotient : remainder;
    const int row = tap / p.kernel.width, column = tap - row * p.kernel.width;
    sources[index] = {channel * s.in_channel + row * s.row + column * s.column,
                      4 * (channel * taps + tap)};
  }
}

/// One value, zero if it does not exist.
template <class T>
struct DirectValue {
  const T* from;
  float* to;
  bool exists;
};

/// value(i) for i below kCount; all loads before any store.
template <int kCount, class T, class Value>
__device__ void stage_values(const Value& value) {
  DirectValue<T> values[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = value(i);
  if constexpr (kDirectIsCopied<T>) {
    // Nothing is read where there is nothing, whatever the address.
#pragma unroll
    for (const DirectValue<T>& v : values) arch::cp_async_4(v.to, v.from, v.exists ? 4 : 0);
  } else {
    float loaded[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      loaded[i] = values[i].exists ? to_float(*values[i].from) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) *values[i].to = loaded[i];
  }
}

/// `count` values of a walk, four at a time: walk(i) is the i-th from where it is.
template <class T, class Walk>
__device__ void stage_walk(int count, Walk walk) {
  constexpr int kTogether = 4;
#pragma unroll 1
  for (; count >= kTogether; count -= kTogether) {
    stage_values<kTogether, T>(walk);
    walk.advance(kTogether);
  }
#pragma unroll 1
  for (; count > 0; --count) {
    stage_values<1, T>(walk);
    walk.advance(1);
  }
}

/// The channels of a position, every `step`-th.
template <class T>
struct ChannelWalk {
  DirectValue<T> value;
  int64_t from_step;
  int to_step;

  __device__ DirectValue<T> operator()(int i) const {
    return {value.from + i * from_step, value.to + i * to_step, value.exists};
  }
  __device__ void advance(int count) { value = (*this)(count); }
};

/// A position of a channel, which begins at `channel`.
template <class T>
__device__ DirectValue<T> value_at(const DirectValue<T>& channel, const DirectSource& at) {
  return {channel.from + at.offset(), channel.to + at.place(), channel.exists && at.exists()};
}

/// Positions of a channel, which begins at `channel`, in the order of their table, every `step`-th.
template <class T>
struct PositionWalk {
  DirectValue<T> channel;
  const DirectSource* source;
  int step;

  __device__ DirectValue<T> operator()(int i) const { return value_at(channel, source[i * step]); }
  __device__ void advance(int count) { source += count * step; }
};

/// Loads a chunk of every group. With channels first, threads are positions; with channels last,
/// neighbouring lanes are neighbouring channels of one.
template <class T>
__device__ void stage_inputs(const ConvParams& p, const DirectTile& tile, const DirectPlace& place,
                             const DirectChunk& chunk, const DirectSource* sources, float* inputs) {
  const int x_plane =
      place.plane * p.depth.stride - p.depth.padding + chunk.plane * p.depth.dilation;
  const bool has_plane = x_plane >= 0 && x_plane < p.depth.input;
  const int64_t channel_step = p.x_strides.channel;
  const T* x = static_cast<const T*>(p.x) + place.x + (has_plane ? x_plane * p.depth.x : 0) +
               chunk.first * channel_step;
  // All channels of groups are those of one.
  const bool is_one = tile.chunk == p.in_per_group;
  const int groups = is_one ? 1 : tile.groups;
  const int channels = is_one ? tile.groups * tile.chunk : chunk.channels(p, tile);
  const int lanes = 1 << tile.channel_shift;
  const int first = static_cast<int>(threadIdx.x) >> tile.channel_shift;
  const int step = static_cast<int>(blockDim.x) >> tile.channel_shift;
  const DirectPositions positions(p, tile, place);
#pragma unroll 1
  for (int group = 0; group < groups; ++group) {
    const int before = (place.first_group + group) * p.in_per_group + chunk.first;
    const int end = min(channels, p.in_channels - before);
    const DirectValue<T> of_group{x + group * p.in_per_group * channel_step,
                                  inputs + group * tile.chunk * tile.plane, has_plane};
    if (tile.x_is_last && tile.has_table) {
      const int count = max(0, tile.num_positions - first + step - 1) / step;
      int channel = static_cast<int>(threadIdx.x) & (lanes - 1);
#pragma unroll 1
      for (; channel < end; channel += lanes) {
        const ChannelWalk<T> channels_of{of_group, channel_step, tile.plane};
        stage_walk<T>(count, PositionWalk<T>{channels_of(channel), sources + first, step});
      }
    } else {
#pragma unroll 1
      for (int position = first; position < tile.num_positions; position += step) {
        const DirectSource at =
            tile.has_table ? sources[position] : positions.source(p, tile, position);
        stage_walk<T>(end, ChannelWalk<T>{value_at(of_group, at), channel_step, tile.plane});
      }
    }
  }
}

/// Loads a chunk's weights for the block's outputs: a warp loads a sector of some output channels
/// at a time.
template <class T>
__device__ void stage_weights(const ConvParams& p, const DirectTile& tile, const DirectPlace& place,
                              const DirectChunk& chunk, const DirectSource* sources,
                              float* weights) {
  constexpr int kInner = 32 / static_cast<int>(sizeof(T)), kOutputs = kDirectLanes / kInner;
  const ConvWeightStrides& s = p.weight_strides;
  const int warp = static_cast<int>(threadIdx.x) / kDirectLanes;
  const int lane = static_cast<int>(threadIdx.x) % kDirectLanes;
  const int end = 4 * chunk.channels(p, tile) * p.kernel.height * p.kernel.width;
  const int first = warp * kDirectChannels + lane / kInner, missing = first - place.num_channels;
  const T* from = static_cast<const T*>(p.weight) + place.weight + first * s.out_channel +
                  chunk.first * s.in_channel + chunk.plane * p.depth.weight;
  float* to = weights + warp * kDirectChannels * tile.num_weights + lane / kInner;
#pragma unroll 1
  for (int index = lane % kInner; index < tile.num_weights; index += kInner) {
    const DirectSource source = sources[index];
    const bool exists = source.place() < end;  // in the last chunk
    stage_values<kDirectChannels / kOutputs, T>([&](int i) {
      const int output = i * kOutputs;
      return DirectValue<T>{from + source.offset() + output * s.out_channel,
                            to + source.place() + output / 4 * 4 * tile.num_weights + output % 4,
                            exists && missing + output < 0};
    });
  }
}

}  // namespace wide::kernels
