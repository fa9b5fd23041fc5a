// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's softmax: the largest value, the sum, the quotients, each over the chunks of a
// row.
#include <cmath>
#include <limits>

#include "host/core/lanes_cpu.hpp"
#include "host/core/math_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "host/pointwise/packed_rows_cpu.hpp"
#include "host/pointwise/softmax_run.hpp"

namespace wide {

namespace {

void run_row(const SoftmaxProblem& p, const SoftmaxArguments& a, int64_t row, int64_t member) {
  const char* x = row_at(a.x.data, p.x, row, member, p.dtype);
  char* y = row_at(a.y.data, p.y, row, member, p.dtype);

  // NaN is not larger: the sum catches it.
  const auto larger = [](float most, float v) { return v > most ? v : most; };
  cpu::Lanes peaks(-std::numeric_limits<float>::infinity());
  cpu::for_each_chunk(p.dtype, x, p.features, [&](const float* v, int64_t, int64_t count) {
    cpu::Lanes::for_each(count,
                         [&](int64_t i, int64_t lane) { peaks[lane] = larger(peaks[lane], v[i]); });
  });
  const float largest = peaks.join(larger);

  // y keeps the powers where it holds the summed values exactly; x may lie there, too.
  const bool is_kept = p.dtype == Dtype::fp32 && !p.is_log;
  const auto power = [&](float v) { return cpu::exp_of_negative(v - largest); };
  cpu::Sum sum;
  float buffer[cpu::kRowChunk];
  cpu::for_each_chunk(p.dtype, x, p.features, [&](const float* v, int64_t first, int64_t count) {
    float* powers = is_kept ? reinterpret_cast<float*>(y) + first : buffer;
    cpu::map(v, powers, count, power);
    sum.add(count, [&](int64_t i) { return powers[i]; });
  });
  const float total = sum.total();
  const float factor = 1.0f / total, shift = p.is_log ? std::log(total) : 0.0f;

  cpu::transform_row(
      p.dtype, is_kept ? y : x, y, p.features,
      [&](const float* v, float* out, int64_t, int64_t count) {
        if (is_kept) return cpu::map(v, out, count, [&](float kept) { return kept * factor; });
        if (!p.is_log)
          return cpu::map(v, out, count, [&](float value) { return power(value) * factor; });
        cpu::map(v, out, count, [&](float value) { return value - largest - shift; });
      });
}

}  // namespace

void run_softmax_cpu(const Context& context, const SoftmaxProblem& problem, WideStrategy strategy,
                     const SoftmaxArguments& arguments) {
  for_each_row(context, rows_of(problem), strategy,
               [&](int64_t row, int64_t member) { run_row(problem, arguments, row, member); });
}

}  // namespace wide
