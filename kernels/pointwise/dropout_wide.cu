// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, d] = x[r, n, d] / (1 - p[n]) or 0, traversed by packed_runs.cuh. Four neighbours in a
// member share the four words of one Philox block. Where D is a multiple of four and rows are whole
// vectors, members stay separate, each with its own numbers, and a vector is whole blocks: some 15
// instructions an element while the loads are in flight. Elsewhere a vector straddles blocks, rows
// and members, which are processed one after another.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/pointwise/dropout_rate.hpp"
#include "kernels/pointwise/dropout_wide.hpp"
#include "kernels/pointwise/packed_runs.cuh"

namespace wide::kernels {

namespace {

/// What the elements of a member share.
struct DropoutMember {
  int64_t number = -1, seed = 0, sequence = 0;
  DropoutRate rate{};

  __device__ void become(const DropoutParams& p, int64_t member) {
    number = member;
    seed = p.seeds[member * p.seed_member_stride];
    sequence = p.seeds[member * p.seed_member_stride + 1];
    rate = dropout_rate(p.probabilities[member * p.probability_member_stride]);
  }
  __device__ PhiloxWords words(int64_t block) const { return dropout_words(seed, sequence, block); }
};

__device__ uint32_t word_at(const PhiloxWords& words, int place) {
  return place < 2 ? (place == 0 ? words.word[0] : words.word[1])
                   : (place == 2 ? words.word[2] : words.word[3]);
}

template <class T>
__global__ void __launch_bounds__(kPackedThreads)
    dropout_kernel(const __grid_constant__ DropoutParams p, const __grid_constant__ PackedCut cut,
                   bool has_whole_blocks) {
  DropoutMember own;
  const auto drop_blocks = [&]<int kSize>(float(&values)[kSize], const PackedPlace& place) {
    if (own.number != place.member) own.become(p, place.member);
    const int64_t element = place.row * p.packed.features + place.first;
#pragma unroll
    for (int block = 0; block < kSize / 4; ++block) {
      const PhiloxWords words = own.words(element / 4 + block);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        values[4 * block + e] = drop(values[4 * block + e], words.word[e], own.rate);
      }
    }
  };
  const auto drop_pieces = [&]<int kSize>(float(&values)[kSize], const PackedPlace& place) {
    PackedSpot spot(cut, place);
    int first = 0;
#pragma unroll 1
    while (first < kSize) {
      if (own.number != spot.member) own.become(p, spot.member);
      const int64_t element = spot.row * cut.features + spot.feature;
      const auto skew = static_cast<int>(element % 4);
      const auto count = static_cast<int>(min(int64_t{4 - skew}, cut.features - spot.feature));
      const PhiloxWords words = own.words(element / 4);
#pragma unroll
      for (int e = 0; e < kSize; ++e) {
        const int number = e - first;
        if (number < 0 || number >= count) continue;
        values[e] = drop(values[e], word_at(words, skew + number), own.rate);
      }
      first += count;
      spot.advance(cut, count);
    }
  };
  const auto apply = [&]<int kSize>(float(&values)[kSize], const float(&)[kSize],
                                    const PackedPlace& place) {
    if (kSize > 1 && has_whole_blocks) {
      drop_blocks(values, place);
    } else {
      drop_pieces(values, place);
    }
  };
  arch::follow_grid();
  apply_packed<false, T>(p.packed, cut, apply);
}

template <class T>
cudaError_t launch(const DropoutParams& p, cudaStream_t stream) {
  DropoutParams joined = p;
  PackedParams& packed = joined.packed;
  join_runs(packed, false);
  const bool begins_with_blocks = packed.rows == 1 || packed.features % 4 == 0;
  const bool has_whole_blocks = begins_with_blocks && is_aligned16<T>(packed);
  if (!has_whole_blocks) join_runs(packed, true);
  const PackedCut cut = cut_runs<T>(packed, p.packed, has_whole_blocks);
  return launch_packed(packed, cut, [&](unsigned blocks) {
    return launch_kernel(dropout_kernel<T>, blocks, kPackedThreads, 0, stream, joined, cut,
                         has_whole_blocks);
  });
}

}  // namespace

cudaError_t launch_dropout_wide(Dtype dtype, const DropoutParams& p, cudaStream_t stream) {
  if (p.packed.num_members * p.packed.rows * p.packed.features == 0) return cudaSuccess;
  return dispatch_float(dtype,
                        [&]<class T>(std::type_identity<T>) { return launch<T>(p, stream); });
}

}  // namespace wide::kernels
