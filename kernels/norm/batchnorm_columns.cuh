// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A block's tile of columns, channels of one position each: which thread has which elements, and
// how they move. A thread has sixteen bytes of columns of every `rows`-th row, whatever their
// alignment and however wide the tile, and sums go up one tree: no bit of a sum depends on these.
// Tiles that are not aligned are staged as in norm_staged.cuh, packed rows of few columns as one
// run.
#pragma once

#include <type_traits>

#include "kernels/norm/batchnorm_channel.cuh"

namespace wide::kernels {

constexpr uint32_t kColumnThreads = 512;  ///< per block, at most
constexpr uint32_t kColumnWarps = kColumnThreads / kWarp;

/// How columns are cut for blocks; uniform over a launch.
struct ColumnCut {
  bool is_aligned = false;  ///< sixteen bytes of columns are one access
  bool is_kept = false;     ///< a block holds its tile in shared memory
  uint32_t lanes = 0;       ///< threads along a row, a power of two
  uint32_t rows = 0;        ///< threads along a column, a power of two
  uint32_t columns = 0;     ///< of all members
  uint32_t row_tiles = 1, rows_per_block = 0;
  StagedSide x{}, y{};

  __host__ __device__ uint32_t threads() const { return lanes * rows; }
  __host__ __device__ uint32_t warps() const { return threads() / kWarp; }
  /// Floats for one of each column, where a thread has `size` columns: the second four of eight lie
  /// apart, so that neither threads of a row nor those of columns meet in a bank.
  __host__ __device__ uint32_t pitch(uint32_t size) const {
    return size == 4 ? 4 * lanes : 2 * apart();
  }
  __host__ __device__ uint32_t apart() const { return 4 * lanes | 16; }
};

/// A block's rows and columns. In shared memory: its chunks, where they are kept; x as it lies in
/// memory, where it is staged; sums and what columns share.
template <class T>
class ColumnTile {
 public:
  static constexpr uint32_t kSize = Vec16<T>::kSize;
  /// A thread's values of each of its columns.
  using Values = float[kSize];

  __device__ ColumnTile(const BatchnormParams& p, const ColumnCut& cut, uint4* shared)
      : cut_(cut), x_stride_(p.x_strides.batch), y_stride_(p.y_strides.batch) {
    const uint32_t tile = blockIdx.x / cut.row_tiles;
    const uint32_t row = (blockIdx.x - tile * cut.row_tiles) * cut.rows_per_block;
    rows_ = min(cut.rows_per_block, static_cast<uint32_t>(p.batch) - row);
    first_ = tile * width();
    columns_ = min(width(), cut.columns - first_);
    x_ = static_cast<const T*>(p.x) + row * x_stride_ + first_;
    y_ = static_cast<T*>(p.y) + row * y_stride_ + first_;
    row_ = threadIdx.x / cut.lanes;
    lane_ = threadIdx.x - row_ * cut.lanes;
    count_ = lane_ * kSize < columns_ ? min(kSize, columns_ - lane_ * kSize) : 0;
    kept_ = reinterpret_cast<Vec16<T>*>(shared);
    brought_ = kept_ + (cut.is_kept ? cut.rows_per_block * cut.lanes : 0);
    sums_ = reinterpret_cast<float*>(
        brought_ +
        (is_staged() ? cut.x.cut.pitch / kSize * (cut.x.is_joined ? 1 : cut.rows_per_block) : 0));
  }

  __device__ uint32_t width() const { return cut_.lanes * kSize; }
  __device__ bool is_staged() const { return cut_.is_kept && !cut_.is_aligned; }

  /// Calls f(column of the tile, its number among all members' channels), a thread for each.
  template <class F>
  __device__ void for_columns(const F& f) const {
    for (uint32_t c = threadIdx.x; c < columns_; c += cut_.threads()) f(c, first_ + c);
  }
  /// What the block's columns share, in turn after the sums: a place for each column.
  __device__ float& shared_by_columns(uint32_t which, uint32_t column) const {
    return sums_[(2 * cut_.warps() + which) * cut_.pitch(kSize) + place_of(column)];
  }
  /// Zeros there for columns that do not exist: threads take whole chunks.
  __device__ void clear(uint32_t end) const {
    if (columns_ == width()) return;
    for (uint32_t i = threadIdx.x; i < end * width(); i += cut_.threads()) {
      const uint32_t which = i / width(), column = i - which * width();
      if (column >= columns_) shared_by_columns(which, column) = 0.0f;
    }
  }
  /// This thread's columns of what is shared.
  __device__ void take(Values& values, uint32_t which) const {
#pragma unroll
    for (uint32_t e = 0; e < kSize; e += 4) {
      const float4 four =
          *reinterpret_cast<const float4*>(&shared_by_columns(which, lane_ * kSize + e));
      values[e] = four.x, values[e + 1] = four.y, values[e + 2] = four.z, values[e + 3] = four.w;
    }
  }

  /// Copies the tile to shared memory: each thread its own chunks, or runs as they lie. kStaged:
  /// always runs.
  template <bool kStaged>
  __device__ void bring() const {
    if (!kStaged && cut_.is_aligned) {
      for_each_row([&](uint32_t row, uint32_t place) {
        arch::cp_async_16(kept_ + place, x_ + row * x_stride_ + lane_ * kSize, 16);
      });
      arch::cp_async_commit();
      arch::cp_async_wait<0>();
      return;
    }
    bring_whole_runs(brought_->v, cut_.x.cut, num_runs(cut_.x), length(cut_.x),
                     [&](int run) { return x_ + run * x_stride_; });
    for_each_row([&](uint32_t row, uint32_t place) {
      const uint32_t element = cut_.x.is_joined
                                   ? phase_of(x_) + row * columns_
                                   : row * cut_.x.cut.pitch + phase_of(x_ + row * x_stride_);
      kept_[place] = vec16_across(brought_, element + lane_ * kSize, count_);
    });
  }

  /// Calls f(chunks, row of the first, is_whole) for kAtOnce rows of the thread at a time, all
  /// loads before the first use; unless `is_whole`, which is a type, exists() says of each whether
  /// there is one.
  template <bool kKeeps, class F>
  __device__ void for_each(const F& f) const {
    if (count_ == 0) return;
    Vec16<T> chunks[kAtOnce];
    uint32_t row = row_;
    for (; exists(row, kAtOnce - 1); row += kAtOnce * cut_.rows) {
      load<kKeeps, true>(chunks, row);
      f(chunks, row, std::true_type{});
    }
    if (row >= rows_) return;
    load<kKeeps, false>(chunks, row);
    f(chunks, row, std::false_type{});
  }
  /// Whether there is a chunk `c` behind the one of `row`.
  __device__ bool exists(uint32_t row, uint32_t c) const {
    return row + c * cut_.rows < rows_;
  }

  template <bool kKeeps>
  __device__ void store(uint32_t row, uint32_t c, const Vec16<T>& values) const {
    row += c * cut_.rows;
    T* to = y_ + row * y_stride_ + lane_ * kSize;
    if (cut_.is_aligned) return store_vec16(to, values);
    if constexpr (kKeeps) {
      kept_[row * cut_.lanes + lane_] = values;
    } else {
#pragma unroll
      for (uint32_t e = 0; e < kSize; ++e) {
        if (e < count_) to[e] = values.v[e];
      }
    }
  }

  /// Where chunks were stored to shared memory, writes y from there.
  __device__ void write() const {
    __syncthreads();
    const auto place_of = [&](int run, int element, uint32_t& column) {
      const uint32_t row =
          cut_.y.is_joined ? static_cast<uint32_t>(element) / columns_ : static_cast<uint32_t>(run);
      column = static_cast<uint32_t>(element) - (cut_.y.is_joined ? row * columns_ : 0);
      return row * width() + column;
    };
    write_runs_of<T>(
        cut_.y.cut, num_runs(cut_.y), length(cut_.y), team(),
        [&](int run) { return y_ + run * y_stride_; },
        [&](int run, int, int element) {
          uint32_t column;
          return kept_->v[place_of(run, element, column)];
        },
        [&](int run, int, int element) {
          uint32_t column, place = place_of(run, element, column);
          if (column + kSize <= columns_) return vec16_across(kept_, place, kSize);
          Vec16<T> values;
#pragma unroll
          for (uint32_t e = 0; e < kSize; ++e) {
            values.v[e] = kept_->v[place++];
            if (++column < columns_) continue;
            column = 0;
            place += width() - columns_;
          }
          return values;
        });
  }

  /// Adds up `parts` sums of each column over the block; sum() has them after a barrier.
  template <int parts>
  __device__ void add_up(Values (&values)[parts]) const {
    const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      for (uint32_t distance = cut_.lanes; distance < kWarp; distance *= 2) {
#pragma unroll
        for (float& value : values[part]) value += __shfl_xor_sync(0xffffffffu, value, distance);
      }
      if (lane >= cut_.lanes) continue;
      float* to = sums_ + (part * cut_.warps() + warp) * cut_.pitch(kSize);
#pragma unroll
      for (uint32_t e = 0; e < kSize; e += 4) {
        *reinterpret_cast<float4*>(to + place_of(lane_ * kSize + e)) = {
            values[part][e], values[part][e + 1], values[part][e + 2], values[part][e + 3]};
      }
    }
  }
  /// The warps' sums of a column go on up the tree that their lanes began.
  __device__ float sum(uint32_t column, uint32_t part = 0) const {
    const uint32_t pitch = cut_.pitch(kSize);
    const float* from = sums_ + part * cut_.warps() * pitch + place_of(column);
    float sums[kColumnWarps];
#pragma unroll
    for (uint32_t w = 0; w < kColumnWarps; ++w) {
      sums[w] = w < cut_.warps() ? from[w * pitch] : 0.0f;
    }
#pragma unroll
    for (uint32_t step = 1; step < kColumnWarps; step *= 2) {
#pragma unroll
      for (uint32_t w = 0; w < kColumnWarps; w += 2 * step) sums[w] += sums[w + step];
    }
    return sums[0];
  }

 private:
  /// Calls f(row, place of the thread's chunk of it among those kept).
  template <class F>
  __device__ void for_each_row(const F& f) const {
    if (count_ == 0) return;
    uint32_t place = threadIdx.x;
#pragma unroll 4
    for (uint32_t row = row_; row < rows_; row += cut_.rows, place += cut_.threads()) f(row, place);
  }

  /// Of a column among those that share something.
  __device__ uint32_t place_of(uint32_t column) const {
    if constexpr (kSize == 4) return column;
    return column / 8 * 4 + column % 4 + (column % 8 < 4 ? 0 : cut_.apart());
  }

  template <bool kKeeps, bool kIsWhole>
  __device__ void load(Vec16<T> (&chunks)[kAtOnce], uint32_t row) const {
    const T* from = x_ + row * x_stride_ + lane_ * kSize;
    const Vec16<T>* kept = kept_ + row * cut_.lanes + lane_;
    const int64_t step = cut_.rows * x_stride_;
#pragma unroll
    for (uint32_t c = 0; c < kAtOnce; ++c) {
      const bool is_row = kIsWhole || exists(row, c);
      if constexpr (kKeeps) {
        if (is_row) chunks[c] = kept[c * cut_.threads()];
      } else if (cut_.is_aligned) {
        chunks[c] = load_vec16_if(from + c * step, is_row);
      } else {
#pragma unroll
        for (uint32_t e = 0; e < kSize; ++e) {
          chunks[c].v[e] = is_row && e < count_ ? from[c * step + e] : from_float<T>(0.0f);
        }
      }
    }
  }
  __device__ static StagingTeam team() {
    return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  }
  __device__ int num_runs(const StagedSide& side) const {
    return side.is_joined ? 1 : static_cast<int>(rows_);
  }
  __device__ int length(const StagedSide& side) const {
    return static_cast<int>(columns_ * (side.is_joined ? rows_ : 1));
  }

  const ColumnCut& cut_;
  int64_t x_stride_, y_stride_;
  uint32_t rows_, columns_, first_;  ///< of the block: its rows and columns, its first column
  uint32_t row_, lane_;              ///< this thread's first row, its place along a row
  uint32_t count_;                   ///< columns of this thread
  const T* x_;
  T* y_;
  Vec16<T>*kept_, *brought_;
  float* sums_;
};

}  // namespace wide::kernels
