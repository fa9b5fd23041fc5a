// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One of FlashAttention 3's forward kernels; the command line says which: compute capability,
/// type, size of a head, causal or not. Operands are [batch, positions, heads, head]; two heads of
/// Q share one of K and V.
#include <flash_fwd_launch_template.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "verify/foreign/product.cuh"

using T = WIDE_A;
using O = std::conditional_t<sizeof(T) == 1, cutlass::bfloat16_t, T>;
constexpr int kBatch = 2, kHeads = 4, kSharedHeads = 2, kHead = WIDE_HEAD;
constexpr bool kIsCausal = WIDE_IS_CAUSAL;

// Its header wants it defined; only batches whose sequences differ in length call it.
void prepare_varlen_num_blocks(Flash_fwd_params&, cudaStream_t, bool, int, int, bool) {}

/// The largest error of any element, in units of what rounding P and O once each may cost.
double worst_error(const foreign::Matrix<T>& q, const foreign::Matrix<T>& k,
                   const foreign::Matrix<T>& v, const foreign::Matrix<O>& o, int num_queries,
                   int num_keys) {
  const double eps_of_o = std::is_same_v<O, cutlass::half_t> ? 0x1p-11 : 0x1p-8;
  const double eps_of_p = sizeof(T) == 1 ? 0x1p-4 : eps_of_o;
  double worst = 0;
  std::vector<double> p(num_keys);
  for (int b = 0; b < kBatch; ++b)
    for (int h = 0; h < kHeads; ++h)
      for (int i = 0; i < num_queries; ++i) {
        const int g = h / (kHeads / kSharedHeads);
        const int seen = kIsCausal ? std::min(num_keys, num_keys - num_queries + i + 1) : num_keys;
        double total = 0, largest = -INFINITY;
        for (int j = 0; j < seen; ++j) {
          p[j] = 0;
          for (int d = 0; d < kHead; ++d)
            p[j] +=
                q.at(b * num_queries + i, h * kHead + d) * k.at(b * num_keys + j, g * kHead + d);
          p[j] /= std::sqrt(kHead);
          largest = std::max(largest, p[j]);
        }
        for (int j = 0; j < seen; ++j) total += p[j] = std::exp(p[j] - largest);
        for (int d = 0; d < kHead; ++d) {
          double expected = 0, magnitude = 0;
          for (int j = 0; j < seen; ++j) {
            const double term = p[j] / total * v.at(b * num_keys + j, g * kHead + d);
            expected += term, magnitude += std::fabs(term);
          }
          const double error = std::fabs(o.at(b * num_queries + i, h * kHead + d) - expected);
          worst = std::isnan(error)
                      ? INFINITY
                      : std::max(worst, error / (eps_of_p * magnitude +
                                                 eps_of_o * std::fabs(expected) + 1e-6));
        }
      }
  return worst;
}

template <class E>
foreign::Matrix<E> make(int positions, int heads) {
  return foreign::Matrix<E>(kBatch * positions, heads * kHead, true);
}

int main(int argc, char** argv) {
  if (argc != 3) return std::printf("usage: %s queries keys\n", argv[0]), 2;
  const int num_queries = std::atoi(argv[1]), num_keys = std::atoi(argv[2]);
  auto q = make<T>(num_queries, kHeads), k = make<T>(num_keys, kSharedHeads),
       v = make<T>(num_keys, kSharedHeads);
  auto o = make<O>(num_queries, kHeads);
  foreign::Matrix<float> sums(kBatch * kHeads, num_queries, true);
  q.fill(1), k.fill(2), v.fill(3);
  foreign::Matrix<int> semaphore(1, 1, true);
  foreign::require(cudaMemset(semaphore.data(), 0, sizeof(int)), "cudaMemset");

  Flash_fwd_params params{};
  params.q_ptr = q.data(), params.k_ptr = k.data(), params.v_ptr = v.data(),
  params.o_ptr = o.data();
  params.softmax_lse_ptr = sums.data();
  params.q_row_stride = params.o_row_stride = kHeads * kHead;
  params.k_row_stride = params.v_row_stride = kSharedHeads * kHead;
  params.q_head_stride = params.k_head_stride = params.v_head_stride = params.o_head_stride = kHead;
  params.q_batch_stride = params.o_batch_stride = num_queries * params.q_row_stride;
  params.k_batch_stride = params.v_batch_stride = num_keys * params.k_row_stride;
  params.v_dim_stride = 1;
  params.b = kBatch, params.h = kHeads, params.h_k = kSharedHeads;
  params.seqlen_q = num_queries, params.seqlen_k = num_keys;
  params.d = params.d_rounded = params.dv = params.dv_rounded = kHead;
  params.scale_softmax = 1 / std::sqrt(static_cast<float>(kHead));
  params.is_causal = kIsCausal;
  params.window_size_left = num_keys - 1,
  params.window_size_right = kIsCausal ? 0 : num_queries - 1;
  params.num_splits = 1;
  params.tile_count_semaphore = semaphore.data();
  params.arch = WIDE_ARCH;
  params.num_sm = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
  run_flash_fwd<WIDE_ARCH, kHead, kHead, 1, T, O, kIsCausal, false, false, false, false, false,
                false, false, false, false>(params, nullptr);
  foreign::require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  q.read(), k.read(), v.read(), o.read();
  const double worst = worst_error(q, k, v, o, num_queries, num_keys);
  std::printf("%s: the largest error is %.3f of what rounding P and O costs at the most\n",
              worst <= 1 ? "right" : "wrong", worst);
  return worst <= 1 ? 0 : 1;
}
