// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y = (x - mean[n, c]) / sqrt(variance[n, c] + epsilon) * gamma[n, c] + beta[n, c]
//
// Plan: blocks work on slices, one channel of one member each. eval streams: a block takes four
// chunks of sixteen bytes a thread of one slice, all loads before the first store. train gives a
// slice to one block, which reads it once into shared memory, each thread to places of its own (so
// only the sums need barriers), and writes it once; a slice that no block can hold is read three
// times, the first time a part of it only. Statistics, in fp32: a first mean m from the kept slice,
// or from a sample of s of its M values; then d = x - m, and from d both the correction of the mean
// and the variance. |m - mean|^2 is at most M / s variances, since the sample's part of the sum of
// squares is no more than all of it: the offset of a channel is gone after the subtraction.
// Source of the method: Chan, Golub, LeVeque, "Algorithms for Computing the Sample Variance", 1983.
// Limits: 2^31 - 1 values a slice; few slices that are not kept leave multiprocessors idle.
#include <algorithm>
#include <bit>

#include "kernels/common/dispatch.hpp"
#include "kernels/norm/batchnorm_slice.cuh"
#include "kernels/norm/norm_row.cuh"

namespace wide::kernels {

namespace {

constexpr uint32_t kAtOnce = 4;  ///< chunks that a thread has under way
constexpr uint32_t kEvalThreads = 256, kTrainThreads = 1024;  ///< of a block, at most
/// Of sums and a little more, beside the slice.
constexpr int64_t kStaticSharedBytes = 1024;

template <class T>
__global__ void __launch_bounds__(kEvalThreads)
    batchnorm_eval_kernel(const __grid_constant__ BatchnormParams p, bool is_aligned,
                          uint32_t blocks_per_slice) {
  const uint32_t index = blockIdx.x / blocks_per_slice;
  const BatchnormSlice<T> slice(p, index, is_aligned);
  const uint32_t first =
      (blockIdx.x - index * blocks_per_slice) * kAtOnce * blockDim.x + threadIdx.x;
  Vec16<T> chunks[kAtOnce];
#pragma unroll
  for (uint32_t c = 0; c < kAtOnce; ++c) chunks[c] = slice.load(first + c * blockDim.x);
  const float mean = slice.running_mean();
  const float scale = slice.gamma() / sqrtf(slice.running_variance() + slice.epsilon());
  const float shift = slice.beta();
#pragma unroll
  for (uint32_t c = 0; c < kAtOnce; ++c) {
#pragma unroll
    for (int i = 0; i < Vec16<T>::kSize; ++i) {
      chunks[c].v[i] = from_float<T>((to_float(chunks[c].v[i]) - mean) * scale + shift);
    }
    slice.store(first + c * blockDim.x, chunks[c]);
  }
}

/// Calls f(number, chunk) for this thread's chunks below `end`, kAtOnce of them fetched at a time.
template <class T, class Fetch, class F>
__device__ void for_each_chunk(uint32_t end, const Fetch& fetch, const F& f) {
  for (uint32_t first = threadIdx.x; first < end; first += kAtOnce * blockDim.x) {
    Vec16<T> chunks[kAtOnce];
#pragma unroll
    for (uint32_t c = 0; c < kAtOnce; ++c) {
      const uint32_t number = first + c * blockDim.x;
      if (number < end) chunks[c] = fetch(number);
    }
#pragma unroll
    for (uint32_t c = 0; c < kAtOnce; ++c) {
      const uint32_t number = first + c * blockDim.x;
      if (number < end) f(number, chunks[c]);
    }
  }
}

/// By one thread; what is not a number stays so.
template <class T>
__device__ void update_running(const BatchnormSlice<T>& slice, float mean, float variance,
                               float count) {
  const float momentum = slice.momentum();
  const float unbiased = variance * (count / (count - 1.0f));
  slice.running_mean() = (1.0f - momentum) * slice.running_mean() + momentum * mean;
  slice.running_variance() = (1.0f - momentum) * slice.running_variance() + momentum * unbiased;
}

template <class T, bool is_kept>
__global__ void __launch_bounds__(kTrainThreads)
    batchnorm_train_kernel(const __grid_constant__ BatchnormParams p, bool is_aligned) {
  extern __shared__ uint4 shared_bits[];
  __shared__ SumPlaces places;
  auto* kept = reinterpret_cast<Vec16<T>*>(shared_bits);
  const BatchnormSlice<T> slice(p, blockIdx.x, is_aligned);
  const int num_warps = static_cast<int>(blockDim.x) / kWarp;
  const uint32_t end = slice.num_chunks();
  const uint32_t sampled = is_kept ? end : min(end, kAtOnce * blockDim.x);
  const auto load = [&](uint32_t number) { return slice.load(number); };
  const auto fetch = [&](uint32_t number) { return is_kept ? kept[number] : slice.load(number); };

  float sum = 0.0f;
  for_each_chunk<T>(sampled, load, [&](uint32_t number, const Vec16<T>& chunk) {
#pragma unroll
    for (int i = 0; i < Vec16<T>::kSize; ++i) sum += to_float(chunk.v[i]);
    if (is_kept) kept[number] = chunk;
  });
  const float rough_mean =
      sum_over_warps(sum, places[0], num_warps) / static_cast<float>(slice.num_values(sampled));

  float rest = 0.0f, squares = 0.0f;
  for_each_chunk<T>(end, fetch, [&](uint32_t number, const Vec16<T>& chunk) {
    const uint32_t exist = slice.count_of(number);
#pragma unroll
    for (uint32_t i = 0; i < Vec16<T>::kSize; ++i) {
      const float d = i < exist ? to_float(chunk.v[i]) - rough_mean : 0.0f;
      rest += d;
      squares += d * d;
    }
  });
  const auto count = static_cast<float>(slice.num_values(end));
  const float mean = sum_over_warps(rest, places[1], num_warps) / count;
  const float difference = sum_over_warps(squares, places[2], num_warps) / count - mean * mean;
  const float variance = difference < 0.0f ? 0.0f : difference;
  if (threadIdx.x == 0) update_running(slice, rough_mean + mean, variance, count);

  const float scale = slice.gamma() / sqrtf(variance + slice.epsilon());
  const float shift = slice.beta();
  for_each_chunk<T>(end, fetch, [&](uint32_t number, const Vec16<T>& chunk) {
    Vec16<T> out;
#pragma unroll
    for (int i = 0; i < Vec16<T>::kSize; ++i) {
      out.v[i] = from_float<T>((to_float(chunk.v[i]) - rough_mean - mean) * scale + shift);
    }
    slice.store(number, out);
  });
}

bool is_aligned16(const void* address, const ChannelStrides& s, const BatchnormParams& p,
                  int64_t elements) {
  const bool has_rows = p.height > 1 && s.row != p.width;
  const int64_t strides = s.batch | s.member | s.channel | p.height * p.width;
  return !has_rows && strides % elements == 0 && reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

/// Threads for so many chunks, each with kAtOnce of them: whole warps, a power of two.
unsigned threads_for(int64_t chunks, uint32_t most) {
  const auto wanted = static_cast<uint64_t>((chunks + kAtOnce - 1) / kAtOnce);
  return static_cast<unsigned>(std::clamp<uint64_t>(std::bit_ceil(wanted), kWarp, most));
}

template <class T>
int64_t chunks_of(const BatchnormParams& p) {
  constexpr int64_t size = Vec16<T>::kSize;
  return p.batch * ((p.height * p.width + size - 1) / size);
}

template <class T>
bool is_aligned16(const BatchnormParams& p) {
  return is_aligned16(p.x, p.x_strides, p, Vec16<T>::kSize) &&
         is_aligned16(p.y, p.y_strides, p, Vec16<T>::kSize);
}

template <class T>
cudaError_t launch_eval(const BatchnormParams& p, cudaStream_t stream) {
  const int64_t chunks = chunks_of<T>(p), slices = p.num_members * p.channels;
  const unsigned threads = threads_for(chunks, kEvalThreads);
  const int64_t blocks_per_slice = (chunks - 1) / (kAtOnce * threads) + 1;
  if (slices > 0x7fffffff / blocks_per_slice) return cudaErrorInvalidConfiguration;
  batchnorm_eval_kernel<T>
      <<<static_cast<unsigned>(slices * blocks_per_slice), threads, 0, stream>>>(
          p, is_aligned16<T>(p), static_cast<uint32_t>(blocks_per_slice));
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_train(const BatchnormParams& p, int64_t shared_bytes, cudaStream_t stream) {
  const int64_t chunks = chunks_of<T>(p), slices = p.num_members * p.channels;
  if (slices > 0x7fffffff) return cudaErrorInvalidConfiguration;
  const auto blocks = static_cast<unsigned>(slices);
  const unsigned threads = threads_for(chunks, kTrainThreads);
  if (chunks > (shared_bytes - kStaticSharedBytes) / 16) {
    batchnorm_train_kernel<T, false><<<blocks, threads, 0, stream>>>(p, is_aligned16<T>(p));
    return cudaGetLastError();
  }
  const auto bytes = static_cast<int>(chunks * 16);
  const cudaError_t status = cudaFuncSetAttribute(
      batchnorm_train_kernel<T, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  batchnorm_train_kernel<T, true>
      <<<blocks, threads, static_cast<size_t>(bytes), stream>>>(p, is_aligned16<T>(p));
  return cudaGetLastError();
}

bool is_empty(const BatchnormParams& p) {
  return p.num_members * p.channels * p.batch * p.height * p.width == 0;
}

}  // namespace

cudaError_t launch_batchnorm_eval(Dtype dtype, const BatchnormParams& p, cudaStream_t stream) {
  if (is_empty(p)) return cudaSuccess;
  return dispatch_float(
      dtype, [&](auto type) { return launch_eval<typename decltype(type)::type>(p, stream); });
}

cudaError_t launch_batchnorm_train(Dtype dtype, const BatchnormParams& p,
                                   int64_t shared_bytes_per_block, cudaStream_t stream) {
  if (is_empty(p)) return cudaSuccess;
  return dispatch_float(dtype, [&](auto type) {
    return launch_train<typename decltype(type)::type>(p, shared_bytes_per_block, stream);
  });
}

}  // namespace wide::kernels
