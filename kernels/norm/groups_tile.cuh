// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A block's part of an image with channels last: some positions of a few neighbouring groups, in
// registers. Sums of a thread's channels go up by rows of positions, channels and groups, in an
// order that is the same for every group.
#pragma once

#include "kernels/common/divisor.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/norm/groupnorm_last_cut.hpp"
#include "kernels/norm/groupnorm_wide.hpp"
#include "kernels/norm/norm_slice.cuh"
#include "kernels/norm/norm_sums.cuh"

namespace wide::kernels {

inline constexpr uint32_t kLastWarps = kLastThreads / kWarp;

/// LastCut as the kernels have it.
struct GroupsCut {
  uint32_t channels = 0;  ///< of a group
  uint32_t groups = 0, lanes = 0, threads = 0, tiles = 0, chunks = 0;
  uint32_t all_groups = 0;  ///< of all members
  uint32_t positions = 0;
  /// Sums of threads' channels, `columns` of them at `rows` positions, go up by so many segments of
  /// rows, then a group's, of `width` columns.
  uint32_t rows = 1, columns = 0, segments = 1, width = 0;
  bool is_aligned = false, has_gaps = false;                      ///< between rows of positions
  Divisor32 by_lanes, by_row, by_columns, by_width, by_channels;  ///< the last: of a member
};

/// A group's moments in a chunk: around `rough`, which is near its mean.
struct GroupPartial {
  float rough, mean, square, count;
};
static_assert(sizeof(GroupPartial) == kPartialBytes);

__device__ inline uint32_t divided(const Divisor32& by, uint32_t n, uint32_t& left) {
  int32_t rest;
  const int32_t quotient = by.divide(static_cast<int32_t>(n), rest);
  left = static_cast<uint32_t>(rest);
  return static_cast<uint32_t>(quotient);
}

/// What a block shares.
struct GroupsShared {
  /// Of a thread's channels, four together; the second four lie apart, in other banks.
  float4 sums[2][2 * kLastThreads + 4];
  /// Of columns; then of channels, as the sums lie.
  alignas(16) float columns[2][4 * (2 * kLastThreads + 4)];
  float rough[kLastTileGroups], mean[kLastTileGroups], scale[kLastTileGroups];
  float square[kLastTileGroups];
};

template <class T>
class GroupsTile {
 public:
  static constexpr uint32_t kSize = Vec16<T>::kSize;
  static constexpr uint32_t kVectors = static_cast<uint32_t>(kLastVectors);
  using Values = float[kSize];

  __device__ GroupsTile(const GroupnormParams& p, const GroupsCut& cut, GroupsShared& shared)
      : p_(p), cut_(cut), shared_(shared) {
    const uint32_t number = blockIdx.x / cut.chunks;
    chunk_ = blockIdx.x - number * cut.chunks;
    batch_ = number / cut.tiles;
    first_group_ = (number - batch_ * cut.tiles) * cut.groups;
    groups_ = min(cut.groups, cut.all_groups - first_group_);
    const uint32_t first = threadIdx.x + (is_narrow() ? 0 : chunk_ * kVectors * cut.threads);
    position_ = divided(cut.by_lanes, first, lane_);
    if (is_narrow()) position_ += chunk_ * kVectors * cut.rows;
  }

  /// Where a vector of this thread is; no channels where there is none.
  struct Spot {
    uint32_t lane, channels;
    int64_t x, y;
  };
  __device__ Spot spot(uint32_t k) const {
    Spot s{lane_, 0, 0, 0};
    uint32_t row = 0, column = position_ + k * cut_.rows;
    if (!is_narrow()) column = position_ + divided(cut_.by_lanes, lane_ + k * cut_.threads, s.lane);
    const uint32_t columns = groups_ * cut_.channels, first = s.lane * kSize;
    if (threadIdx.x < cut_.threads && column < cut_.positions && first < columns) {
      s.channels = min(kSize, columns - first);
    }
    if (cut_.has_gaps) row = divided(cut_.by_row, column, column);
    const int64_t channel = int64_t{first_group_} * cut_.channels + first;
    const auto place = [&](const ChannelStrides& of) {
      return batch_ * of.batch + row * of.row + column * of.column + channel;
    };
    s.x = place(p_.x_strides);
    s.y = place(p_.y_strides);
    return s;
  }

  /// All loads before the first use; zeros where nothing exists.
  __device__ void load(Vec16<T> (&vectors)[kVectors]) const {
    const T* x = static_cast<const T*>(p_.x);
#pragma unroll
    for (uint32_t k = 0; k < kVectors; ++k) {
      const Spot s = spot(k);
      if (cut_.is_aligned) {
        vectors[k] = load_vec16_if(x + s.x, s.channels > 0);
        continue;
      }
#pragma unroll
      for (uint32_t e = 0; e < kSize; ++e) {
        vectors[k].v[e] = e < s.channels ? x[s.x + e] : from_float<T>(0.0f);
      }
    }
  }

  /// Moments of each group in the chunk, by two passes: shared rough, mean and square.
  __device__ void find_moments(const Vec16<T> (&vectors)[kVectors]) const {
    Values sums[2] = {};
#pragma unroll
    for (uint32_t k = 0; k < kVectors; ++k) {
#pragma unroll
      for (uint32_t e = 0; e < kSize; ++e) sums[0][e] += to_float(vectors[k].v[e]);
    }
    const float share = 1.0f / num_values();
    add_up<1>(sums, [&](uint32_t group, const float(&totals)[1]) {
      shared_.rough[group] = totals[0] * share;
    });
    Values rough;
    of_columns(shared_.rough, spot(0).lane, rough);
#pragma unroll
    for (uint32_t e = 0; e < kSize; ++e) sums[0][e] = 0.0f;
#pragma unroll
    for (uint32_t k = 0; k < kVectors; ++k) {
      const uint32_t channels = spot(k).channels;
#pragma unroll
      for (uint32_t e = 0; e < kSize; ++e) {
        const float value = e < channels ? to_float(vectors[k].v[e]) - rough[e] : 0.0f;
        sums[0][e] += value;
        sums[1][e] += value * value;
      }
    }
    add_up<2>(sums, [&](uint32_t group, const float(&totals)[2]) {
      const float mean = totals[0] * share;
      shared_.mean[group] = mean;
      shared_.square[group] = fmaxf(totals[1] - totals[0] * mean, 0.0f);
    });
  }

  /// Of the chunk alone: it is all that there is.
  __device__ void find_scales() const {
    for (uint32_t group = threadIdx.x; group < groups_; group += blockDim.x) {
      shared_.scale[group] = 1.0f / sqrtf(shared_.square[group] / num_values() + p_.epsilon);
    }
    __syncthreads();
  }

  __device__ void leave(GroupPartial* partials) const {
    for (uint32_t group = threadIdx.x; group < groups_; group += blockDim.x) {
      const GroupPartial own{shared_.rough[group], shared_.mean[group], shared_.square[group],
                             num_values()};
      *reinterpret_cast<float4*>(of_group(partials, group) + chunk_) =
          *reinterpret_cast<const float4*>(&own);
    }
  }

  /// Of all chunks: shared rough, mean and scale. A warp for each group.
  __device__ void collect(const GroupPartial* partials) const {
    const uint32_t lane = threadIdx.x % kWarp;
    for (uint32_t group = threadIdx.x / kWarp; group < groups_; group += kLastWarps) {
      const GroupPartial* from = of_group(partials, group);
      const float rough = from->rough;
      const float values = static_cast<float>(cut_.positions) * static_cast<float>(cut_.channels);
      float sum = 0.0f, square = 0.0f;
      for (uint32_t chunk = lane; chunk < cut_.chunks; chunk += kWarp) {
        const GroupPartial part = loaded(from + chunk);
        sum += part.count * (part.rough - rough + part.mean);
      }
      const float mean = warp_sum(sum) / values;
      for (uint32_t chunk = lane; chunk < cut_.chunks; chunk += kWarp) {
        const GroupPartial part = loaded(from + chunk);
        const float apart = part.rough - rough + part.mean - mean;
        square += part.square + part.count * apart * apart;
      }
      const float variance = warp_sum(square) / values;
      if (lane == 0) {
        shared_.rough[group] = rough;
        shared_.mean[group] = mean;
        shared_.scale[group] = 1.0f / sqrtf(variance + p_.epsilon);
      }
    }
    __syncthreads();
  }

  /// y of what was loaded, by shared rough, mean and scale.
  __device__ void store(const Vec16<T> (&vectors)[kVectors]) const {
    Values rough, factor, shift;
    if (is_narrow()) {  // each channel's once for all positions
      for (uint32_t c = threadIdx.x; c < cut_.columns; c += kLastThreads) {
        uint32_t rest;
        const uint32_t group = divided(cut_.by_width, c, rest);
        const uint32_t at = place_of_channel(c);
        float mean = 0.0f, scale = 0.0f, offset = 0.0f;  // of channels that there are not
        if (c < groups_ * cut_.channels) {
          mean = shared_.rough[group];
          find_factor(group, c, scale, offset);
        }
        of_channels(0)[at] = mean;
        of_channels(1)[at] = scale;
        of_channels(2)[at] = offset;
      }
      __syncthreads();
      take(of_channels(0), rough);
      take(of_channels(1), factor);
      take(of_channels(2), shift);
    }
#pragma unroll
    for (uint32_t k = 0; k < kVectors; ++k) {
      const Spot s = spot(k);
      if (!is_narrow()) {
#pragma unroll
        for (uint32_t e = 0; e < kSize; ++e) {
          rough[e] = shared_.rough[0];
          if (e < s.channels) find_factor(0, s.lane * kSize + e, factor[e], shift[e]);
        }
      }
      Vec16<T> out;
#pragma unroll
      for (uint32_t e = 0; e < kSize; ++e) {
        out.v[e] = from_float<T>((to_float(vectors[k].v[e]) - rough[e]) * factor[e] + shift[e]);
      }
      T* y = static_cast<T*>(p_.y) + s.y;
      if (cut_.is_aligned) {
        if (s.channels > 0) store_vec16(y, out);
        continue;
      }
#pragma unroll
      for (uint32_t e = 0; e < kSize; ++e) {
        if (e < s.channels) y[e] = out.v[e];
      }
    }
  }

 private:
  __device__ bool is_narrow() const {
    return cut_.lanes <= cut_.threads;
  }

  /// Values of each group in the chunk.
  __device__ float num_values() const {
    if (is_narrow()) {
      const uint32_t most = kVectors * cut_.rows, first = chunk_ * most;
      return static_cast<float>(min(most, cut_.positions - first) * cut_.channels);
    }
    // Of the vectors those at the end of a position have fewer channels.
    const uint32_t first = chunk_ * kVectors * cut_.threads;
    const uint32_t vectors = min(kVectors * cut_.threads, cut_.positions * cut_.lanes - first);
    uint32_t rest;
    const uint32_t ends =
        divided(cut_.by_lanes, first + vectors, rest) - divided(cut_.by_lanes, first, rest);
    return static_cast<float>(vectors * kSize - ends * (cut_.lanes * kSize - cut_.channels));
  }

  __device__ GroupPartial* of_group(const GroupPartial* partials, uint32_t group) const {
    const int64_t number = int64_t{batch_} * cut_.all_groups + first_group_ + group;
    return const_cast<GroupPartial*>(partials) + number * cut_.chunks;
  }
  __device__ static GroupPartial loaded(const GroupPartial* from) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    return *reinterpret_cast<const GroupPartial*>(&four);
  }

  /// What the groups of a vector's channels have.
  __device__ void of_columns(const float* of_groups, uint32_t lane, Values& values) const {
    uint32_t group = 0, column = 0;
    if (is_narrow()) {
      group = lane * kSize / cut_.channels;
      column = lane * kSize - group * cut_.channels;
    }
#pragma unroll
    for (uint32_t e = 0; e < kSize; ++e) {
      values[e] = of_groups[min(group, groups_ - 1)];
      if (++column == cut_.channels && is_narrow()) {
        ++group;
        column = 0;
      }
    }
  }

  /// A channel's y is (x - rough) * factor + shift.
  __device__ void find_factor(uint32_t group, uint32_t column, float& factor, float& shift) const {
    uint32_t channel;
    const int64_t member =
        divided(cut_.by_channels, first_group_ * cut_.channels + column, channel);
    factor = shared_.scale[group] *
             channel_parameter<T>(p_.gamma, member * p_.gamma_member_stride + channel, 1.0f);
    shift = channel_parameter<T>(p_.beta, member * p_.beta_member_stride + channel, 0.0f) -
            shared_.mean[group] * factor;
  }
  /// A channel's rough mean, factor and shift, where sums were.
  __device__ float* of_channels(int which) const {
    return which == 0 ? reinterpret_cast<float*>(shared_.sums) : shared_.columns[which - 1];
  }
  /// As those of sums, four together.
  __device__ static uint32_t place_of_channel(uint32_t c) {
    return 4 * place_of(c / kSize, c % kSize) + c % 4;
  }
  __device__ void take(const float* from, Values& values) const {
#pragma unroll
    for (uint32_t e = 0; e < kSize; e += 4) {
      const float4 four = reinterpret_cast<const float4*>(from)[place_of(lane_, e)];
      values[e] = four.x, values[e + 1] = four.y, values[e + 2] = four.z, values[e + 3] = four.w;
    }
  }

  /// Calls f(group, totals) in one thread for each group, of sums over all threads' channels of it,
  /// in an order that is the same for every group.
  template <int parts, class F>
  __device__ void add_up(const Values (&sums)[2], const F& f) const {
    float4* const own[2] = {shared_.sums[0], shared_.sums[1]};
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (uint32_t e = 0; e < kSize; e += 4) {
        own[part][place_of(threadIdx.x, e)] = {sums[part][e], sums[part][e + 1], sums[part][e + 2],
                                               sums[part][e + 3]};
      }
    }
    __syncthreads();
    const uint32_t pitch = cut_.columns + 1;  // segments begin in different banks
    for (uint32_t i = threadIdx.x; i < cut_.segments * cut_.columns; i += kLastThreads) {
      uint32_t column;
      const uint32_t segment = divided(cut_.by_columns, i, column);
      const uint32_t e = column % kSize;
      float totals[parts] = {};
#pragma unroll 4
      for (uint32_t row = segment; row < cut_.rows; row += cut_.segments) {
        const uint32_t place = place_of(row * cut_.lanes + column / kSize, e);
#pragma unroll
        for (int part = 0; part < parts; ++part) {
          totals[part] += reinterpret_cast<const float*>(own[part] + place)[e % 4];
        }
      }
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        shared_.columns[part][segment * pitch + column] = totals[part];
      }
    }
    __syncthreads();
    const uint32_t lane = threadIdx.x % kWarp;
    for (uint32_t group = threadIdx.x / kWarp; group < groups_; group += kLastWarps) {
      float four[parts][4] = {};  // in turn: fewer roundings in each
      for (uint32_t first = lane; first < cut_.segments * cut_.width; first += 4 * kWarp) {
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
          const uint32_t i = first + j * kWarp;
          if (i >= cut_.segments * cut_.width) break;
          uint32_t column;
          const uint32_t segment = divided(cut_.by_width, i, column);
          column += segment * pitch + group * cut_.width;
#pragma unroll
          for (int part = 0; part < parts; ++part) four[part][j] += shared_.columns[part][column];
        }
      }
      float totals[parts];
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        totals[part] = warp_sum((four[part][0] + four[part][1]) + (four[part][2] + four[part][3]));
      }
      if (lane == 0) f(group, totals);
    }
    __syncthreads();
  }
  __device__ static uint32_t place_of(uint32_t thread, uint32_t e) {
    return thread + (e < 4 ? 0 : static_cast<uint32_t>(kLastThreads) + 4);
  }

  const GroupnormParams& p_;
  const GroupsCut& cut_;
  GroupsShared& shared_;
  uint32_t batch_, chunk_, first_group_, groups_;
  uint32_t position_, lane_;  ///< of this thread's first vector
};

}  // namespace wide::kernels
