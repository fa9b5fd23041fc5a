// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, d] = x[r, n, d] / (1 - p[n]) or 0, as packed_runs.cuh goes through the tensors, members
// apart: each has numbers of its own. Where D is a multiple of four, four neighbours share the four
// words of one Philox block, some 15 instructions an element while the loads are under way;
// elsewhere units are of one element, which takes a word of a block and leaves three.
#include "kernels/common/dispatch.hpp"
#include "kernels/pointwise/dropout_rate.hpp"
#include "kernels/pointwise/dropout_wide.hpp"
#include "kernels/pointwise/packed_runs.cuh"

namespace wide::kernels {

namespace {

/// What the elements of a member have in common.
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

template <class T>
__global__ void __launch_bounds__(kPackedThreads)
    dropout_kernel(const __grid_constant__ DropoutParams p, const __grid_constant__ PackedCut cut) {
  DropoutMember own;
  const auto apply = [&]<int kSize>(float(&values)[kSize], const float(&)[kSize], int64_t element,
                                    int64_t member) {
    if (own.number != member) own.become(p, member);
    if constexpr (kSize == 1) {
      const PhiloxWords words = own.words(element / 4);
      const int64_t place = element % 4;
      const uint32_t word = place < 2 ? (place == 0 ? words.word[0] : words.word[1])
                                      : (place == 2 ? words.word[2] : words.word[3]);
      values[0] = drop(values[0], word, own.rate);
    } else {
#pragma unroll
      for (int block = 0; block < kSize / 4; ++block) {
        const PhiloxWords words = own.words(element / 4 + block);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          values[4 * block + e] = drop(values[4 * block + e], words.word[e], own.rate);
        }
      }
    }
  };
  apply_packed<false, T>(p.packed, cut, apply);
}

template <class T>
cudaError_t launch(const DropoutParams& p, cudaStream_t stream) {
  DropoutParams joined = p;
  PackedParams& packed = joined.packed;
  join_runs(packed, false);
  const bool begins_with_blocks = packed.rows == 1 || packed.features % 4 == 0;
  const PackedCut cut =
      cut_runs<T>(packed, p.packed, begins_with_blocks && is_aligned16<T>(packed), true);
  return launch_packed(packed, cut, [&](unsigned blocks) {
    dropout_kernel<T><<<blocks, kPackedThreads, 0, stream>>>(joined, cut);
  });
}

}  // namespace

cudaError_t launch_dropout_wide(Dtype dtype, const DropoutParams& p, cudaStream_t stream) {
  if (p.packed.num_members * p.packed.rows * p.packed.features == 0) return cudaSuccess;
  return dispatch_float(dtype,
                        [&]<class T>(std::type_identity<T>) { return launch<T>(p, stream); });
}

}  // namespace wide::kernels
