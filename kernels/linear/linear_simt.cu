// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Batched GEMM on the fp32 units: y[m, i, n] = activation(sum_k x[m, i, k] * weight[i, n, k] +
// bias[i, n]) by fused multiply-adds in fp32, never tf32, all members i in one launch.
//
// Plan: one thread block computes one tile of one member; the grid is one line of (member, tile),
// so no limit of grid.y or grid.z is met. Both operands have k contiguous in memory and keep it so
// in shared memory: a thread reads four values of k of one row with one instruction, which costs
// as many instructions per multiplication as the transposed layout, and lets cp.async bring the
// tiles in without passing through registers, several stages ahead. 16-bit operands stay 16-bit
// until a thread decodes them.
//
// Memory: a tile row is 128 bytes (32 fp32 or 64 16-bit values of k), in eight chunks of 16. Chunk
// c of row r lies at place c ^ (r / group % 8), where `group` is the number of neighbouring rows
// that one thread owns. Eight lanes that fill a row, and eight lanes that read the same chunk of
// eight rows `group` apart, then touch all 32 banks once. In the end the tile's sums take the
// operands' place, so that neighbouring lanes store neighbouring outputs.
//
// Every output is summed by one thread over k upwards, so its bits depend neither on the tile nor
// on what else is in the launch. Beyond k both operands are zero; rows beyond m or n are zero too
// and their sums are not stored.
#include "kernels/linear/linear_simt.hpp"

#include <algorithm>
#include <limits>

#include "kernels/arch/cp_async.cuh"
#include "kernels/common/activation.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/linear/four.cuh"

namespace wide::kernels {

namespace {

constexpr int kRowBytes = 128;  // of a tile in shared memory: all banks once
constexpr int kChunkBytes = 16;
constexpr int kChunks = kRowBytes / kChunkBytes;
constexpr int kColumnGroup = 4;  // neighbouring outputs of a thread: one vector store

struct SimtPolicy {
  int tile_m, tile_n;
  int thread_m, thread_n;  // outputs of one thread
  int stages;              // tiles of k in shared memory at a time
  int unroll;              // of the loop over a stage's k, four of them a step
  int blocks_per_multiprocessor;

  constexpr int threads_m() const { return tile_m / thread_m; }
  constexpr int threads_n() const { return tile_n / thread_n; }
  constexpr int threads() const { return threads_m() * threads_n(); }
  constexpr int row_group() const { return thread_m < 4 ? thread_m : 4; }
  constexpr int x_bytes() const { return tile_m * kRowBytes; }
  constexpr int stage_bytes() const { return (tile_m + tile_n) * kRowBytes; }
  constexpr int shared_bytes() const { return stages * stage_bytes(); }
};

// 40 KiB; with 4 stages a block of m = 16 has a whole fp32 k = 128 under way before it waits.
constexpr SimtPolicy kM16N64{16, 64, 2, 4, 4, 4, 4};
// 48 KiB: what a block gets without asking, four blocks to a multiprocessor of compute
// capability 9.0.
constexpr SimtPolicy kM64N64{64, 64, 8, 4, 3, 2, 4};
// 64 KiB: two blocks fit beside each other on compute capability 8.0 too.
constexpr SimtPolicy kM128N128{128, 128, 8, 8, 2, 1, 2};

static_assert(kM16N64.tile_m == tile_m(LinearSimtTile::m16n64) &&
              kM64N64.tile_m == tile_m(LinearSimtTile::m64n64) &&
              kM128N128.tile_m == tile_m(LinearSimtTile::m128n128) &&
              kM16N64.tile_n == tile_n(LinearSimtTile::m16n64) &&
              kM64N64.tile_n == tile_n(LinearSimtTile::m64n64) &&
              kM128N128.tile_n == tile_n(LinearSimtTile::m128n128));

/// Kernels are named by the tile: nvcc 13.0's host stubs cannot spell a class-type argument.
constexpr SimtPolicy policy_of(LinearSimtTile tile) {
  return tile == LinearSimtTile::m16n64   ? kM16N64
         : tile == LinearSimtTile::m64n64 ? kM64N64
                                          : kM128N128;
}

/// Where row `row`'s chunk `chunk` starts inside a tile.
template <int group>
__device__ int chunk_offset(int row, int chunk) {
  return row * kRowBytes + ((chunk ^ (row / group % kChunks)) * kChunkBytes);
}

/// One operand of a block: rows [0, num_rows) of `base`, k contiguous.
template <class T>
struct Source {
  const T* base;
  int64_t row_stride;
  int num_rows;
  bool is_aligned;
};

/// Begins to bring `rows` rows of the k's from `first_k` on into the tile; k_left of them exist.
template <class T, int rows, int group, int threads>
__device__ void load_tile(char* tile, const Source<T>& source, int64_t first_k, int64_t k_left) {
  constexpr int per_row = kRowBytes / static_cast<int>(sizeof(T));
  const int thread = static_cast<int>(threadIdx.x);
  const int valid_k = static_cast<int>(min(k_left, static_cast<int64_t>(per_row)));
  if (source.is_aligned) {
    constexpr int vector = kChunkBytes / static_cast<int>(sizeof(T));
    constexpr int pieces = rows * kChunks / threads;
    static_assert(pieces * threads == rows * kChunks, "every thread copies equally many chunks");
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const int index = thread + i * threads;
      const int row = index / kChunks, chunk = index % kChunks;
      const int valid = row < source.num_rows ? min(max(valid_k - chunk * vector, 0), vector) : 0;
      // An address is formed only where something is read from it.
      const T* from = valid > 0 ? source.base + row * source.row_stride + first_k + chunk * vector
                                : source.base;
      arch::cp_async_16(tile + chunk_offset<group>(row, chunk), from,
                        valid * static_cast<int>(sizeof(T)));
    }
  } else {
    constexpr int pieces = rows * per_row / threads;
    static_assert(pieces * threads == rows * per_row, "every thread copies equally many elements");
#pragma unroll 8
    for (int i = 0; i < pieces; ++i) {
      const int index = thread + i * threads;
      const int row = index / per_row, column = index % per_row;
      T value = from_float<T>(0.0f);
      if (row < source.num_rows && column < valid_k) {
        value = __ldg(source.base + row * source.row_stride + first_k + column);
      }
      const int byte = column * static_cast<int>(sizeof(T));
      *reinterpret_cast<T*>(tile + chunk_offset<group>(row, byte / kChunkBytes) +
                            byte % kChunkBytes) = value;
    }
  }
}

/// Which row (or column) of the tile a thread's i-th is: groups of neighbours, the groups of all
/// threads beside each other.
template <int group, int threads>
__device__ int owned(int thread, int i) {
  return (i / group * threads + thread) * group + i % group;
}

template <class T, SimtPolicy policy>
__device__ void multiply_tile(const char* x_tile, const char* weight_tile, int thread_m,
                              int thread_n, float (&sums)[policy.thread_m][policy.thread_n]) {
  constexpr int step = 4 * static_cast<int>(sizeof(T));  // bytes of four values of k
  constexpr int group = policy.row_group();
  static_assert(policy.threads_m() % kChunks == 0 && policy.threads_n() % kChunks == 0,
                "a thread's rows all have the same place for a chunk");
  const int x_swizzle = thread_m % kChunks * kChunkBytes;
  const int weight_swizzle = thread_n % kChunks * kChunkBytes;
  // Unrolled further than the policy says, loads are moved up until registers spill.
  constexpr int kUnroll = policy.unroll;
#pragma unroll kUnroll
  for (int byte = 0; byte < kRowBytes; byte += step) {
    float x[policy.thread_m][4];
#pragma unroll
    for (int i = 0; i < policy.thread_m; ++i) {
      const int row = owned<group, policy.threads_m()>(thread_m, i);
      load_four(reinterpret_cast<const T*>(x_tile + row * kRowBytes + (byte ^ x_swizzle)), x[i]);
    }
#pragma unroll
    for (int j = 0; j < policy.thread_n; ++j) {
      const int row = owned<kColumnGroup, policy.threads_n()>(thread_n, j);
      float weight[4];
      load_four(reinterpret_cast<const T*>(weight_tile + row * kRowBytes + (byte ^ weight_swizzle)),
                weight);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < policy.thread_m; ++i) {
          sums[i][j] = fmaf(x[i][k], weight[k], sums[i][j]);
        }
      }
    }
  }
}

/// Where a tile's results go. `y` and `bias` are the tile's first ones.
template <class T>
struct Destination {
  T* y;
  const T* bias;  ///< or null
  int64_t row_stride;
  int num_rows, num_columns;
  bool bias_is_aligned, y_is_aligned;
};

/// Adds the bias to up to four neighbouring sums, activates, rounds and stores.
template <class T>
__device__ void store_run(const Destination<T>& to, Activation activation, int row, int column,
                          int count, float (&values)[4]) {
  const bool is_whole = count == kColumnGroup;
  if (to.bias != nullptr) {
    float biases[kColumnGroup];
    if (is_whole && to.bias_is_aligned) {
      load_four(to.bias + column, biases);
    } else {
      load_some(to.bias + column, count, biases);
    }
#pragma unroll
    for (int e = 0; e < kColumnGroup; ++e) values[e] += biases[e];
  }
  with_activation(activation, [&]<Activation fixed>() {
#pragma unroll
    for (int e = 0; e < kColumnGroup; ++e) values[e] = activate<fixed>(values[e]);
  });
  T* y = to.y + row * to.row_stride + column;
  if (is_whole && to.y_is_aligned) {
    store_four(y, values);
  } else {
    store_some(y, count, values);
  }
}

/// Puts the sums into shared memory as one row-major tile, from where neighbouring lanes store
/// neighbouring outputs: four each where y is aligned, else one. The loops over them are not
/// unrolled, as loops over registers would have to be: 64 copies of erfc spill.
template <class T, SimtPolicy policy>
__device__ void store_tile(const Destination<T>& to, Activation activation, int thread_m,
                           int thread_n, float* tile,
                           const float (&sums)[policy.thread_m][policy.thread_n]) {
  constexpr int elements = policy.tile_m * policy.tile_n, groups = policy.tile_n / kColumnGroup;
  static_assert(elements * 4 <= policy.shared_bytes(), "sums fit where the operands were");
#pragma unroll
  for (int i = 0; i < policy.thread_m; ++i) {
    const int row = owned<policy.row_group(), policy.threads_m()>(thread_m, i);
#pragma unroll
    for (int j = 0; j < policy.thread_n; j += kColumnGroup) {
      const int column = owned<kColumnGroup, policy.threads_n()>(thread_n, j);
      *reinterpret_cast<float4*>(tile + row * policy.tile_n + column) =
          make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  if (to.y_is_aligned) {
#pragma unroll 1
    for (int index = thread; index < elements / kColumnGroup; index += policy.threads()) {
      const int row = index / groups, column = index % groups * kColumnGroup;
      if (row >= to.num_rows || column >= to.num_columns) continue;
      float values[kColumnGroup];
      load_four(tile + row * policy.tile_n + column, values);
      store_run(to, activation, row, column, min(to.num_columns - column, kColumnGroup), values);
    }
  } else {
#pragma unroll 1
    for (int index = thread; index < elements; index += policy.threads()) {
      const int row = index / policy.tile_n, column = index % policy.tile_n;
      if (row >= to.num_rows || column >= to.num_columns) continue;
      float values[kColumnGroup] = {tile[index]};
      store_run(to, activation, row, column, 1, values);
    }
  }
}

template <class T, LinearSimtTile tile_shape>
__global__ void __launch_bounds__(policy_of(tile_shape).threads(),
                                  policy_of(tile_shape).blocks_per_multiprocessor)
    linear_simt(const __grid_constant__ LinearSimtParams params, uint32_t tiles_m,
                uint32_t tiles_n) {
  constexpr SimtPolicy policy = policy_of(tile_shape);
  extern __shared__ __align__(128) char shared[];
  constexpr int per_row = kRowBytes / static_cast<int>(sizeof(T));

  // Locate the tile. Neighbouring blocks share their rows of the weight.
  const uint32_t member = blockIdx.x / (tiles_m * tiles_n);
  const uint32_t tile = blockIdx.x % (tiles_m * tiles_n);
  const int64_t first_m = static_cast<int64_t>(tile % tiles_m) * policy.tile_m;
  const int64_t first_n = static_cast<int64_t>(tile / tiles_m) * policy.tile_n;
  const int num_rows = static_cast<int>(min(params.m - first_m, int64_t{policy.tile_m}));
  const int num_columns = static_cast<int>(min(params.n - first_n, int64_t{policy.tile_n}));
  const Source<T> x{static_cast<const T*>(params.x) + member * params.x_strides.member +
                        first_m * params.x_strides.row,
                    params.x_strides.row, num_rows, params.x_is_aligned};
  const Source<T> weight{static_cast<const T*>(params.weight) +
                             member * params.weight_strides.member +
                             first_n * params.weight_strides.row,
                         params.weight_strides.row, num_columns, params.weight_is_aligned};
  // A warp is 4 x 8 threads: its eight lanes side by side read eight rows of the weight.
  constexpr int warps_n = policy.threads_n() / 8;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int thread_m = warp / warps_n * 4 + lane / 8;
  const int thread_n = warp % warps_n * 8 + lane % 8;

  // Begin the first stages.
  const int64_t num_steps = (params.k + per_row - 1) / per_row;
  const auto load_step = [&](int64_t step, int stage) {
    if (step < num_steps) {
      char* buffer = shared + stage * policy.stage_bytes();
      const int64_t first_k = step * per_row, k_left = params.k - first_k;
      load_tile<T, policy.tile_m, policy.row_group(), policy.threads()>(buffer, x, first_k, k_left);
      load_tile<T, policy.tile_n, kColumnGroup, policy.threads()>(buffer + policy.x_bytes(), weight,
                                                                  first_k, k_left);
    }
    arch::cp_async_commit();  // empty groups keep the count of pending ones
  };
#pragma unroll
  for (int stage = 0; stage < policy.stages - 1; ++stage) load_step(stage, stage);

  // Multiply one stage while the others arrive. The barrier also says that everybody has finished
  // with the stage that is filled next.
  float sums[policy.thread_m][policy.thread_n] = {};
  int stage = 0;
  for (int64_t step = 0; step < num_steps; ++step) {
    arch::cp_async_wait<policy.stages - 2>();
    __syncthreads();
    load_step(step + policy.stages - 1, stage == 0 ? policy.stages - 1 : stage - 1);
    const char* buffer = shared + stage * policy.stage_bytes();
    multiply_tile<T, policy>(buffer, buffer + policy.x_bytes(), thread_m, thread_n, sums);
    stage = stage == policy.stages - 1 ? 0 : stage + 1;
  }
  // The sums take the operands' place. Copies are under way no more: what is still pending are the
  // empty groups behind the last step.
  __syncthreads();

  Destination<T> to;
  to.y = static_cast<T*>(params.y) + member * params.y_strides.member +
         first_m * params.y_strides.row + first_n;
  to.bias = params.bias == nullptr
                ? nullptr
                : static_cast<const T*>(params.bias) + member * params.bias_member_stride + first_n;
  to.row_stride = params.y_strides.row;
  to.num_rows = num_rows, to.num_columns = num_columns;
  to.bias_is_aligned = params.bias_is_aligned, to.y_is_aligned = params.y_is_aligned;
  store_tile<T, policy>(to, params.activation, thread_m, thread_n, reinterpret_cast<float*>(shared),
                        sums);
}

bool is_aligned(const void* pointer, int64_t row, int64_t member, int64_t elements, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(elements * bytes) == 0 &&
         row % elements == 0 && member % elements == 0;
}

template <class T, LinearSimtTile tile>
cudaError_t launch_tile(const LinearSimtParams& params, cudaStream_t stream) {
  constexpr SimtPolicy policy = policy_of(tile);
  constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
  // Each factor is checked before it is used, so that no product can overflow.
  const int64_t tiles_m = (params.m - 1) / policy.tile_m + 1;
  const int64_t tiles_n = (params.n - 1) / policy.tile_n + 1;
  if (tiles_m > kMaxBlocks / tiles_n || params.num_members > kMaxBlocks / (tiles_m * tiles_n)) {
    return cudaErrorInvalidConfiguration;
  }
  if constexpr (policy.shared_bytes() > 48 * 1024) {
    const cudaError_t status = cudaFuncSetAttribute(
        linear_simt<T, tile>, cudaFuncAttributeMaxDynamicSharedMemorySize, policy.shared_bytes());
    if (status != cudaSuccess) return status;
  }
  const auto blocks = static_cast<unsigned>(tiles_m * tiles_n * params.num_members);
  linear_simt<T, tile><<<blocks, policy.threads(), policy.shared_bytes(), stream>>>(
      params, static_cast<uint32_t>(tiles_m), static_cast<uint32_t>(tiles_n));
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_linear_simt(LinearSimtParams params, Dtype dtype, LinearSimtTile tile,
                               cudaStream_t stream) {
  if (params.num_members == 0 || params.m == 0 || params.n == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    constexpr int64_t bytes = sizeof(T), vector = kChunkBytes / bytes;
    params.x_is_aligned =
        is_aligned(params.x, params.x_strides.row, params.x_strides.member, vector, bytes);
    params.weight_is_aligned = is_aligned(params.weight, params.weight_strides.row,
                                          params.weight_strides.member, vector, bytes);
    params.bias_is_aligned =
        is_aligned(params.bias, 0, params.bias_member_stride, kColumnGroup, bytes);
    params.y_is_aligned =
        is_aligned(params.y, params.y_strides.row, params.y_strides.member, kColumnGroup, bytes);
    switch (tile) {
      case LinearSimtTile::m16n64:
        return launch_tile<T, LinearSimtTile::m16n64>(params, stream);
      case LinearSimtTile::m64n64:
        return launch_tile<T, LinearSimtTile::m64n64>(params, stream);
      case LinearSimtTile::m128n128:
        return launch_tile<T, LinearSimtTile::m128n128>(params, stream);
    }
    return cudaErrorInvalidValue;
  });
}

}  // namespace wide::kernels
