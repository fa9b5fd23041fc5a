// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's dropout, by the same words and the same two operations as the CUDA kernel's.
#include <algorithm>

#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/packed_rows_cpu.hpp"
#include "kernels/pointwise/dropout_rate.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kChunk = 512;

/// Elements [first, first + count) of a member, in place.
void drop_elements(const int64_t* seed, const kernels::DropoutRate& rate, int64_t first,
                   float* values, int64_t count) {
  for (int64_t i = 0; i < count;) {
    const kernels::PhiloxWords words = kernels::dropout_words(seed[0], seed[1], (first + i) / 4);
    for (int64_t place = (first + i) % 4; place < 4 && i < count; ++place, ++i) {
      values[i] = kernels::drop(values[i], words.word[place], rate);
    }
  }
}

void run_row(const DropoutProblem& p, const DropoutArguments& a, int64_t row, int64_t member) {
  const int64_t size = dtype_bytes(p.dtype);
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);
  const auto* seed = static_cast<const int64_t*>(a.seeds.data) + member * p.seed_member_stride;
  const kernels::DropoutRate rate = kernels::dropout_rate(
      static_cast<const float*>(a.probabilities.data)[member * p.probability_member_stride]);
  float values[kChunk];
  for (int64_t first = 0; first < p.features; first += kChunk) {
    const int64_t count = std::min(kChunk, p.features - first);
    decode_row(p.dtype, x + first * size, values, count);
    drop_elements(seed, rate, row * p.features + first, values, count);
    encode_row(p.dtype, values, y + first * size, count);
  }
}

}  // namespace

void run_dropout_cpu(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                     const DropoutArguments& arguments) {
  for_each_row(context, rows_of(problem), strategy,
               [&](int64_t row, int64_t member) { run_row(problem, arguments, row, member); });
}

}  // namespace wide
