// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ids[b, :] = the members n with the `choices` largest scores[b, n], in descending order, the
// smaller n first of equals; gates[b, k] = a function of the score of ids[b, k].
//
// Plan: a warp per row of up to 256 scores, a block for more, 8 scores a thread. Scores become
// unsigned numbers in the same order (keys), which a warp compares in one instruction: one for the
// largest key, another for the smallest of its ids. A choice is the largest of what is left; its
// thread then forgets it. Rows of more than 8192 scores do not fit in registers: each choice reads
// the row again and takes what comes after the one before. 32 choices are written together, a lane
// each, and remain in registers for the gates; earlier ones are read back by the lane that wrote
// them. Nothing depends on the order in which warps run.
// Memory: scores are read once where they fit, twice by softmax_all; shared: 640 bytes.
// Limits: none; scores need their own alignment only, as lanes read neighbours one by one.
#include "kernels/arch/grid.cuh"
#include "kernels/arch/load.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/logistic.cuh"
#include "kernels/common/numeric.cuh"
#include "kernels/routing/top_k_blocks.hpp"
#include "kernels/routing/top_k_wide.hpp"

namespace wide::kernels {

namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr uint32_t kNanKey = 0xffffffffu;

/// In the order of scores: NaN above all, every score above 0. Zeros of both signs are equal.
__device__ uint32_t key_of(float score) {
  if (score != score) return kNanKey;
  const uint32_t bits = __float_as_uint(score + 0.0f);
  return bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
}
__device__ float score_of(uint32_t key) {
  return __uint_as_float(key ^ (key >> 31 != 0 ? 0x80000000u : 0xffffffffu));  // NaN of NaN's
}

/// A member, and the key of its score.
struct Choice {
  uint32_t key;
  int id;

  /// Whether this is chosen later.
  __device__ bool follows(const Choice& other) const {
    return key < other.key || (key == other.key && id > other.id);
  }
};
__device__ Choice nobody() {
  return {0, 0x7fffffff};
}
__device__ Choice before_all() {
  return {kNanKey, -1};
}

/// The threads of a row: a warp, or a block.
struct RowTeam {
  int lane, warp, thread, threads;
  int64_t row;

  __device__ RowTeam()
      : lane(static_cast<int>(threadIdx.x) % 32),
        warp(static_cast<int>(threadIdx.x) / 32),
        thread(static_cast<int>(threadIdx.x)),
        threads(static_cast<int>(blockDim.x)),
        row(int64_t{blockIdx.x} * blockDim.y + threadIdx.y) {}
  __device__ int warps() const { return threads / 32; }
};

__device__ Choice first_of_warp(const Choice& own) {
  const uint32_t key = __reduce_max_sync(kAllLanes, own.key);
  return {key, __reduce_min_sync(kAllLanes, own.key == key ? own.id : nobody().id)};
}
/// `shared`: of each warp, read by nobody who has yet to come to the barrier.
__device__ Choice first_of_row(const RowTeam& team, const Choice& own, Choice* shared) {
  const Choice of_warp = first_of_warp(own);
  if (team.warps() == 1) return of_warp;
  if (team.lane == 0) shared[team.warp] = of_warp;
  __syncthreads();
  return first_of_warp(team.lane < team.warps() ? shared[team.lane] : nobody());
}

__device__ float sum_of_row(const RowTeam& team, float value, float* shared) {
  const float of_warp = warp_sum(value);
  if (team.warps() == 1) return of_warp;
  if (team.lane == 0) shared[team.warp] = of_warp;
  __syncthreads();
  return warp_sum(team.lane < team.warps() ? shared[team.lane] : 0.0f);
}

/// A row's scores, and what has been chosen from them.
template <class T>
class TopKRow {
 public:
  __device__ TopKRow(const TopKParams& p, const RowTeam& team)
      : p_(p),
        team_(team),
        scores_(static_cast<const T*>(p.scores) + team.row * p.scores_row_stride),
        first_id_(team.row * p.choices),
        is_kept_(p.num_members <= int64_t{kTopKKept} * team.threads) {}

  __device__ float score(int64_t id) const { return to_float(arch::load(scores_ + id)); }
  /// One that an earlier launch or this thread has written.
  __device__ int64_t id(int k) const {
    return p_.id_bytes == 8 ? static_cast<const int64_t*>(p_.ids)[first_id_ + k]
                            : static_cast<const int32_t*>(p_.ids)[first_id_ + k];
  }
  __device__ Choice choice(int k) const {
    const int64_t of = id(k);
    return {key_of(score(of)), static_cast<int>(of)};
  }
  __device__ void write(int k, int id) const {
    if (p_.id_bytes == 8) {
      static_cast<int64_t*>(p_.ids)[first_id_ + k] = id;
    } else {
      static_cast<int32_t*>(p_.ids)[first_id_ + k] = id;
    }
  }
  __device__ float* gates() const { return p_.gates + first_id_; }

  /// Once, before the first call of first_after().
  __device__ void keep(const Choice& previous) {
    if (is_kept_) load(0, previous);
  }
  /// This thread's first one after `previous`, which is that of the call before.
  __device__ Choice first_after(const Choice& previous) {
    Choice first = nobody();
    if (is_kept_) {
      const int size = size_from(0);
#pragma unroll
      for (int i = 0; i < kTopKKept; ++i) {
        if (is_end(i, size)) break;
        if (place(i) == previous.id) keys_[i] = 0;
      }
      take(0, first);
      return first;
    }
    for (int64_t base = 0; base < p_.num_members; base += kTopKKept * team_.threads) {
      load(base, previous);
      take(base, first);
    }
    return first;
  }

  /// Of exp(score - largest), over this thread's scores.
  __device__ float sum_of_powers(float largest) const {
    float sum = 0.0f;
    for (int64_t base = 0; base < p_.num_members; base += kTopKKept * team_.threads) {
      const int size = size_from(base);
      T values[kTopKKept];
      load(base, values);
#pragma unroll
      for (int i = 0; i < kTopKKept; ++i) {
        if (is_end(i, size)) break;
        const float power = arch::exp2_gradually((to_float(values[i]) - largest) * kLog2E);
        sum += place(i) < size ? power : 0.0f;
      }
    }
    return sum;
  }

 private:
  /// Of this thread's i-th score from some first one on.
  __device__ int place(int i) const {
    return i * team_.threads + team_.thread;
  }
  /// Scores of all threads from one on.
  __device__ int size_from(int64_t base) const {
    return static_cast<int>(min(p_.num_members - base, int64_t{kTopKKept} * team_.threads));
  }
  /// Whether no thread has an i-th score; asked at powers of two only, as asking for each costs
  /// more than it saves.
  __device__ bool is_end(int i, int size) const {
    return i > 0 && (i & (i - 1)) == 0 && i * team_.threads >= size;
  }

  /// Past the row's end, the last one instead.
  __device__ void load(int64_t base, T (&values)[kTopKKept]) const {
    const int size = size_from(base);
#pragma unroll
    for (int i = 0; i < kTopKKept; ++i) {
      if (is_end(i, size)) break;
      values[i] = arch::load(scores_ + base + min(place(i), size - 1));
    }
  }
  /// 0 where there is no score, or one that does not follow.
  __device__ void load(int64_t base, const Choice& previous) {
    const int size = size_from(base);
    T values[kTopKKept];
    load(base, values);
#pragma unroll
    for (int i = 0; i < kTopKKept; ++i) {
      if (is_end(i, size)) break;
      const Choice own{key_of(to_float(values[i])), static_cast<int>(base) + place(i)};
      keys_[i] = place(i) < size && own.follows(previous) ? own.key : 0;
    }
  }
  /// Ids ascend: what is found first of equals stays.
  __device__ void take(int64_t base, Choice& first) const {
    const int size = size_from(base);
#pragma unroll
    for (int i = 0; i < kTopKKept; ++i) {
      if (is_end(i, size)) break;
      if (keys_[i] > first.key) first = {keys_[i], static_cast<int>(base) + place(i)};
    }
  }

  const TopKParams& p_;
  const RowTeam& team_;
  const T* scores_;
  int64_t first_id_;
  bool is_kept_;
  uint32_t keys_[kTopKKept];
};

template <class T>
__global__ void __launch_bounds__(32 * kTopKMaxWarps)
    top_k_kernel(const __grid_constant__ TopKParams p) {
  // Two of each: those of one choice are read while those of the next are written.
  __shared__ Choice choices[2][kTopKMaxWarps];
  __shared__ float sums[kTopKMaxWarps];
  const RowTeam team;
  arch::follow_grid();
  if (team.row >= p.rows) return;  // a whole warp, of a block without barriers
  TopKRow<T> row(p, team);

  // Choose, and write what lanes hold whenever all have one.
  const int begin = static_cast<int>(p.first), end = static_cast<int>(p.last);
  Choice previous = begin == 0 ? before_all() : row.choice(begin - 1), own = nobody();
  Choice largest = begin == 0 ? nobody() : row.choice(0);
  row.keep(previous);
  for (int k = begin; k < end; ++k) {
    previous = first_of_row(team, row.first_after(previous), choices[k & 1]);
    if (k == 0) largest = previous;
    const int at = k & 31, mine = k - at + team.lane;
    if (team.lane == at) own = previous;
    if (at < 31 && k + 1 < end) continue;
    if (team.warp == 0 && mine >= begin && mine <= k) row.write(mine, own.id);
  }
  if (p.gates == nullptr || p.last < p.choices) return;

  // Gate: the last choices are in registers, lanes have written the others.
  const int held = max(begin, (end - 1) / 32 * 32);
  const auto score = [&](int k) { return k >= held ? score_of(own.key) : row.score(row.id(k)); };
  const float most = score_of(largest.key);
  const auto power = [&](int k) { return arch::exp2_gradually((score(k) - most) * kLog2E); };
  float sum = 0.0f;
  if (p.gate == GateFunction::softmax_all) {
    sum = sum_of_row(team, row.sum_of_powers(most), sums);
  }
  if (team.warp != 0) return;
  if (p.gate == GateFunction::softmax) {
    for (int k = team.lane; k < end; k += 32) sum += power(k);
    sum = warp_sum(sum);
  }
  for (int k = team.lane; k < end; k += 32) {
    const bool is_softmax = p.gate == GateFunction::softmax || p.gate == GateFunction::softmax_all;
    row.gates()[k] = is_softmax                        ? power(k) / sum
                     : p.gate == GateFunction::sigmoid ? logistic(score(k))
                                                       : score(k);
  }
}

template <class T>
cudaError_t launch(const TopKParams& p, cudaStream_t stream) {
  const int64_t blocks = top_k_blocks(p.num_members, p.rows);
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const int warps = top_k_warps(p.num_members);
  const dim3 threads(static_cast<unsigned>(32 * warps), warps == 1 ? kTopKRows : 1);
  return launch_kernel(top_k_kernel<T>, static_cast<unsigned>(blocks), threads, 0, stream, p);
}

}  // namespace

cudaError_t launch_top_k(Dtype dtype, const TopKParams& p, cudaStream_t stream) {
  if (p.rows == 0) return cudaSuccess;
  return dispatch_float(dtype,
                        [&]<class T>(std::type_identity<T>) { return launch<T>(p, stream); });
}

}  // namespace wide::kernels
