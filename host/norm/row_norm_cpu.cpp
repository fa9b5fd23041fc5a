// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's layernorm, rmsnorm and chain: the same statistics as the CUDA kernels', over
// chunks of a row. `wide` spreads all rows of all members over the threads at once, `sequential`
// the rows of one member after another, which of routed ones are found anew for each.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "host/core/activation_cpu.hpp"
#include "host/core/independent.hpp"
#include "host/core/row_cpu.hpp"
#include "host/norm/norm_cpu.hpp"
#include "host/norm/row_norm.hpp"

namespace wide {

namespace {

constexpr std::array<float, kChunk> filled(float value) {
  std::array<float, kChunk> chunk{};
  chunk.fill(value);
  return chunk;
}
/// They change no value, nor a zero's sign.
constexpr auto kNoFactor = filled(1.0f), kNoShift = filled(-0.0f);

/// One row of one member; `owner` is whose parameters it has.
class RowNormaliser {
 public:
  RowNormaliser(const ChainProblem& problem, const ChainArguments& arguments, int64_t row,
                int64_t member, int64_t owner)
      : p_(problem), a_(arguments), row_(row), member_(member), owner_(owner) {}

  void run() {
    const bool is_centred = p_.norm == ChainNorm::layernorm, is_normed = p_.norm != ChainNorm::none;
    cpu::Sum sum;
    Moments moments;
    float rough_mean = 0;
    // One loop, not one per pass: the code that fetches a chunk is inlined at every call.
    for (const Pass pass : {Pass::sum, Pass::moments, Pass::store}) {
      if ((pass == Pass::sum && !is_centred) || (pass == Pass::moments && !is_normed)) continue;
      const float mean = is_centred ? moments.mean(p_.features) : 0.0f;
      const float scale = 1.0f / std::sqrt(moments.square(p_.features, mean) + p_.epsilon);
      for (int64_t first = 0; first < p_.features; first += kChunk) {
        const int64_t count = std::min(kChunk, p_.features - first);
        const float* v = chunk(first, count);
        if (pass == Pass::sum) {
          sum.add(count, [v](int64_t i) { return v[i]; });
        } else if (pass == Pass::moments) {
          moments.add(v, count, rough_mean);
        } else {
          store(v, first, count, rough_mean, mean, scale);
        }
      }
      if (pass == Pass::sum) rough_mean = sum.mean(p_.features);
    }
  }

 private:
  enum class Pass { sum, moments, store };

  /// May write where the row was read: it is not read after this.
  void store(const float* v, int64_t first, int64_t count, float rough_mean, float mean,
             float scale) {
    char* y = row_at(a_.y.data, p_.y, row_, member_, p_.dtype);
    const auto put = [&](const float* values, char* to) {
      encode_row(p_.dtype, values, to + first * dtype_bytes(p_.dtype), count);
    };
    if (p_.has_sum) put(v, row_at(a_.sum.data, p_.sum, row_, member_, p_.dtype));
    if (p_.norm == ChainNorm::none) return put(v, y);
    float results[kChunk];
    const bool is_float = p_.dtype == Dtype::fp32;
    float* out = is_float ? reinterpret_cast<float*>(y) + first : results;
    const float* gamma = p_.has_gamma
                             ? parameters(a_.gamma, p_.gamma_member_stride, first, count, others_)
                             : kNoFactor.data();
    float shifts[kChunk];
    const float* beta = p_.has_beta
                            ? parameters(a_.beta, p_.beta_member_stride, first, count, shifts)
                            : kNoShift.data();
    WIDE_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      out[i] = (v[i] - rough_mean - mean) * scale * gamma[i] + beta[i];
    }
    if (!is_float) put(out, y);
  }

  const float* parameters(const ConstTensorView& view, int64_t stride, int64_t first, int64_t count,
                          float* buffer) const {
    return cpu::chunk_of(p_.dtype, view.data, owner_ * stride + first, count, buffer);
  }
  static void add(const float* others, float* values, int64_t count) {
    cpu::map(values, others, values, count, [](float value, float other) { return value + other; });
  }

  /// A chunk of the normalised values; a row's only chunk is fetched once.
  const float* chunk(int64_t first, int64_t count) {
    if (chunk_ == nullptr || p_.features > kChunk) chunk_ = fetch(first, count);
    return chunk_;
  }
  const float* fetch(int64_t first, int64_t count) {
    const auto of = [&](const ConstTensorView& view, const RowStrides& strides, float* buffer) {
      const char* row = row_at(view.data, strides, row_, member_, p_.dtype);
      return cpu::chunk_of(p_.dtype, row, first, count, buffer);
    };
    const float* x = of(a_.x, p_.x, values_);
    if (!p_.has_bias && !p_.has_residual && p_.activation == Activation::none) return x;
    if (x != values_) std::copy_n(x, count, values_);
    if (p_.has_bias) {
      add(parameters(a_.bias, p_.bias_member_stride, first, count, others_), values_, count);
    }
    activate_cpu(p_.activation, values_, count);
    if (p_.has_residual) add(of(a_.residual, p_.residual, others_), values_, count);
    if (p_.dtype != Dtype::fp32) {  // as it would be stored
      char stored[kChunk * sizeof(uint16_t)];
      encode_row(p_.dtype, values_, stored, count);
      decode_row(p_.dtype, stored, values_, count);
    }
    return values_;
  }

  const ChainProblem& p_;
  const ChainArguments& a_;
  int64_t row_, member_, owner_;
  const float* chunk_ = nullptr;
  float values_[kChunk], others_[kChunk];
};

constexpr int64_t kNobody = -1, kAll = -2;

/// Of a routed row.
int64_t owner_of(const ChainProblem& p, const ConstTensorView& ids, int64_t row) {
  const int64_t id = *p.id_dtype == Dtype::int64 ? static_cast<const int64_t*>(ids.data)[row]
                                                 : static_cast<const int32_t*>(ids.data)[row];
  const bool is_member = id >= p.first_id && id - p.first_id < p.num_members;
  return is_member ? id - p.first_id : kNobody;
}

void write_zeros(const ChainProblem& p, const ChainArguments& a, int64_t row) {
  const auto bytes = static_cast<size_t>(p.features * dtype_bytes(p.dtype));
  std::memset(row_at(a.y.data, p.y, row, 0, p.dtype), 0, bytes);
  if (p.has_sum) std::memset(row_at(a.sum.data, p.sum, row, 0, p.dtype), 0, bytes);
}

/// Whether short rows come from memory and go there, side by side.
bool is_streamed(const Context& context, const ChainProblem& p) {
  const int64_t bytes = 2 * p.rows * p.num_members * p.features * dtype_bytes(p.dtype);
  return p.features <= kChunk && p.x.member == p.features && p.y.member == p.features &&
         bytes > context.info().last_level_cache_bytes / 2;
}

}  // namespace

void run_row_norm_cpu(const Context& context, const ChainProblem& problem, WideStrategy strategy,
                      const ChainArguments& arguments) {
  if (problem.features == 0) return;
  const bool is_routed = problem.id_dtype.has_value(), is_wide = strategy == WideStrategy::wide;
  const int64_t members = is_routed ? 1 : problem.num_members, at_once = is_wide ? members : 1;
  const bool fetches = at_once > 1 && is_streamed(context, problem);
  const int64_t bytes = problem.features * dtype_bytes(problem.dtype);
  // For all uses, as what it calls is compiled into it for every instruction set.
  const auto run_rows_of = [&](int64_t only) {
    for_each_member_row(
        context, problem.rows, members, at_once, problem.features,
        [&](int64_t row, int64_t member) {
          const int64_t owner = is_routed ? owner_of(problem, arguments.ids, row) : member;
          if (only != kAll && only != owner) return;
          if (owner == kNobody) return write_zeros(problem, arguments, row);
          if (fetches && row + 1 < problem.rows) {
            // What lies behind this row: the next member's. Since parameters are another member's
            // in every row, the processor does not look that far ahead by itself. It stands here
            // because g++ drops calls of a function that does nothing but this.
            const char* x = row_at(arguments.x.data, problem.x, row, member, problem.dtype) + bytes;
            const char* y = row_at(arguments.y.data, problem.y, row, member, problem.dtype) + bytes;
            for (int64_t i = 0; i < bytes; i += 64) {
              __builtin_prefetch(x + i);
              __builtin_prefetch(y + i, 1);
            }
          }
          RowNormaliser(problem, arguments, row, member, owner).run();
        });
  };
  if (!is_routed || is_wide) return run_rows_of(kAll);
  for (int64_t owner = kNobody; owner < problem.num_members; ++owner) run_rows_of(owner);
}

}  // namespace wide
