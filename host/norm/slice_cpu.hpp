// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the CPU device's norms over channels normalise together: a slice, as in
// kernels/norm/norm_slice.cuh, with the same corrected two-pass statistics as the CUDA kernels.
#pragma once

#include "host/core/independent.hpp"
#include "host/norm/norm_cpu.hpp"
#include "wide/convert.hpp"

namespace wide {

struct SliceMoments {
  float rough_mean = 0;
  float mean = 0;  ///< of the values minus the rough mean
  float variance = 0;
};

class CpuSlice {
 public:
  /// Where the runs lie, in bytes from `first` and in elements.
  template <class Pointer>
  struct Place {
    Pointer first;
    int64_t run_stride, row_stride;
  };

  CpuSlice(const Place<const char*>& x, const Place<char*>& y, int64_t runs, int64_t height,
           int64_t width, Dtype dtype)
      : x_(x), y_(y), runs_(runs), length_(height * width), width_(width), dtype_(dtype) {}

  int64_t num_values() const { return runs_ * length_; }

  SliceMoments moments() const {
    cpu::Sum sum;
    for_each_chunk([&](const float* v, int64_t, int64_t, int64_t count) {
      sum.add(count, [&](int64_t i) { return v[i]; });
    });
    const float rough_mean = sum.mean(num_values());
    Moments moments;
    for_each_chunk([&](const float* v, int64_t, int64_t, int64_t count) {
      moments.add(v, count, rough_mean);
    });
    const float mean = moments.mean(num_values());
    return {rough_mean, mean, moments.square(num_values(), mean)};
  }

  /// Writes (x - mean) * scale * gamma(run) + beta(run).
  template <class Gamma, class Beta>
  void write(const SliceMoments& m, float scale, const Gamma& gamma, const Beta& beta) const {
    for_each_chunk([&](const float* v, int64_t run, int64_t first, int64_t count) {
      float results[kChunk];
      const bool is_direct = is_direct_at(y_);
      float* out = is_direct ? reinterpret_cast<float*>(address(y_, run, first)) : results;
      const float factor = gamma(run), shift = beta(run);
      WIDE_INDEPENDENT  // y may be x
      for (int64_t i = 0; i < count; ++i) {
        out[i] = (v[i] - m.rough_mean - m.mean) * scale * factor + shift;
      }
      if (is_direct) return;
      for_each_piece(run, first, count, y_, [&](char* to, int64_t at, int64_t together) {
        encode_row(dtype_, out + at, to, together);
      });
    });
  }

 private:
  /// Whether runs are contiguous floats: nothing to decode.
  template <class Pointer>
  bool is_direct_at(const Place<Pointer>& place) const {
    return dtype_ == Dtype::fp32 && place.row_stride == width_;
  }
  /// The address of a position of a run without gaps.
  template <class Pointer>
  Pointer address(const Place<Pointer>& place, int64_t run, int64_t position) const {
    return place.first + (run * place.run_stride + position) * dtype_bytes(dtype_);
  }

  /// Calls f(address, place in the chunk, count) for the contiguous pieces of the positions
  /// [first, first + count).
  template <class Pointer, class F>
  void for_each_piece(int64_t run, int64_t first, int64_t count, const Place<Pointer>& place,
                      const F& f) const {
    const bool has_gaps = place.row_stride != width_;
    for (int64_t at = 0; at < count;) {
      const int64_t row = (first + at) / width_, column = (first + at) % width_;
      const int64_t together = has_gaps ? std::min(width_ - column, count - at) : count;
      const int64_t element = run * place.run_stride + row * place.row_stride + column;
      f(place.first + element * dtype_bytes(dtype_), at, together);
      at += together;
    }
  }

  /// Calls f(values, run, first position, count) for the slice in its order, whatever its strides.
  template <class F>
  void for_each_chunk(const F& f) const {
    float decoded[kChunk];
    for (int64_t run = 0; run < runs_; ++run) {
      for (int64_t first = 0; first < length_; first += kChunk) {
        const int64_t count = std::min(kChunk, length_ - first);
        if (is_direct_at(x_)) {
          f(reinterpret_cast<const float*>(address(x_, run, first)), run, first, count);
          continue;
        }
        for_each_piece(run, first, count, x_, [&](const char* from, int64_t at, int64_t together) {
          decode_row(dtype_, from, decoded + at, together);
        });
        f(decoded, run, first, count);
      }
    }
  }

  Place<const char*> x_;
  Place<char*> y_;
  int64_t runs_, length_, width_;
  Dtype dtype_;
};

/// One element of a parameter.
inline float decode_parameter(const ConstTensorView& view, int64_t element, float absent) {
  if (view.is_absent()) return absent;
  float value = 0;
  const char* first = static_cast<const char*>(view.data);
  decode_row(view.dtype, first + element * dtype_bytes(view.dtype), &value, 1);
  return value;
}

}  // namespace wide
