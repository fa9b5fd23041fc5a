// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What batchnorm works on: one channel of one member, `batch` runs of positions, as numbered chunks
// of sixteen bytes. A chunk holds the same positions whatever the strides and the alignment, so
// that these change no bit of a sum: where all is aligned it is one access, else one by one.
#pragma once

#include "kernels/common/numeric.cuh"
#include "kernels/norm/batchnorm_wide.hpp"

namespace wide::kernels {

template <class T>
class BatchnormSlice {
 public:
  static constexpr uint32_t kSize = Vec16<T>::kSize;

  /// `index` counts channels of all members, a member's next to each other.
  __device__ BatchnormSlice(const BatchnormParams& p, uint32_t index, bool is_aligned)
      : p_(p), is_aligned_(is_aligned) {
    const auto channels = static_cast<uint32_t>(p.channels);
    member_ = index / channels;
    channel_ = index - static_cast<uint32_t>(member_) * channels;
    width_ = static_cast<uint32_t>(p.width);
    length_ = static_cast<uint32_t>(p.height) * width_;
    chunks_per_run_ = (length_ + kSize - 1) / kSize;
  }

  __device__ uint32_t num_chunks() const {
    return static_cast<uint32_t>(p_.batch) * chunks_per_run_;
  }
  /// Values in the first `chunks` chunks.
  __device__ uint32_t num_values(uint32_t chunks) const {
    const uint32_t runs = chunks / chunks_per_run_;
    return runs * length_ + min((chunks - runs * chunks_per_run_) * kSize, length_);
  }
  /// Values of a chunk that exist; none of one behind the last.
  __device__ uint32_t count_of(uint32_t chunk) const {
    if (chunk >= num_chunks()) return 0;
    if (is_aligned_) return kSize;
    return min(kSize, length_ - chunk % chunks_per_run_ * kSize);
  }

  /// Zeros where nothing exists.
  __device__ Vec16<T> load(uint32_t chunk) const {
    const T* x = static_cast<const T*>(p_.x) + base_of(p_.x_strides);
    if (is_aligned_ && chunk < num_chunks()) return load_vec16(x + offset_of(chunk, p_.x_strides));
    Vec16<T> values;
    const uint32_t count = count_of(chunk);
    Walk walk(*this, chunk, p_.x_strides);
#pragma unroll
    for (uint32_t i = 0; i < kSize; ++i) {
      values.v[i] = i < count ? x[walk.offset] : from_float<T>(0.0f);
      walk.step();
    }
    return values;
  }

  __device__ void store(uint32_t chunk, const Vec16<T>& values) const {
    T* y = static_cast<T*>(p_.y) + base_of(p_.y_strides);
    const uint32_t count = count_of(chunk);
    if (is_aligned_) {
      if (count > 0) store_vec16(y + offset_of(chunk, p_.y_strides), values);
      return;
    }
    Walk walk(*this, chunk, p_.y_strides);
#pragma unroll
    for (uint32_t i = 0; i < kSize; ++i) {
      if (i < count) y[walk.offset] = values.v[i];
      walk.step();
    }
  }

  __device__ float gamma() const {
    return parameter(p_.gamma, p_.gamma_member_stride, 1.0f);
  }
  __device__ float beta() const {
    return parameter(p_.beta, p_.beta_member_stride, 0.0f);
  }
  __device__ float epsilon() const {
    return p_.epsilons != nullptr ? p_.epsilons[member_] : p_.epsilon;
  }
  __device__ float momentum() const {
    return p_.momenta != nullptr ? p_.momenta[member_] : p_.momentum;
  }
  __device__ float& running_mean() const {
    return p_.running_mean[member_ * p_.mean_member_stride + channel_];
  }
  __device__ float& running_variance() const {
    return p_.running_variance[member_ * p_.variance_member_stride + channel_];
  }

 private:
  /// The addresses of a chunk's values one after the other, from row to row.
  struct Walk {
    __device__ Walk(const BatchnormSlice& slice, uint32_t chunk, const ChannelStrides& strides)
        : width(slice.width_), gap(strides.row - slice.width_) {
      const uint32_t run = chunk / slice.chunks_per_run_;
      const uint32_t first = (chunk - run * slice.chunks_per_run_) * kSize;
      const uint32_t row = first / width;
      column = first - row * width;
      offset = run * strides.batch + row * strides.row + column;
    }
    __device__ void step() {
      ++offset;
      if (++column == width) {
        column = 0;
        offset += gap;
      }
    }
    uint32_t width, column;
    int64_t gap, offset;
  };

  __device__ int64_t base_of(const ChannelStrides& strides) const {
    return member_ * strides.member + channel_ * strides.channel;
  }
  /// Where rows follow each other without gaps.
  __device__ int64_t offset_of(uint32_t chunk, const ChannelStrides& strides) const {
    const uint32_t run = chunk / chunks_per_run_;
    return run * strides.batch + (chunk - run * chunks_per_run_) * kSize;
  }
  __device__ float parameter(const void* values, int64_t member_stride, float absent) const {
    if (values == nullptr) return absent;
    return to_float(static_cast<const T*>(values)[member_ * member_stride + channel_]);
  }

  const BatchnormParams& p_;
  bool is_aligned_;
  int64_t member_, channel_;
  uint32_t width_, length_, chunks_per_run_;
};

}  // namespace wide::kernels
