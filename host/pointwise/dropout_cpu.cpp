// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's dropout, by the same words and the same two operations as the CUDA kernel's.
#include "host/core/independent.hpp"
#include "host/core/row_cpu.hpp"
#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/packed_rows_cpu.hpp"
#include "kernels/pointwise/dropout_rate.hpp"

namespace wide {

namespace {

/// Elements [first, first + count) of a member, count at most kRowChunk.
void drop_elements(const int64_t* seed, const kernels::DropoutRate& rate, int64_t first,
                   const float* values, float* out, int64_t count) {
  uint32_t words[cpu::kRowChunk + 8];
  const int64_t skipped = first % 4, blocks = (skipped + count + 3) / 4;
  for (int64_t block = 0; block < blocks; ++block) {
    const kernels::PhiloxWords four = kernels::dropout_words(seed[0], seed[1], first / 4 + block);
    for (int i = 0; i < 4; ++i) words[4 * block + i] = four.word[i];
  }
  WIDE_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = kernels::drop(values[i], words[skipped + i], rate);
}

void run_row(const DropoutProblem& p, const DropoutArguments& a, int64_t row, int64_t member) {
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);
  const auto* seed = static_cast<const int64_t*>(a.seeds.data) + member * p.seed_member_stride;
  const kernels::DropoutRate rate = kernels::dropout_rate(
      static_cast<const float*>(a.probabilities.data)[member * p.probability_member_stride]);
  cpu::transform_row(p.dtype, x, y, p.features,
                     [&](const float* values, float* out, int64_t first, int64_t count) {
                       drop_elements(seed, rate, row * p.features + first, values, out, count);
                     });
}

}  // namespace

void run_dropout_cpu(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                     const DropoutArguments& arguments) {
  for_each_row(context, rows_of(problem), strategy,
               [&](int64_t row, int64_t member) { run_row(problem, arguments, row, member); });
}

}  // namespace wide
