// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows of features that some lanes or a block keep in registers, apart from what is computed on
// them: which thread owns which elements, and how they move.
//
// A row has few enough threads that each has several loads in flight, and no more of them than its
// features need. Which elements a thread owns, and so the order of every sum, depends on the number
// of features alone: whole vectors of 16 bytes where those divide it, else strided elements.
// Vectors are moved whole where all addresses and strides are multiples of 16 bytes. Otherwise a
// block stages its rows and its results in shared memory (staged_runs.cuh), packed rows as one run:
// again 16 bytes at a time except for the ends.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "kernels/common/launch.hpp"
#include "kernels/common/row_blocks.hpp"
#include "kernels/common/staged_runs.cuh"
#include "kernels/common/vector_load.cuh"

namespace wide::kernels {

constexpr int kWarp = 32;

// Which threads handle a row: threads of a block along x. Rows of a block lie along y. Types rather
// than values, because nvcc 13.0's stubs cannot name a class-type template argument.

/// Lanes of a warp: 4 or 8 lanes that keep 16 floats, or 8 to 32 that keep 32.
template <int kFloats>
struct ShortRow {
  static constexpr bool is_block = false;
  static constexpr int kept_floats = kFloats;  ///< in a thread's registers
  static constexpr int max_block = 128;        ///< threads
  static constexpr int64_t max_features = kFloats == 16 ? 128 : kShortRowFeatures;
  static_assert(short_row_floats(max_features) == kFloats);

  static int threads_for(int64_t features) { return static_cast<int>(short_row_lanes(features)); }
  __device__ static int threads() { return static_cast<int>(blockDim.x); }
};

/// A block with as many warps as it takes to keep the row.
struct BlockRow {
  static constexpr bool is_block = true;
  static constexpr int kept_floats = 32;
  static constexpr int max_block = 512;
  static constexpr int64_t max_features = max_block * kept_floats;

  static int threads_for(int64_t features) {
    constexpr int64_t kWarpFeatures = kWarp * kept_floats;
    return static_cast<int>((features + kWarpFeatures - 1) / kWarpFeatures) * kWarp;
  }
  __device__ static int threads() { return static_cast<int>(blockDim.x); }
};

/// A block that cannot keep the row and rereads it: the larger, the more of a row is in flight
/// where there are fewer rows than multiprocessors.
template <int kThreads>
struct LongRow {
  static constexpr bool is_block = true;
  static constexpr int max_block = kThreads;
  static constexpr int64_t max_features = 0;  ///< that are kept

  static int threads_for(int64_t) { return max_block; }
  __device__ static int threads() { return max_block; }
};

/// Replaces each value by combine(a, b) over those of all threads of a row, in a fixed order; whole
/// warps take part. `shared`: kWarp floats per value that no other call uses.
template <class Policy, int count, class Combine>
__device__ inline void over_row(float (&values)[count], float nothing, float (*shared)[kWarp],
                                Combine combine) {
  const auto over_lanes = [&](int lanes) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      if (distance >= lanes) continue;
#pragma unroll
      for (float& value : values) {
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
      }
    }
  };
  if constexpr (Policy::is_block) {
    over_lanes(kWarp);
    const int warps = Policy::threads() / kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < count; ++i) shared[i][warp] = values[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = lane < warps ? shared[i][lane] : nothing;
    over_lanes(kWarp);
  } else {
    over_lanes(Policy::threads());
  }
}
template <class Policy, int count>
__device__ void sum_over_row(float (&values)[count], float (*shared)[kWarp]) {
  over_row<Policy>(values, 0.0f, shared, [](float a, float b) { return a + b; });
}
template <class Policy>
__device__ float row_sum(float value, float (*shared)[kWarp]) {
  float values[]{value};
  sum_over_row<Policy>(values, shared);
  return values[0];
}

/// How rows are moved: uniform over a launch.
struct RowAccess {
  int shared_out = 0;       ///< elements of every thread of a row
  int left_over = 0;        ///< first threads with one more element or vector
  int most = 0;             ///< elements of the thread with most
  bool is_strided = false;  ///< a thread's elements are strided
  bool is_aligned = false;  ///< whole vectors, moved directly
  bool is_staged = false;   ///< through shared memory
  bool is_joined = false;   ///< staged, with a block's rows as one run
  StagedRuns runs{};
};

/// A thread processes its values this many at a time, and skips those that no thread of its row
/// has: a quarter of the registers' capacity, where there are 768 features.
constexpr int kRowPiece = 8;

/// Past the last of them.
__device__ inline int end_of_values(const RowAccess& access) {
  return (access.most + kRowPiece - 1) / kRowPiece * kRowPiece;
}
/// f(j) for the first value of each piece of kKept.
template <int kKept, class F>
__device__ inline void for_kept(const RowAccess& access, const F& f) {
  const int end = end_of_values(access);
#pragma unroll
  for (int j = 0; j < kKept; j += kRowPiece) {
    if (j < end) f(j);
  }
}
/// f(values[i], i) for each value.
template <int kKept, class F>
__device__ inline void for_values(const RowAccess& access, float (&values)[kKept], const F& f) {
  for_kept<kKept>(access, [&](int j) {
#pragma unroll
    for (int i = j; i < j + kRowPiece; ++i) f(values[i], i);
  });
}

/// Where a row and its elements are: there, or in shared memory. Vectors are read from the former.
template <class T>
struct RowPlace {
  T *row, *elements;
};

/// The words of a vector, computed from its elements: copied as memory, each would stay a value of
/// its own.
template <class T>
__device__ inline uint4 words_of(const Vec16<T>& vector) {
  constexpr int kOfWord = Vec16<T>::kSize / 4;
  using Bits = std::conditional_t<kOfWord == 1, uint32_t, uint16_t>;
  uint32_t words[4]{};
#pragma unroll
  for (int e = 0; e < Vec16<T>::kSize; ++e) {
    const uint32_t bits = *reinterpret_cast<const Bits*>(&vector.v[e]);
    words[e / kOfWord] |= bits << (e % kOfWord * 16);
  }
  return {words[0], words[1], words[2], words[3]};
}

/// A thread's share of a row, in chunks of a vector's elements; existing ones come first.
template <class T, class Policy>
class RowShare {
 public:
  static constexpr int kSize = Vec16<T>::kSize;

  /// Empty for a row that does not exist.
  __device__ RowShare(const RowAccess& access, bool exists) : is_aligned_(access.is_aligned) {
    const auto thread = static_cast<int>(threadIdx.x);
    const int more = access.is_strided ? 1 : kSize;
    count_ = exists ? access.shared_out + (thread < access.left_over ? more : 0) : 0;
    first_ = thread * more;
    step_ = access.is_strided ? Policy::threads() : 1;
  }

  __device__ bool exists(int chunk, int e) const { return chunk * kSize + e < count_; }

  /// Chunks from `first` on, with `fill` past the row's end.
  template <int chunks>
  __device__ void load(Vec16<T> (&values)[chunks], const RowPlace<const T>& from, float fill = 0.0f,
                       int first = 0) const {
    const T behind = from_float<T>(fill);
    // As words until the branches meet: elements of 16 bits would meet in a register each, and
    // every vector be taken apart for that.
    uint4 words[chunks];
    if (is_aligned_) {
      Vec16<T> filled;
#pragma unroll
      for (T& value : filled.v) value = behind;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        words[c] = words_of(filled);
        arch::load_16_if(words[c], from.row + position(first + c, 0), exists(first + c, 0));
      }
    } else {
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        Vec16<T> elements;
#pragma unroll
        for (int e = 0; e < kSize; ++e) {
          elements.v[e] = behind;
          if (exists(first + c, e)) elements.v[e] = from.elements[position(first + c, e)];
        }
        words[c] = words_of(elements);
      }
    }
#pragma unroll
    for (int c = 0; c < chunks; ++c) values[c] = *reinterpret_cast<const Vec16<T>*>(&words[c]);
  }
  /// For a row that is not staged.
  template <int chunks>
  __device__ void load(Vec16<T> (&values)[chunks], const T* row, int first) const {
    load(values, {row, row}, 0.0f, first);
  }

  __device__ void store(const RowPlace<T>& to, int chunk, const Vec16<T>& values) const {
    if (is_aligned_) {
      if (exists(chunk, 0)) store_vec16(to.row + position(chunk, 0), values);
      return;
    }
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      if (exists(chunk, e)) to.elements[position(chunk, e)] = values.v[e];
    }
  }

 private:
  /// Of an element in its row: 32 bits, which take fewer instructions, unless rows may be longer.
  using Position = std::conditional_t<(Policy::max_features > 0), int, int64_t>;

  __device__ Position position(int chunk, int e) const {
    return Position{chunk} * (Policy::threads() * kSize) + (first_ + e * step_);
  }

  int first_, step_, count_;
  bool is_aligned_;
};

/// The rows of a block, and which of them is this thread's.
template <class T, class Policy>
class RowTile {
 public:
  __device__ RowTile(const RowAccess& access, int64_t features, int64_t num_rows)
      : access_(access),
        features_(static_cast<int>(features)),
        first_(int64_t{blockIdx.x} * most_rows()),
        rows_(static_cast<int>(min(int64_t{most_rows()}, num_rows - first_))),
        row_(Policy::is_block ? 0 : static_cast<int>(threadIdx.y)) {}

  __device__ RowShare<T, Policy> share() const { return {access_, row_ < rows_}; }
  /// The index of this thread's row.
  __device__ int64_t index() const { return first_ + row_; }

  /// Elements of shared memory for the block's rows.
  __device__ int size() const { return access_.runs.pitch * (access_.is_joined ? 1 : most_rows()); }
  /// Like bring_runs() and write_runs(); address_of(index) is a row's.
  template <class AddressOf>
  __device__ void bring(T* kept, const AddressOf& address_of) const {
    bring_runs(kept, access_.runs, num_runs(), length(), team(),
               [&](int run) { return address_of(first_ + run); });
  }
  template <class AddressOf>
  __device__ void write(const T* kept, const AddressOf& address_of) const {
    write_runs(kept, access_.runs, num_runs(), length(), team(),
               [&](int run) { return address_of(first_ + run); });
  }
  /// `row` is address_of(index()), this thread's row; its elements are in `kept` if rows are
  /// staged.
  template <class Element, class AddressOf>
  __device__ RowPlace<Element> place(T* kept, Element* row, const AddressOf& address_of) const {
    RowPlace<Element> place{row, row};
    if (access_.is_staged) {
      place.elements = access_.is_joined ? kept + phase_of(address_of(first_)) + row_ * features_
                                         : kept + row_ * access_.runs.pitch + phase_of(row);
    }
    return place;
  }

 private:
  __device__ static int most_rows() { return Policy::is_block ? 1 : static_cast<int>(blockDim.y); }
  __device__ int num_runs() const { return access_.is_joined ? 1 : rows_; }
  __device__ int length() const { return features_ * (access_.is_joined ? rows_ : 1); }
  __device__ static StagingTeam team() {
    return {static_cast<int>(threadIdx.x + blockDim.x * (Policy::is_block ? 0 : threadIdx.y)),
            static_cast<int>(blockDim.x) * most_rows()};
  }

  const RowAccess& access_;
  int features_;
  int64_t first_;
  int rows_, row_;
};

/// Whether rows numbered (row, member) are contiguous.
inline bool has_packed_rows(int64_t features, int64_t members, int64_t rows, int64_t row_stride,
                            int64_t member_stride) {
  return (members == 1 || member_stride == features) &&
         (rows == 1 || row_stride == members * features);
}

/// Launch parameters of a kernel on rows.
struct RowLaunch {
  RowAccess access;
  int64_t blocks = 0;
  int threads = 0;          ///< per row
  int rows = 0, bytes = 0;  ///< per block
};

/// `tiles`: how many copies of a block's rows are in shared memory if staged. `is_packed`: the rows
/// of all tensors are contiguous.
template <class T, class Policy>
RowLaunch row_launch(int64_t rows, int64_t members, int64_t features, bool is_aligned,
                     bool is_packed, int tiles) {
  constexpr int64_t kSize = Vec16<T>::kSize;
  constexpr int64_t kMaxBytes = 96 * 1024;  // available on every device of sm_80 and later
  const int threads = Policy::threads_for(features);
  const int64_t rows_together = rows_of_block(rows * members, features);
  RowLaunch launch;
  launch.blocks = row_blocks(rows, members, features);
  launch.threads = threads;
  launch.rows = static_cast<int>(rows_together);
  RowAccess& access = launch.access;
  access.is_strided = features % kSize != 0;
  access.is_aligned = is_aligned && !access.is_strided;
  const int64_t piece = access.is_strided ? 1 : kSize, pieces = features / piece;
  access.shared_out = static_cast<int>(pieces / threads * piece);
  access.left_over = static_cast<int>(pieces % threads);
  access.most = access.shared_out + (access.left_over > 0 ? static_cast<int>(piece) : 0);
  access.is_joined = is_packed;
  const int64_t pitch = staged_pitch(features * (is_packed ? rows_together : 1), kSize);
  const int64_t bytes =
      pitch * (is_packed ? 1 : rows_together) * tiles * static_cast<int64_t>(sizeof(T));
  const bool is_kept = features <= Policy::max_features;
  access.is_staged = is_kept && !access.is_aligned && bytes <= kMaxBytes;
  if (!access.is_staged) return launch;
  access.runs = staged_runs(pitch, kSize);
  launch.bytes = static_cast<int>(bytes);
  return launch;
}

/// kernel(arguments..., access)
template <class... Parameters, class... Arguments>
cudaError_t launch_rows(void (*kernel)(Parameters...), const RowLaunch& launch, cudaStream_t stream,
                        const Arguments&... arguments) {
  if (launch.blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  constexpr int kBytesOfSums = 512;  // or fewer, of blocks that share a row
  const cudaError_t status = allow_shared_bytes(kernel, launch.bytes, kBytesOfSums);
  if (status != cudaSuccess) return status;
  const dim3 threads(static_cast<unsigned>(launch.threads), static_cast<unsigned>(launch.rows));
  return launch_kernel(kernel, static_cast<unsigned>(launch.blocks), threads,
                       static_cast<size_t>(launch.bytes), stream, arguments..., launch.access);
}

}  // namespace wide::kernels
