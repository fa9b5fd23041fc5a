// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Loads pixels into a stage of shared memory: row p of the tile has the stage's terms of pixel p,
// zeros on padding, past the last pixel and past the last term. No pixel is read for a weight of
// zero, nor the other way round: 0 times NaN is NaN.
//
// vector:  8 lanes take 128 bytes of a pixel's channels. A thread keeps its chunk of the terms, so
//          and the few pixels that it loads, so that a stage costs one step of its term and a
//          comparison each.
// gather:  lanes take pixels, which are neighbours in memory where channels are not. A term means
//          the same for all: a table, one entry each, filled for the next stage by a few
//          threads. A thread reads a chunk of one pixel's terms into registers before products are
//          issued, and stores it after them.
#pragma once

#include <climits>
#include <cstdint>

#include "kernels/arch/load.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/conv/conv_implicit_gemm_params.hpp"
#include "kernels/linear/linear_tile.cuh"

namespace wide::kernels {

/// The digits of a term's number along its axes.
template <int kAxes>
struct ConvTerm {
  int32_t digits[kAxes];
};

/// What a term adds to a pixel's place in x, and to its row's in the weight. For images one load.
template <int kAxes>
struct alignas(16) ConvTermPlace {
  int32_t x, weight, row, column;
};
template <>
struct alignas(16) ConvTermPlace<kVolumeAxes> {
  int32_t x, weight, row, column, depth;
};

template <int kAxes>
__device__ inline ConvTerm<kAxes> locate_term(const ConvGemmParams& params, int32_t index) {
  ConvTerm<kAxes> term;
#pragma unroll
  for (int i = 0; i < kAxes - 1; ++i) {
    term.digits[i] = index % params.axes[i].count;
    index /= params.axes[i].count;
  }
  term.digits[kAxes - 1] = index;
  return term;
}

/// Advances to the same term of the next stage. No carry exceeds 1, as no digit exceeds its count.
template <int kAxes>
__device__ inline void advance_term(const ConvGemmParams& params, ConvTerm<kAxes>& term) {
  int32_t carry = 0;
#pragma unroll
  for (int i = 0; i < kAxes; ++i) {
    const ConvTermAxis& axis = params.axes[i];
    int32_t& digit = term.digits[i];
    digit += axis.per_stage + carry;
    carry = digit >= axis.count ? 1 : 0;
    if (i < kAxes - 1 && carry != 0) digit -= axis.count;
  }
}

/// Past the last term: no pixel has this row.
constexpr int32_t kNoRow = INT_MIN / 2;

/// `index`: the term's number.
template <int kAxes>
__device__ inline ConvTermPlace<kAxes> place_of(const ConvGemmParams& params,
                                                const ConvTerm<kAxes>& term, int32_t index) {
  ConvTermPlace<kAxes> place{};
#pragma unroll
  for (int i = 0; i < kAxes; ++i) {
    const ConvTermAxis& axis = params.axes[i];
    const int32_t digit = term.digits[i];
    place.x += digit * axis.x, place.weight += digit * axis.weight;
    place.row += digit * axis.row, place.column += digit * axis.column;
    if constexpr (kAxes == kVolumeAxes) place.depth += digit * axis.depth;
  }
  if (index >= params.num_terms) place.row = kNoRow;
  return place;
}

/// Where a pixel's first term is: in elements, and as a position, which padding makes negative. For
/// images one load.
template <int kAxes>
struct alignas(16) ConvPixel {
  int64_t x;
  int32_t row, column;
};
template <>
struct alignas(16) ConvPixel<kVolumeAxes> {
  int64_t x;
  int32_t row, column, depth;
};

/// Whether the term is one of x's positions: one comparison each, as unsigned, and no branch
/// between them.
template <int kAxes>
__device__ inline bool has_term(const ConvParams& conv, const ConvPixel<kAxes>& pixel,
                                const ConvTermPlace<kAxes>& term) {
  const auto is_within = [](int32_t position, int32_t extent) {
    return static_cast<uint32_t>(position) < static_cast<uint32_t>(extent);
  };
  const bool is_in_plane = is_within(pixel.row + term.row, conv.input.height) &
                           is_within(pixel.column + term.column, conv.input.width);
  if constexpr (kAxes == kVolumeAxes) {
    return is_in_plane & is_within(pixel.depth + term.depth, conv.depth.input);
  }
  return is_in_plane;
}

/// A pixel's batch row and position in y.
struct ConvPosition {
  int64_t batch, depth, row, column;
};

template <int kAxes>
__device__ inline ConvPosition locate_position(const ConvGemmParams& params, int64_t pixel) {
  ConvPosition at{};
  int64_t position;
  at.batch = params.positions.divide(pixel, position);
  at.row = params.columns.divide(position, at.column);
  if constexpr (kAxes == kVolumeAxes) at.batch = params.planes.divide(at.batch, at.depth);
  return at;
}

/// A missing pixel has no position either.
template <int kAxes>
__device__ inline ConvPixel<kAxes> locate_pixel(const ConvGemmParams& params, int64_t index) {
  ConvPixel<kAxes> pixel{};
  pixel.row = pixel.column = kNoRow;
  if (index >= params.num_pixels) return pixel;
  const ConvParams& conv = params.conv;
  const ConvPosition at = locate_position<kAxes>(params, index);
  const int64_t row = at.row * conv.stride.height - conv.padding.height;
  const int64_t column = at.column * conv.stride.width - conv.padding.width;
  pixel.x =
      at.batch * conv.x_strides.batch + row * conv.x_strides.row + column * conv.x_strides.column;
  pixel.row = static_cast<int32_t>(row), pixel.column = static_cast<int32_t>(column);
  if constexpr (kAxes == kVolumeAxes) {
    const int64_t depth = at.depth * conv.depth.stride - conv.depth.padding;
    pixel.x += depth * conv.depth.x;
    pixel.depth = static_cast<int32_t>(depth);
  }
  return pixel;
}

/// Stages by vectors: `pixels` rows of x, then `channels` contiguous rows of the weight, whose
/// length is a multiple of a vector.
template <class T, int kAxes, int pixels, int channels, int threads>
class ConvVectors {
 public:
  __device__ ConvVectors(const ConvGemmParams& params, const T* x, const ConvPixel<kAxes>* table,
                         const Source<T>& weight)
      : params_(params),
        x_(reinterpret_cast<uintptr_t>(x)),
        index_(thread() % kChunks * kVector),
        term_(locate_term<kAxes>(params, index_)),
        weight_(reinterpret_cast<uintptr_t>(weight.base) +
                (first_row() * weight.row_stride + index_) * kElement),
        rows_left_(weight.num_rows - first_row()) {
#pragma unroll
    for (int i = 0; i < kPixels; ++i) pixels_[i] = table[first_row() + i * kRows];
  }

  /// Starts loading a stage, and advances to the next.
  __device__ void load(char* stage) {
    // A thread's rows are a multiple of the swizzle's period apart.
    static_assert(kRows % kChunks == 0);
    char* to = stage + chunk_offset<1>(first_row(), thread() % kChunks);
    const ConvTermPlace<kAxes> place = place_of(params_, term_, index_);
    const uintptr_t x = x_ + place.x * kElement;
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      const int bytes = has_term(params_.conv, pixels_[i], place) ? kChunkBytes : 0;
      const auto* from = reinterpret_cast<const void*>(x + pixels_[i].x * kElement);
      arch::cp_async_16(to + i * kRows * kRowBytes, from, bytes);
    }
    const int rows_left = place.row == kNoRow ? 0 : rows_left_;
    const int64_t row_bytes = params_.conv.weight_strides.out_channel * kElement;
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      const int bytes = i * kRows < rows_left ? kChunkBytes : 0;
      const auto* from = reinterpret_cast<const void*>(weight_ + i * kRows * row_bytes);
      arch::cp_async_16(to + (pixels + i * kRows) * kRowBytes, from, bytes);
    }
    index_ += kTerms, weight_ += kRowBytes;
    advance_term(params_, term_);
  }

 private:
  static constexpr int64_t kElement = sizeof(T);
  static constexpr int kVector = kChunkBytes / static_cast<int>(sizeof(T));
  static constexpr int kTerms = kRowBytes / static_cast<int>(sizeof(T));  // per stage
  static constexpr int kRows = threads / kChunks;                         // at a time
  static constexpr int kPixels = pixels / kRows, kChannels = channels / kRows;
  static_assert(pixels % kRows == 0 && channels % kRows == 0);
  __device__ static int thread() {
    return static_cast<int>(threadIdx.x);
  }
  __device__ static int first_row() {
    return thread() / kChunks;
  }

  const ConvGemmParams& params_;
  // Addresses as integers: those of missing elements are formed, but not read.
  uintptr_t x_;
  int32_t index_;  ///< of the first term of this thread's chunk
  ConvTerm<kAxes> term_;
  uintptr_t weight_;  ///< that term in the thread's first row
  int rows_left_;
  ConvPixel<kAxes> pixels_[kPixels];
};

/// Pixels by elements.
template <class T, int kAxes, int pixels, int threads>
class ConvGather {
 public:
  static constexpr int kVector = kChunkBytes / static_cast<int>(sizeof(T));
  static constexpr int kTerms = kRowBytes / static_cast<int>(sizeof(T));  // per stage
  static constexpr int kTableBytes = 2 * kTerms * static_cast<int>(sizeof(ConvTermPlace<kAxes>));
  /// One thread's chunks of two in a stage: neighbouring threads, neighbouring pixels.
  static constexpr int kChunksOfPair = 2 * pixels / threads;
  static_assert(kChunksOfPair == 1 || kChunksOfPair == 2);
  /// One register per value: packed, they would have to arrive before products are issued.
  using Values = T[kChunksOfPair][kVector];

  /// `terms`: kTableBytes of shared memory.
  __device__ ConvGather(const ConvGemmParams& params, const T* x, int64_t first_pixel, char* terms)
      : params_(params),
        pixel_(locate_pixel<kAxes>(params, first_pixel + thread() % pixels)),
        x_(reinterpret_cast<uintptr_t>(x) + pixel_.x * static_cast<int64_t>(sizeof(T))),
        terms_(reinterpret_cast<ConvTermPlace<kAxes>*>(terms)),
        index_(thread()) {
    if (thread() < kTerms) term_ = locate_term<kAxes>(params, thread());
  }

  /// The terms of stages 0, 1, .. in turn; two are kept. They may be read after a barrier.
  __device__ void describe_next() {
    if (thread() >= kTerms) return;
    terms_[slot_ + thread()] = place_of(params_, term_, index_);
    slot_ = kTerms - slot_;
    index_ += kTerms;
    advance_term(params_, term_);
  }

  /// This thread's part of chunks 2 * pair and the next of `stage`.
  __device__ void fetch(int64_t stage, int pair, Values& values) const {
#pragma unroll
    for (int i = 0; i < kChunksOfPair; ++i) {
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        const ConvTermPlace<kAxes> place = terms(stage)[chunk_of(pair, i) * kVector + e];
        const uintptr_t from = x_ + place.x * static_cast<int64_t>(sizeof(T));
        values[i][e] = has_term(params_.conv, pixel_, place)
                           ? arch::load(reinterpret_cast<const T*>(from))
                           : T{};
      }
    }
  }
  __device__ void put(char* tile, int pair, const Values& values) const {
#pragma unroll
    for (int i = 0; i < kChunksOfPair; ++i) {
      Vec16<T> chunk;
#pragma unroll
      for (int e = 0; e < kVector; ++e) chunk.v[e] = values[i][e];
      char* to = tile + chunk_offset<1>(thread() % pixels, chunk_of(pair, i));
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&chunk);
    }
  }

  /// The stage's terms of the weight's rows, with any strides.
  template <int rows>
  __device__ void load_weights(char* tile, const Source<T>& weight, int64_t stage) const {
#pragma unroll 4
    for (int i = 0; i < rows * kTerms / threads; ++i) {
      const int row = (thread() + i * threads) / kTerms, term = (thread() + i * threads) % kTerms;
      const ConvTermPlace<kAxes> place = terms(stage)[term];
      const bool is_there = row < weight.num_rows && place.row != kNoRow;
      const T value = is_there ? weight.base[row * weight.row_stride + place.weight] : T{};
      char* chunk = tile + chunk_offset<1>(row, term / kVector);
      reinterpret_cast<T*>(chunk)[term % kVector] = value;
    }
  }

 private:
  __device__ static int thread() {
    return static_cast<int>(threadIdx.x);
  }
  __device__ static int chunk_of(int pair, int i) {
    return 2 * pair + i + thread() / pixels;
  }
  __device__ const ConvTermPlace<kAxes>* terms(int64_t stage) const {
    return terms_ + stage % 2 * kTerms;
  }

  const ConvGemmParams& params_;
  ConvPixel<kAxes> pixel_;
  uintptr_t x_;  ///< the pixel's first term: an integer, as it may be padding
  ConvTermPlace<kAxes>* terms_;
  int32_t slot_ = 0;
  int32_t index_;
  ConvTerm<kAxes> term_{};
};

}  // namespace wide::kernels
