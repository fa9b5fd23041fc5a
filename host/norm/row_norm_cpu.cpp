// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's layernorm and rmsnorm: the same statistics as the CUDA kernels', over
// chunks that are decoded to floats on the stack. `wide` spreads all rows of all members over the
// threads at once, `sequential` one member's rows after the other's.
#include <algorithm>
#include <cmath>

#include "host/core/parallel.hpp"
#include "host/norm/norm_cpu.hpp"
#include "host/norm/row_norm.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

class RowNormaliser {
 public:
  RowNormaliser(RowNorm norm, const LayernormProblem& problem, const LayernormArguments& arguments)
      : is_centred_(norm == RowNorm::layernorm),
        p_(problem),
        a_(arguments),
        size_(dtype_bytes(problem.dtype)) {}

  void operator()(int64_t row, int64_t member) const {
    const char* x =
        static_cast<const char*>(a_.x.data) + (row * p_.x.row + member * p_.x.member) * size_;
    char* y = static_cast<char*>(a_.y.data) + (row * p_.y.row + member * p_.y.member) * size_;
    Sum sum;
    if (is_centred_) {
      for_each_chunk(x, [&](const float* v, int64_t, int64_t count) {
        sum.add(count, [&](int64_t i) { return v[i]; });
      });
    }
    const float rough_mean = sum.mean(p_.features);
    Moments moments;
    for_each_chunk(
        x, [&](const float* v, int64_t, int64_t count) { moments.add(v, count, rough_mean); });
    const float mean = is_centred_ ? moments.mean(p_.features) : 0.0f;
    const float scale = 1.0f / std::sqrt(moments.square(p_.features, mean) + p_.epsilon);

    for_each_chunk(x, [&](const float* v, int64_t first, int64_t count) {
      float out[kChunk], factor[kChunk];
      for (int64_t i = 0; i < count; ++i) out[i] = (v[i] - rough_mean - mean) * scale;
      if (p_.has_gamma) {
        decode(a_.gamma, member * p_.gamma_member_stride + first, factor, count);
        for (int64_t i = 0; i < count; ++i) out[i] *= factor[i];
      }
      if (p_.has_beta) {
        decode(a_.beta, member * p_.beta_member_stride + first, factor, count);
        for (int64_t i = 0; i < count; ++i) out[i] += factor[i];
      }
      encode_row(p_.dtype, out, y + first * size_, count);
    });
  }

 private:
  void decode(const ConstTensorView& from, int64_t element, float* out, int64_t count) const {
    decode_row(p_.dtype, static_cast<const char*>(from.data) + element * size_, out, count);
  }

  template <class F>
  void for_each_chunk(const char* x, const F& f) const {
    float values[kChunk];
    for (int64_t first = 0; first < p_.features; first += kChunk) {
      const int64_t count = std::min(kChunk, p_.features - first);
      decode_row(p_.dtype, x + first * size_, values, count);
      f(values, first, count);
    }
  }

  bool is_centred_;
  const LayernormProblem& p_;
  const LayernormArguments& a_;
  int64_t size_;
};

}  // namespace

void run_row_norm_cpu(const Context& context, RowNorm norm, const LayernormProblem& problem,
                      WideStrategy strategy, const LayernormArguments& arguments) {
  if (problem.features == 0) return;
  const RowNormaliser normalise(norm, problem, arguments);
  const bool is_wide = strategy == WideStrategy::wide;
  const int64_t at_once = is_wide ? problem.num_members : 1;
  const int64_t step = std::max<int64_t>(1, kElementsPerTask / (problem.features * at_once));
  for (int64_t first = 0; first < problem.num_members; first += at_once) {
    parallel_for(context, (problem.rows + step - 1) / step, [&](int64_t task) {
      const int64_t end = std::min(problem.rows, (task + 1) * step);
      for (int64_t row = task * step; row < end; ++row) {
        for (int64_t n = first; n < first + at_once; ++n) normalise(row, n);
      }
    });
  }
}

}  // namespace wide
