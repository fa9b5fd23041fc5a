// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y = (x - mean[n, c]) / sqrt(variance[n, c] + epsilon) * gamma[n, c] + beta[n, c]
//
// Plan: blocks work on slices, one channel of one member each. eval streams: a block takes four
// chunks of sixteen bytes per thread of one slice, all loads before the first store; where chunks
// are not aligned it traverses the images in memory order, across channels, like elementwise
// functions (packed_runs.cuh). train gives a slice to one block, or several short ones
// (norm_launch.cuh), which reads and writes it once where it can hold it. Channels of one position
// that lie side by side are columns of a matrix: batchnorm_columns.cu. Limits: 2^31 - 1 values a
// slice, and as many slices, in eval blocks; few slices that are not held leave multiprocessors
// idle, and unaligned ones are moved one by one.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/norm/batchnorm_channel.cuh"
#include "kernels/norm/batchnorm_columns.hpp"
#include "kernels/norm/norm_blocks.hpp"
#include "kernels/norm/norm_launch.cuh"
#include "kernels/pointwise/packed_runs.cuh"

namespace wide::kernels {

namespace {

constexpr uint32_t kEvalThreads = 256;  ///< per block, at most

template <class T>
__device__ NormSlice<T> slice_of(const BatchnormChannel<T>& channel, bool is_aligned,
                                 const Divisor32& by_run) {
  const BatchnormParams& p = channel.p;
  const auto* x = static_cast<const T*>(p.x) + channel.base_of(p.x_strides);
  auto* y = static_cast<T*>(p.y) + channel.base_of(p.y_strides);
  return {{x, p.x_strides.batch, p.x_strides.row},
          {y, p.y_strides.batch, p.y_strides.row},
          p.batch,
          p.height,
          p.width,
          is_aligned,
          by_run};
}

template <class T>
__global__ void __launch_bounds__(kEvalThreads)
    batchnorm_eval_kernel(const __grid_constant__ BatchnormParams p, bool is_aligned,
                          const __grid_constant__ Divisor32 by_run, uint32_t blocks_per_slice) {
  const uint32_t index = blockIdx.x / blocks_per_slice;
  const BatchnormChannel<T> channel(p, index);
  const NormSlice<T> slice = slice_of(channel, is_aligned, by_run);
  const uint32_t first =
      (blockIdx.x - index * blocks_per_slice) * kAtOnce * blockDim.x + threadIdx.x;
  Vec16<T> chunks[kAtOnce];
  arch::follow_grid();
  slice.load(chunks, first, blockDim.x);
  const float mean = channel.running_mean();
  const float scale = channel.scale(channel.running_variance()), shift = channel.shift();
#pragma unroll
  for (uint32_t c = 0; c < kAtOnce; ++c) {
#pragma unroll
    for (int i = 0; i < Vec16<T>::kSize; ++i) {
      chunks[c].v[i] = from_float<T>((to_float(chunks[c].v[i]) - mean) * scale + shift);
    }
    slice.store(first + c * blockDim.x, chunks[c]);
  }
}

template <class T>
__global__ void __launch_bounds__(kPackedThreads)
    batchnorm_ragged_eval_kernel(const __grid_constant__ BatchnormParams p,
                                 const __grid_constant__ PackedParams packed,
                                 const __grid_constant__ PackedCut cut) {
  const auto apply = [&]<int kSize>(float(&values)[kSize], const float(&)[kSize],
                                    const PackedPlace& place) {
    PackedSpot spot(cut, place);
    float mean, scale, shift;
    const auto enter_channel = [&] {
      const BatchnormChannel<T> channel(p, static_cast<uint32_t>(spot.member));
      mean = channel.running_mean();
      scale = channel.scale(channel.running_variance());
      shift = channel.shift();
    };
    enter_channel();
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      if (e > 0) {
        spot.advance(cut, 1);
        if (spot.feature == 0) enter_channel();
      }
      values[e] = (values[e] - mean) * scale + shift;
    }
  };
  arch::follow_grid();
  apply_packed<false, T>(packed, cut, apply);
}

template <class T, bool is_kept>
__global__ void __launch_bounds__(kSliceThreads, 1)
    batchnorm_train_kernel(const __grid_constant__ BatchnormParams p,
                           const __grid_constant__ SliceAccess access) {
  const auto slice_at = [&](uint32_t number) {
    return slice_of(BatchnormChannel<T>(p, number), access.is_aligned, access.by_run);
  };
  const auto function_of = [&](uint32_t number, const NormSlice<T>&, const SliceMoments& m,
                               bool is_first) {
    const BatchnormChannel<T> channel(p, number);
    if (is_first) channel.follow(m);
    const float scale = channel.scale(m.variance), shift = channel.shift();
    return [m, scale, shift](uint32_t, const Vec16<T>& chunk) {
      Vec16<T> out;
#pragma unroll
      for (int i = 0; i < Vec16<T>::kSize; ++i) {
        out.v[i] = from_float<T>((to_float(chunk.v[i]) - m.rough_mean - m.mean) * scale + shift);
      }
      return out;
    };
  };
  arch::follow_grid();
  normalize_slices<T, is_kept>(access, slice_at, function_of);
}

/// Channels of all members as a packed tensor's members; no rows where they are not contiguous.
PackedParams packed_channels(const BatchnormParams& p) {
  const auto is_packed = [&](const ChannelStrides& s) {
    return (p.height == 1 || s.row == p.width) &&
           (p.num_members == 1 || p.channels == 1 || s.member == p.channels * s.channel);
  };
  PackedParams packed;
  if (!is_packed(p.x_strides) || !is_packed(p.y_strides)) return packed;
  const auto stride_of = [&](const ChannelStrides& s) {
    return p.channels == 1 ? s.member : s.channel;
  };
  packed.x = p.x;
  packed.y = p.y;
  packed.num_members = p.num_members * p.channels;
  packed.rows = p.batch;
  packed.features = p.height * p.width;
  packed.x_row_stride = p.x_strides.batch;
  packed.y_row_stride = p.y_strides.batch;
  packed.x_member_stride = stride_of(p.x_strides);
  packed.y_member_stride = stride_of(p.y_strides);
  return packed;
}

template <class T>
cudaError_t launch_ragged_eval(const BatchnormParams& p, const PackedParams& packed,
                               cudaStream_t stream) {
  const PackedParams joined = joined_runs<T>(packed);
  const PackedCut cut = cut_runs<T>(joined, packed);
  return launch_packed(joined, cut, [&](unsigned blocks) {
    return launch_kernel(batchnorm_ragged_eval_kernel<T>, blocks, kPackedThreads, 0, stream, p,
                         joined, cut);
  });
}

template <class T>
cudaError_t launch_eval(const BatchnormParams& p, cudaStream_t stream) {
  static_assert(kEvalChunks == kAtOnce * kEvalThreads);
  const int64_t blocks_per_slice = batchnorm_eval_blocks(p, Vec16<T>::kSize);
  const int64_t blocks = block_product({p.num_members, p.channels, blocks_per_slice});
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const bool is_aligned = is_aligned16<T>(p);
  const PackedParams packed = packed_channels(p);
  if (!is_aligned && packed.rows > 0) return launch_ragged_eval<T>(p, packed, stream);
  const unsigned threads = slice_threads(chunks_of<T>(p, p.batch), kEvalThreads);
  return launch_kernel(batchnorm_eval_kernel<T>, static_cast<unsigned>(blocks), threads, 0, stream,
                       p, is_aligned, divisor_of_runs<T>(p),
                       static_cast<uint32_t>(blocks_per_slice));
}

}  // namespace

cudaError_t launch_batchnorm_eval(Dtype dtype, const BatchnormParams& p, cudaStream_t stream) {
  if (is_empty_norm(p)) return cudaSuccess;
  if (has_columns(p)) return launch_batchnorm_columns_eval(dtype, p, stream);
  return dispatch_float(
      dtype, [&](auto type) { return launch_eval<typename decltype(type)::type>(p, stream); });
}

cudaError_t launch_batchnorm_train(Dtype dtype, const BatchnormParams& p,
                                   int64_t shared_bytes_per_block, cudaStream_t stream) {
  if (is_empty_norm(p)) return cudaSuccess;
  if (has_columns(p)) {
    return launch_batchnorm_columns_train(dtype, p, shared_bytes_per_block, stream);
  }
  return dispatch_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return launch_slices<T, BatchnormParams>(
        {batchnorm_train_kernel<T, true>, batchnorm_train_kernel<T, false>}, p,
        {batchnorm_slices(p, p.num_members), p.batch, p.x_strides.batch, p.y_strides.batch},
        shared_bytes_per_block, stream);
  });
}

}  // namespace wide::kernels
