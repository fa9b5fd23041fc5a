// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's layernorm, rmsnorm and chain: the same statistics as the CUDA kernels', over
// chunks that are decoded to floats on the stack. `wide` spreads all rows of all members over the
// threads at once, `sequential` one member's rows after the other's.
#include <algorithm>
#include <cmath>

#include "host/core/activation_cpu.hpp"
#include "host/core/parallel.hpp"
#include "host/norm/norm_cpu.hpp"
#include "host/norm/row_norm.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

class RowNormaliser {
 public:
  RowNormaliser(const ChainProblem& problem, const ChainArguments& arguments)
      : p_(problem), a_(arguments), size_(dtype_bytes(problem.dtype)) {}

  void operator()(int64_t row, int64_t member) const {
    const auto place = [&](const RowStrides& s) { return row * s.row + member * s.member; };
    const bool is_centred = p_.norm == ChainNorm::layernorm;
    Sum sum;
    if (is_centred) {
      for_each_chunk(row, member, [&](const float* v, int64_t, int64_t count) {
        sum.add(count, [&](int64_t i) { return v[i]; });
      });
    }
    const float rough_mean = sum.mean(p_.features);
    Moments moments;
    if (p_.norm != ChainNorm::none) {
      for_each_chunk(row, member, [&](const float* v, int64_t, int64_t count) {
        moments.add(v, count, rough_mean);
      });
    }
    const float mean = is_centred ? moments.mean(p_.features) : 0.0f;
    const float scale = 1.0f / std::sqrt(moments.square(p_.features, mean) + p_.epsilon);

    // What is written may lie where the row was read: nobody reads it after this.
    for_each_chunk(row, member, [&](const float* v, int64_t first, int64_t count) {
      if (p_.has_sum) encode(v, a_.sum, place(p_.sum) + first, count);
      if (p_.norm == ChainNorm::none) return encode(v, a_.y, place(p_.y) + first, count);
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
      encode(out, a_.y, place(p_.y) + first, count);
    });
  }

 private:
  void decode(const ConstTensorView& from, int64_t element, float* out, int64_t count) const {
    decode_row(p_.dtype, static_cast<const char*>(from.data) + element * size_, out, count);
  }
  void encode(const float* values, const TensorView& to, int64_t element, int64_t count) const {
    encode_row(p_.dtype, values, static_cast<char*>(to.data) + element * size_, count);
  }

  /// Calls f(values, first, count) for the chunks of what is normalised.
  template <class F>
  void for_each_chunk(int64_t row, int64_t member, const F& f) const {
    const bool is_sum = p_.has_bias || p_.has_residual || p_.activation != Activation::none;
    float values[kChunk], added[kChunk];
    for (int64_t first = 0; first < p_.features; first += kChunk) {
      const int64_t count = std::min(kChunk, p_.features - first);
      decode(a_.x, row * p_.x.row + member * p_.x.member + first, values, count);
      if (p_.has_bias) {
        decode(a_.bias, member * p_.bias_member_stride + first, added, count);
        for (int64_t i = 0; i < count; ++i) values[i] += added[i];
      }
      for (int64_t i = 0; i < count && p_.activation != Activation::none; ++i) {
        values[i] = activate_cpu(p_.activation, values[i]);
      }
      if (p_.has_residual) {
        decode(a_.residual, row * p_.residual.row + member * p_.residual.member + first, added,
               count);
        for (int64_t i = 0; i < count; ++i) values[i] += added[i];
      }
      if (is_sum) {  // as it would be stored
        char stored[kChunk * sizeof(float)];
        encode_row(p_.dtype, values, stored, count);
        decode_row(p_.dtype, stored, values, count);
      }
      f(values, first, count);
    }
  }

  const ChainProblem& p_;
  const ChainArguments& a_;
  int64_t size_;
};

}  // namespace

void run_row_norm_cpu(const Context& context, const ChainProblem& problem, WideStrategy strategy,
                      const ChainArguments& arguments) {
  if (problem.features == 0) return;
  const RowNormaliser normalise(problem, arguments);
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
