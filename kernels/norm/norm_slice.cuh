// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the norms over channels normalise together: a slice, `runs` runs of height * width positions
// (of one channel from batch to batch, of one image from channel to channel), as numbered chunks of
// sixteen bytes. A chunk has the same positions whatever the strides and the alignment, so that
// these change no bit of a sum: if all is aligned it is one access, else one by one.
#pragma once

#include "kernels/common/divisor.hpp"
#include "kernels/common/vector_load.cuh"
#include "kernels/norm/norm_params.hpp"

namespace wide::kernels {

/// Where the runs of a slice are.
template <class Pointer>
struct SlicePlace {
  Pointer first;
  int64_t run_stride, row_stride;
};

template <class T>
class NormSlice {
 public:
  static constexpr uint32_t kSize = Vec16<T>::kSize;

  /// by_run: of chunks, by those of a run.
  __device__ NormSlice(const SlicePlace<const T*>& x, const SlicePlace<T*>& y, int64_t runs,
                       int64_t height, int64_t width, bool is_aligned, const Divisor32& by_run)
      : x_(x),
        y_(y),
        runs_(static_cast<uint32_t>(runs)),
        width_(static_cast<uint32_t>(width)),
        length_(static_cast<uint32_t>(height) * width_),
        chunks_per_run_((length_ + kSize - 1) / kSize),
        is_aligned_(is_aligned),
        by_run_(by_run) {}

  __device__ const SlicePlace<const T*>& x() const { return x_; }
  __device__ const SlicePlace<T*>& y() const { return y_; }
  __device__ uint32_t runs() const { return runs_; }
  __device__ uint32_t length() const { return length_; }  ///< per run
  __device__ uint32_t chunks_per_run() const { return chunks_per_run_; }
  __device__ uint32_t num_chunks() const { return runs_ * chunks_per_run_; }
  __device__ uint32_t run_of(uint32_t chunk) const {
    int32_t left;
    return static_cast<uint32_t>(by_run_.divide(static_cast<int32_t>(chunk), left));
  }
  /// Values in the first `chunks` chunks.
  __device__ uint32_t num_values(uint32_t chunks) const {
    const uint32_t runs = run_of(chunks);
    return runs * length_ + min((chunks - runs * chunks_per_run_) * kSize, length_);
  }
  /// Values of a chunk that exist; 0 past the last chunk.
  __device__ uint32_t count_of(uint32_t chunk) const {
    if (chunk >= num_chunks()) return 0;
    if (is_aligned_) return kSize;
    return min(kSize, length_ - (chunk - run_of(chunk) * chunks_per_run_) * kSize);
  }

  /// Chunk `first` and others, `step` apart, all loads before the first use; zeros where nothing
  /// exists.
  template <uint32_t count>
  __device__ void load(Vec16<T> (&chunks)[count], uint32_t first, uint32_t step) const {
    if (is_aligned_) {
#pragma unroll
      for (uint32_t c = 0; c < count; ++c) {
        const uint32_t chunk = first + c * step;
        chunks[c] = load_vec16_if(x_.first + offset_of(chunk, x_), chunk < num_chunks());
      }
      return;
    }
#pragma unroll
    for (uint32_t c = 0; c < count; ++c) load_elements(chunks[c], first + c * step);
  }

  __device__ void store(uint32_t chunk, const Vec16<T>& values) const {
    const uint32_t count = count_of(chunk);
    if (is_aligned_) {
      if (count > 0) store_vec16(y_.first + offset_of(chunk, y_), values);
      return;
    }
    Walk walk(*this, chunk, y_.run_stride, y_.row_stride);
#pragma unroll
    for (uint32_t i = 0; i < kSize; ++i) {
      if (i < count) y_.first[walk.offset] = values.v[i];
      walk.step();
    }
  }

 private:
  __device__ void load_elements(Vec16<T>& values, uint32_t chunk) const {
    const uint32_t count = count_of(chunk);
    Walk walk(*this, chunk, x_.run_stride, x_.row_stride);
#pragma unroll
    for (uint32_t i = 0; i < kSize; ++i) {
      values.v[i] = i < count ? x_.first[walk.offset] : from_float<T>(0.0f);
      walk.step();
    }
  }

  /// The addresses of a chunk's values in order, from row to row.
  struct Walk {
    __device__ Walk(const NormSlice& slice, uint32_t chunk, int64_t run_stride, int64_t row_stride)
        : width(slice.width_), gap(row_stride - slice.width_) {
      const uint32_t run = slice.run_of(chunk);
      const uint32_t first = (chunk - run * slice.chunks_per_run_) * kSize;
      const uint32_t row = first / width;
      column = first - row * width;
      offset = run * run_stride + row * row_stride + column;
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

  /// Where rows are contiguous.
  template <class Pointer>
  __device__ int64_t offset_of(uint32_t chunk, const SlicePlace<Pointer>& place) const {
    const uint32_t run = run_of(chunk);
    return run * place.run_stride + (chunk - run * chunks_per_run_) * kSize;
  }

  SlicePlace<const T*> x_;
  SlicePlace<T*> y_;
  uint32_t runs_, width_, length_, chunks_per_run_;
  bool is_aligned_;
  Divisor32 by_run_;
};

/// gamma or beta of a channel of a member.
template <class T>
__device__ float channel_parameter(const void* values, int64_t element, float absent) {
  return values == nullptr ? absent : to_float(static_cast<const T*>(values)[element]);
}

/// Chunks of `runs` runs.
template <class T>
int64_t chunks_of(const ChannelNormParams& p, int64_t runs) {
  constexpr int64_t size = Vec16<T>::kSize;
  return runs * ((p.height * p.width + size - 1) / size);
}

/// Chunks are divided into runs by it.
template <class T>
Divisor32 divisor_of_runs(const ChannelNormParams& p) {
  return Divisor32(static_cast<int32_t>(chunks_of<T>(p, 1)));
}

/// Whether each chunk is a single access of sixteen bytes.
template <class T>
bool is_aligned16(const ChannelNormParams& p) {
  const auto is_fit = [&](const void* address, const ChannelStrides& s) {
    const bool has_gaps = p.height > 1 && s.row != p.width;
    const int64_t strides = s.batch | s.member | s.channel | p.height * p.width;
    return !has_gaps && strides % Vec16<T>::kSize == 0 &&
           reinterpret_cast<uintptr_t>(address) % 16 == 0;
  };
  return is_fit(p.x, p.x_strides) && is_fit(p.y, p.y_strides);
}

}  // namespace wide::kernels
