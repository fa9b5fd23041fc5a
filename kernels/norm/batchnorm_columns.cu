// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// batchnorm_wide.cu's formula for channels of one position each that lie side by side, x [B, N*C]:
// a channel is a column, whose elements are a whole row apart.
//
// Plan: a block has a tile of up to 128 bytes of columns, 256 where it is staged, and in train all
// rows: neighbouring threads take sixteen bytes each of neighbouring columns, others further rows.
// So accesses of aligned tiles are whole sectors, a thread adds its columns in registers, and what
// belongs to a column (parameters, the last sums, the square root) is one thread's work. Tiles are
// narrower where there would be too few blocks. In train a block keeps its tile in shared memory
// where that holds it (7000 rows of 32 bytes, 2800 where it is staged), and reads it three times
// otherwise. Statistics as in norm_moments.cuh, whose rough mean here is that of all rows. Limits:
// few columns leave multiprocessors idle in train; rows that are neither aligned nor kept are moved
// one by one.
#include <algorithm>
#include <bit>

#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/norm/batchnorm_columns.cuh"
#include "kernels/norm/batchnorm_columns.hpp"

namespace wide::kernels {

namespace {

/// What the block's columns share.
enum : uint32_t { kRoughMean, kMean, kScale, kShift, kShared };

/// Mean and variance of the block's columns, into what they share, and into the running statistics.
template <class T, bool kKeeps>
__device__ void take_statistics(const BatchnormParams& p, const ColumnTile<T>& tile) {
  constexpr uint32_t kSize = Vec16<T>::kSize;
  using Values = typename ColumnTile<T>::Values;
  const auto count = static_cast<float>(p.batch);
  // A few rows at a time, whose sums are then added: a single sum would drift.
  Values sums[1]{};
  tile.template for_each<kKeeps>(
      [&](const Vec16<T>(&chunks)[kAtOnce], uint32_t row, auto is_whole) {
        Values some{};
#pragma unroll
        for (uint32_t c = 0; c < kAtOnce; ++c) {
          if (!is_whole && !tile.exists(row, c)) break;
#pragma unroll
          for (uint32_t e = 0; e < kSize; ++e) some[e] += to_float(chunks[c].v[e]);
        }
#pragma unroll
        for (uint32_t e = 0; e < kSize; ++e) sums[0][e] += some[e];
      });
  tile.add_up(sums);
  __syncthreads();
  tile.for_columns(
      [&](uint32_t c, uint32_t) { tile.shared_by_columns(kRoughMean, c) = tile.sum(c) / count; });
  __syncthreads();

  Values rough_mean, moments[2]{};
  tile.take(rough_mean, kRoughMean);
  tile.template for_each<kKeeps>(
      [&](const Vec16<T>(&chunks)[kAtOnce], uint32_t row, auto is_whole) {
        Values rest{}, squares{};
#pragma unroll
        for (uint32_t c = 0; c < kAtOnce; ++c) {
          if (!is_whole && !tile.exists(row, c)) break;
#pragma unroll
          for (uint32_t e = 0; e < kSize; ++e) {
            const float d = to_float(chunks[c].v[e]) - rough_mean[e];
            rest[e] += d;
            squares[e] += d * d;
          }
        }
#pragma unroll
        for (uint32_t e = 0; e < kSize; ++e) moments[0][e] += rest[e], moments[1][e] += squares[e];
      });
  tile.add_up(moments);
  __syncthreads();
  tile.for_columns([&](uint32_t c, uint32_t number) {
    SliceMoments m;
    m.rough_mean = tile.shared_by_columns(kRoughMean, c);
    m.count = count;
    m.mean = tile.sum(c, 0) / count;
    const float variance = tile.sum(c, 1) / count - m.mean * m.mean;
    m.variance = variance < 0.0f ? 0.0f : variance;
    const BatchnormChannel<T> channel(p, number);
    channel.follow(m);
    tile.shared_by_columns(kMean, c) = m.mean;
    tile.shared_by_columns(kScale, c) = channel.scale(m.variance);
    tile.shared_by_columns(kShift, c) = channel.shift();
  });
  __syncthreads();
}

template <class T>
__device__ void take_running_statistics(const BatchnormParams& p, const ColumnTile<T>& tile) {
  tile.for_columns([&](uint32_t c, uint32_t number) {
    const BatchnormChannel<T> channel(p, number);
    tile.shared_by_columns(kMean, c) = channel.running_mean();
    tile.shared_by_columns(kScale, c) = channel.scale(channel.running_variance());
    tile.shared_by_columns(kShift, c) = channel.shift();
  });
  __syncthreads();
}

template <class T, bool kTrains, bool kKeeps>
__global__ void __launch_bounds__(kColumnThreads)
    batchnorm_columns_kernel(const __grid_constant__ BatchnormParams p,
                             const __grid_constant__ ColumnCut cut) {
  extern __shared__ uint4 shared[];
  constexpr uint32_t kSize = Vec16<T>::kSize;
  const ColumnTile<T> tile(p, cut, shared);
  tile.clear(kShared);
  arch::follow_grid();
  if (kKeeps) tile.template bring<!kTrains>();
  if constexpr (kTrains) {
    take_statistics<T, kKeeps>(p, tile);
  } else {
    take_running_statistics(p, tile);
  }
  typename ColumnTile<T>::Values rough_mean{}, mean, scale, shift;
  if (kTrains) tile.take(rough_mean, kRoughMean);
  tile.take(mean, kMean);
  tile.take(scale, kScale);
  tile.take(shift, kShift);
  tile.template for_each<kKeeps>(
      [&](const Vec16<T>(&chunks)[kAtOnce], uint32_t row, auto is_whole) {
#pragma unroll
        for (uint32_t c = 0; c < kAtOnce; ++c) {
          if (!is_whole && !tile.exists(row, c)) break;
          Vec16<T> out;
#pragma unroll
          for (uint32_t e = 0; e < kSize; ++e) {
            const float centred = to_float(chunks[c].v[e]) - rough_mean[e] - mean[e];
            out.v[e] = from_float<T>(centred * scale[e] + shift[e]);
          }
          tile.template store<kKeeps>(row, c, out);
        }
      });
  if (kKeeps && tile.is_staged()) tile.write();
}

/// Finds the cut; see ColumnCut. `most_bytes`: of shared memory that a block may have.
template <class T>
class ColumnCutter {
 public:
  ColumnCutter(const BatchnormParams& p, bool trains, int64_t most_bytes)
      : p_(p), trains_(trains), most_bytes_(most_bytes), columns_(p.num_members * p.channels) {
    cut_.columns = static_cast<uint32_t>(columns_);
    const auto is_fit = [&](const void* address, int64_t row) {
      return kernels::is_aligned(address, row, columns_, kSize, int64_t{sizeof(T)});
    };
    cut_.is_aligned = is_fit(p.x, p.x_strides.batch) && is_fit(p.y, p.y_strides.batch);
  }

  ColumnCut cut() {
    constexpr int64_t kRowsOfThread = 8, kEnoughBlocks = 264;  // twice an H200's multiprocessors
    const auto wanted = static_cast<uint64_t>((p_.batch - 1) / kRowsOfThread + 1);
    const auto rows =
        static_cast<int64_t>(std::clamp<uint64_t>(std::bit_ceil(wanted), 4, trains_ ? 32 : 16));
    const int64_t least = std::max<int64_t>(2, kWarp / rows);
    const auto rows_of = [&](int64_t of_thread) {
      return trains_ ? p_.batch : std::min(p_.batch, of_thread * rows);
    };
    int64_t of_thread = cut_.is_aligned ? 4 * kAtOnce : kAtOnce;
    int64_t lanes = cut_.is_aligned ? 8 : 16;
    set(lanes, rows, rows_of(of_thread));
    const auto has_few_blocks = [&] { return blocks() < kEnoughBlocks; };
    while (!trains_ && has_few_blocks() && of_thread > kAtOnce) {
      set(lanes, rows, rows_of(of_thread /= 2));
    }
    const auto is_too_wide = [&] {
      // Sectors at the ends of narrower tiles that are staged would be asked for twice.
      const bool is_idle = cut_.is_aligned ? has_few_blocks() : columns_ <= lanes * kSize / 2;
      const int64_t bytes = cut_.is_aligned ? kResident * shared_bytes() : shared_bytes();
      return is_idle || bytes > most_bytes_;
    };
    while (lanes > least && is_too_wide()) set(lanes /= 2, rows, rows_of(of_thread));
    if (shared_bytes() > most_bytes_) cut_.is_kept = false;
    return cut_;
  }
  int64_t blocks() const { return block_product({tiles_, cut_.row_tiles}); }
  int64_t shared_bytes() const {
    const int64_t rows = cut_.rows_per_block;
    const int64_t floats = cut_.pitch(kSize) * (kShared + 2 * cut_.warps());
    if (!cut_.is_kept) return floats * 4;
    const int64_t staged =
        cut_.is_aligned ? 0 : cut_.x.cut.pitch * (cut_.x.is_joined ? 1 : rows) * int64_t{sizeof(T)};
    return floats * 4 + rows * cut_.lanes * 16 + staged;
  }

 private:
  static constexpr int64_t kSize = Vec16<T>::kSize;
  static constexpr int64_t kResident = 3;  ///< blocks that a multiprocessor is to hold

  void set(int64_t lanes, int64_t rows, int64_t rows_per_block) {
    const int64_t width = lanes * kSize;
    cut_.lanes = static_cast<uint32_t>(lanes);
    cut_.rows = static_cast<uint32_t>(rows);
    cut_.rows_per_block = static_cast<uint32_t>(rows_per_block);
    tiles_ = (columns_ - 1) / width + 1;
    cut_.row_tiles = static_cast<uint32_t>((p_.batch - 1) / rows_per_block + 1);
    cut_.is_kept = trains_ || !cut_.is_aligned;
    const auto side_of = [&](int64_t stride) {
      const int64_t all = columns_ * rows_per_block;
      const bool is_joined = columns_ <= width && stride == columns_ &&
                             all * int64_t{sizeof(T)} <= most_bytes_;  // what is kept
      const int64_t length = is_joined ? all : width;
      return StagedSide{is_joined, staged_runs(staged_pitch(length, kSize), kSize)};
    };
    if (cut_.is_aligned) return;
    cut_.x = side_of(p_.x_strides.batch);
    cut_.y = side_of(p_.y_strides.batch);
  }

  const BatchnormParams& p_;
  bool trains_;
  int64_t most_bytes_, columns_, tiles_ = 0;
  ColumnCut cut_;
};

template <class T, bool kTrains>
cudaError_t launch_columns(const BatchnormParams& p, int64_t most_bytes, cudaStream_t stream) {
  if (p.num_members * p.channels > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  ColumnCutter<T> cutter(p, kTrains, most_bytes);
  const ColumnCut cut = cutter.cut();
  const int64_t blocks = cutter.blocks(), bytes = cutter.shared_bytes();
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  auto* kernel = cut.is_kept ? batchnorm_columns_kernel<T, kTrains, true>
                             : batchnorm_columns_kernel<T, kTrains, false>;
  const cudaError_t status = allow_shared_bytes(kernel, bytes);
  if (status != cudaSuccess) return status;
  return launch_kernel(kernel, static_cast<unsigned>(blocks), cut.threads(),
                       static_cast<size_t>(bytes), stream, p, cut);
}

}  // namespace

cudaError_t launch_batchnorm_columns_eval(Dtype dtype, const BatchnormParams& p,
                                          cudaStream_t stream) {
  constexpr int64_t kUnasked = 48 * 1024;  // available without asking
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return launch_columns<T, false>(p, kUnasked, stream);
  });
}

cudaError_t launch_batchnorm_columns_train(Dtype dtype, const BatchnormParams& p,
                                           int64_t shared_bytes_per_block, cudaStream_t stream) {
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return launch_columns<T, true>(p, shared_bytes_per_block, stream);
  });
}

}  // namespace wide::kernels
