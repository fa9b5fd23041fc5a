// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks and completes problems. Extents are computed with overflow checks here, so that the
// kernels need none; positions fit in 32 bits with room for differences.
#include "host/attention/flash_attention_problem.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "host/core/extent.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"

namespace wide {

namespace {

constexpr int64_t kMaxSeq = int64_t{1} << 30;
constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

void require_range(const char* field, int64_t value, int64_t least, int64_t most = kUnbounded) {
  const auto range = [&]() -> std::string {
    return most == kUnbounded ? ">= " + text(least)
                              : "in [" + text(least) + ", " + text(most) + "]";
  };
  WIDE_REQUIRE(value >= least && value <= most, "flash_attention: " + std::string(field) + " is " +
                                                    text(value) + ", expected " + range());
}

void check_sizes(const FlashAttentionProblem& p) {
  require_range("num_members", p.num_members, 1);
  require_range("batch", p.batch, 0);
  require_range("seq", p.seq, 0, kMaxSeq);
  require_range("kv_seq", *p.kv_seq, 0, kMaxSeq);
  require_range("heads", p.heads, 1);
  require_range("kv_heads", p.kv_heads, 1);
  require_flash_attention_head_dim(p.head_dim);
  require_flash_attention_window(p.window);
  WIDE_REQUIRE(p.heads % p.kv_heads == 0, "flash_attention: kv_heads is " + text(p.kv_heads) +
                                              ", expected a divisor of heads = " + text(p.heads));
  require_float_dtype("flash_attention", p.dtype);
  require_enumerator("flash_attention", "key_lengths", p.key_lengths, KeyLengths::per_member);
  WIDE_REQUIRE(!p.aligns_to_lengths || p.key_lengths != KeyLengths::none,
               "flash_attention: aligns_to_lengths is true, but key_lengths is none, expected "
               "lengths to align with");
  require_flash_attention_scale(*p.scale);
  require_flash_attention_soft_cap(p.soft_cap);
  const int64_t bytes = dtype_bytes(p.dtype);
  (void)checked_bytes({p.batch, p.seq, p.num_members, p.heads, p.head_dim}, bytes);
  (void)checked_bytes({p.batch, *p.kv_seq, p.num_members, p.kv_heads, p.head_dim}, bytes);
}

/// As [rows, members, features].
RowStrides complete(const char* field, const RowStrides& strides, int64_t rows, int64_t members,
                    int64_t features) {
  return complete_strides(name_of("flash_attention", field), strides,
                          packed_rows(members, features), rows, members, features);
}

}  // namespace

void require_flash_attention_head_dim(int64_t head_dim) {
  require_range("head_dim", head_dim, 1, kMaxHeadDim);
}

void require_flash_attention_scale(float scale) {
  WIDE_REQUIRE(std::isfinite(scale),
               "flash_attention: scale is " + text(scale) + ", expected a finite number");
}

void require_flash_attention_window(int64_t window) {
  require_range("window", window, 0);
}

void require_flash_attention_soft_cap(float soft_cap) {
  constexpr float kMaxSoftCap = 65536;  // scores are exact to 2^-22 of it
  WIDE_REQUIRE(soft_cap >= 0 && soft_cap <= kMaxSoftCap,
               "flash_attention: soft_cap is " + text(soft_cap) +
                   ", expected a number from 0, which is none, to 65536");
}

FlashAttentionProblem complete_flash_attention_problem(FlashAttentionProblem p) {
  p.kv_seq = p.kv_seq.value_or(p.seq);
  if (p.kv_heads == 0) p.kv_heads = p.heads;
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<float>(p.head_dim < 1 ? 1 : p.head_dim));
  check_sizes(p);
  if (p.window >= kMaxSeq) p.window = 0;  // no query and key are that far apart
  const int64_t members = p.num_members, queries = p.batch * p.seq, keys = p.batch * *p.kv_seq;
  const int64_t features = p.heads * p.head_dim, kv_features = p.kv_heads * p.head_dim;
  p.q = complete("q", p.q, queries, members, features);
  p.k = complete("k", p.k, keys, members, kv_features);
  p.v = complete("v", p.v, keys, members, kv_features);
  p.y = complete("y", p.y, queries, members, features);
  require_disjoint_rows("flash_attention", "y", {queries, p.y}, members, features);
  const auto member_stride = [&](const char* field, bool is_present, int64_t given, int64_t count) {
    const ArgumentName name = name_of("flash_attention", field);
    return is_present ? complete_stride(name, given, members, count) : 0;
  };
  p.key_lengths_member_stride =
      member_stride("key_lengths_member_stride", p.key_lengths == KeyLengths::per_member,
                    p.key_lengths_member_stride, p.batch);
  p.slopes_member_stride =
      member_stride("slopes_member_stride", p.has_slopes, p.slopes_member_stride, p.heads);
  if (!p.has_bias) p.bias = {};
  for (const auto& [stride, extent] : {std::pair{&p.bias.member, members},
                                       {&p.bias.batch, p.batch},
                                       {&p.bias.head, p.heads},
                                       {&p.bias.query, p.seq}}) {
    require_range("a stride of bias", *stride, 0);
    if (extent <= 1) *stride = 0;  // nothing steps along it
  }
  const SteppedAxis axes[] = {{p.bias.member, members},
                              {p.bias.batch, p.batch},
                              {p.bias.head, p.heads},
                              {p.bias.query, p.seq}};
  WIDE_REQUIRE(extent_fits(axes, *p.kv_seq), "flash_attention: bias has strides " + text(p.bias) +
                                                 ", expected an extent that fits in 64 bits");
  return p;
}

constexpr auto kFlashAttentionFields = [](const auto& same, const FlashAttentionProblem& got,
                                          const FlashAttentionProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("batch", got.batch, plan.batch);
  same("seq", got.seq, plan.seq);
  same("kv_seq", got.kv_seq, plan.kv_seq);
  same("head_dim", got.head_dim, plan.head_dim);
  same("key_lengths", got.key_lengths, plan.key_lengths);
  same.presence("slopes", got.has_slopes, plan.has_slopes);
  same.presence("bias", got.has_bias, plan.has_bias);
  same("stride of q", got.q, plan.q);
  same("stride of k", got.k, plan.k);
  same("stride of v", got.v, plan.v);
  same("stride of y", got.y, plan.y);
  same("member stride of key_lengths", got.key_lengths_member_stride,
       plan.key_lengths_member_stride);
  same("member stride of slopes", got.slopes_member_stride, plan.slopes_member_stride);
  same("stride of bias", got.bias, plan.bias);
  same("num_members", got.num_members, plan.num_members);
  same("heads", got.heads, plan.heads);
  same("kv_heads", got.kv_heads, plan.kv_heads);
  same("scale", got.scale, plan.scale);
  same("is_causal", got.is_causal, plan.is_causal);
  same("window", got.window, plan.window);
  same("soft_cap", got.soft_cap, plan.soft_cap);
  same("aligns_to_lengths", got.aligns_to_lengths, plan.aligns_to_lengths);
};

void require_same_flash_attention_problem(const FlashAttentionProblem& got,
                                          const FlashAttentionProblem& plan) {
  require_same_problem("flash_attention", got, plan, kFlashAttentionFields);
}
std::string problem_key(const FlashAttentionProblem& complete) {
  return key_of_fields(complete, kFlashAttentionFields);
}
TuningKey tuning_key(const FlashAttentionProblem& problem) {
  return {"flash_attention", problem_key(complete_flash_attention_problem(problem))};
}

bool is_empty(const FlashAttentionProblem& p) {
  return p.batch == 0 || p.seq == 0;
}

}  // namespace wide
