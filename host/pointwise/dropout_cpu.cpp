// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's dropout, by the same words and the same two operations as the CUDA kernel's.
#include <algorithm>

#include "host/core/independent.hpp"
#include "host/core/row_cpu.hpp"
#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/packed_rows_cpu.hpp"
#include "kernels/pointwise/dropout_rate.hpp"

namespace wide {

namespace {

/// The words of elements [first, first + count) of a member, count at most kRowChunk.
class Words {
 public:
  Words(const int64_t* seed, int64_t first, int64_t count) : skipped_(first % 4) {
    const int64_t blocks = (skipped_ + count + 3) / 4;
    for (int64_t block = 0; block < blocks; ++block) {
      const kernels::PhiloxWords four = kernels::dropout_words(seed[0], seed[1], first / 4 + block);
      for (int i = 0; i < 4; ++i) words_[4 * block + i] = four.word[i];
    }
  }
  const uint32_t* of(int64_t element) const { return words_ + skipped_ + element; }

 private:
  int64_t skipped_;
  uint32_t words_[cpu::kRowChunk + 8];
};

void drop_elements(const uint32_t* words, const kernels::DropoutRate& rate, const float* values,
                   float* out, int64_t count) {
  WIDE_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = kernels::drop(values[i], words[i], rate);
}

/// Rows of a member that one call takes: elements are numbered through all rows, so that short rows
/// share their words.
class Rows {
 public:
  explicit Rows(const DropoutProblem& p)
      : is_one_row_(p.x.row == p.features && p.y.row == p.features),
        together_(std::clamp<int64_t>(
            (is_one_row_ ? kElementsPerTask : cpu::kRowChunk) / std::max<int64_t>(1, p.features), 1,
            std::max<int64_t>(1, p.rows))) {}

  int64_t together() const { return together_; }

  /// Those from `first` on.
  void run(const DropoutProblem& p, const DropoutArguments& a, int64_t first,
           int64_t member) const {
    const auto* seed = static_cast<const int64_t*>(a.seeds.data) + member * p.seed_member_stride;
    const kernels::DropoutRate rate = kernels::dropout_rate(
        static_cast<const float*>(a.probabilities.data)[member * p.probability_member_stride]);
    const int64_t rows = std::min(together_, p.rows - first);
    const char* x = row_at(a.x.data, p.x, first, member, p.dtype);
    char* y = row_at(a.y.data, p.y, first, member, p.dtype);
    if (is_one_row_ || rows == 1) {
      return cpu::transform_row(
          p.dtype, x, y, rows * p.features,
          [&](const float* values, float* out, int64_t element, int64_t count) {
            const Words words(seed, first * p.features + element, count);
            drop_elements(words.of(0), rate, values, out, count);
          });
    }
    const Words words(seed, first * p.features, rows * p.features);
    const int64_t bytes = dtype_bytes(p.dtype);
    for (int64_t r = 0; r < rows; ++r) {
      cpu::transform_row(p.dtype, x + r * p.x.row * bytes, y + r * p.y.row * bytes, p.features,
                         [&](const float* values, float* out, int64_t, int64_t count) {
                           drop_elements(words.of(r * p.features), rate, values, out, count);
                         });
    }
  }

 private:
  bool is_one_row_;
  int64_t together_;
};

}  // namespace

void run_dropout_cpu(const Context& context, const DropoutProblem& problem, WideStrategy strategy,
                     const DropoutArguments& arguments) {
  const Rows some(problem);
  PackedRows rows = rows_of(problem);
  rows.rows = (problem.rows + some.together() - 1) / some.together();
  rows.features *= some.together();
  for_each_row(context, rows, strategy, [&](int64_t i, int64_t member) {
    some.run(problem, arguments, i * some.together(), member);
  });
}

}  // namespace wide
