// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Divides a problem into its parts; strides completed by the parts are copied back.
#include "host/attention/attention_problem.hpp"

#include <string>

#include "host/attention/flash_attention_problem.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/text.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide {

namespace {

void check_sizes(const AttentionProblem& p) {
  require_at_least("attention", "num_members", p.num_members, 1);
  require_at_least("attention", "batch", p.batch, 0);
  require_at_least("attention", "seq", p.seq, 0);
  require_at_least("attention", "kv_seq", *p.kv_seq, 0);
  require_at_least("attention", "features", p.features, 1);
  require_at_least("attention", "heads", p.heads, 1);
  require_at_least("attention", "key_features", p.key_features, 0);
  require_at_least("attention", "value_features", p.value_features, 0);
  WIDE_REQUIRE(p.features % p.heads == 0,
               "attention: heads is " + text(p.heads) +
                   ", expected a divisor of features = " + text(p.features));
  WIDE_REQUIRE(p.features / p.heads <= kMaxHeadDim, "attention: features is " + text(p.features) +
                                                        ", expected at most " + text(kMaxHeadDim) +
                                                        " for each of " + counted(p.heads, "head"));
  require_float_dtype("attention", p.dtype);
  WIDE_REQUIRE(
      p.is_cross ||
          (*p.kv_seq == p.seq && p.key_features == p.features && p.value_features == p.features),
      "attention: keys are of " + text(*p.kv_seq) + " positions and " + text(p.key_features) +
          " features, values of " + text(p.value_features) + ", expected x's = " + text(p.seq) +
          " and " + text(p.features) + ": not is_cross");
  (void)checked_bytes({p.num_members, 3, p.features}, dtype_bytes(p.dtype));
}

/// A linear layer of `rows` positions; strides are filled in by the caller.
LinearProblem layer(const AttentionProblem& p, int64_t members, int64_t rows, int64_t in,
                    int64_t out) {
  LinearProblem linear;
  linear.num_members = members;
  linear.batch = rows;
  linear.in_features = in;
  linear.out_features = out;
  linear.dtype = p.dtype;
  linear.epilogue.has_bias = p.has_bias;
  return linear;
}

Projections projections_of(const AttentionProblem& p, int64_t members) {
  const int64_t d = p.features, queries = num_elements({p.batch, p.seq}),
                keys = num_elements({p.batch, *p.kv_seq});
  Projections projections;
  const auto add = [&](int64_t rows, int64_t in, int64_t out, const RowStrides& x,
                       const RowStrides& weight) {
    LinearProblem linear = layer(p, members, rows, in, out);
    linear.x = x;
    linear.weight = weight;
    linear.bias_member_stride = p.qkv_bias_member_stride == 0 ? 3 * d : p.qkv_bias_member_stride;
    projections.push_back(complete_linear_problem(linear));
  };
  if (!p.is_cross) {
    add(queries, d, 3 * d, p.x, p.qkv_weight);
  } else {
    add(queries, d, d, p.x, p.q_weight);
    add(keys, p.key_features, d, p.key, p.k_weight);
    add(keys, p.value_features, d, p.value, p.v_weight);
  }
  return projections;
}

}  // namespace

AttentionParts attention_parts(const AttentionProblem& p, int64_t members) {
  AttentionParts parts;
  const int64_t d = p.features;
  parts.projections = projections_of(p, members);

  FlashAttentionProblem& core = parts.core;
  core.num_members = members;
  core.batch = p.batch;
  core.seq = p.seq;
  core.kv_seq = p.kv_seq;
  core.heads = p.heads;
  core.head_dim = d / p.heads;
  core.dtype = p.dtype;
  core.is_causal = p.is_causal;
  core.key_lengths = p.key_lengths;
  core.key_lengths_member_stride = p.key_lengths_member_stride;
  core.q = core.k = core.v = parts.projections.front().y;
  if (p.is_cross) core.k = core.v = parts.projections.back().y;
  core = complete_flash_attention_problem(core);

  parts.output = layer(p, members, num_elements({p.batch, p.seq}), d, d);
  parts.output.weight = p.out_weight;
  parts.output.y = p.y;
  parts.output.bias_member_stride = p.out_bias_member_stride;
  parts.output = complete_linear_problem(parts.output);
  return parts;
}

AttentionProblem complete_attention_problem(AttentionProblem p) {
  p.kv_seq = p.kv_seq.value_or(p.seq);
  if (p.key_features == 0) p.key_features = p.features;
  if (p.value_features == 0) p.value_features = p.features;
  check_sizes(p);
  const AttentionParts parts = attention_parts(p, p.num_members);
  const LinearProblem& first = parts.projections.front();
  p.x = first.x;
  if (p.num_members == 1 || p.qkv_bias_member_stride == 0)
    p.qkv_bias_member_stride = 3 * p.features;
  if (!p.has_bias) p.qkv_bias_member_stride = 0;
  p.key = p.value = p.qkv_weight = p.q_weight = p.k_weight = p.v_weight = {};
  if (p.is_cross) {
    p.key = parts.projections[1].x, p.value = parts.projections[2].x;
    p.q_weight = first.weight;
    p.k_weight = parts.projections[1].weight, p.v_weight = parts.projections[2].weight;
  } else {
    p.qkv_weight = first.weight;
  }
  p.key_lengths_member_stride = parts.core.key_lengths_member_stride;
  p.out_weight = parts.output.weight;
  p.out_bias_member_stride = parts.output.bias_member_stride;
  p.y = parts.output.y;
  return p;
}

constexpr auto kAttentionFields = [](const auto& same, const AttentionProblem& got,
                                     const AttentionProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("batch", got.batch, plan.batch);
  same("seq", got.seq, plan.seq);
  same.presence("key", got.is_cross, plan.is_cross);
  same("kv_seq", got.kv_seq, plan.kv_seq);
  same("features", got.features, plan.features);
  same("key_features", got.key_features, plan.key_features);
  same("value_features", got.value_features, plan.value_features);
  same.presence("qkv_bias", got.has_bias, plan.has_bias);
  same("key_lengths", got.key_lengths, plan.key_lengths);
  same("stride of x", got.x, plan.x);
  same("stride of key", got.key, plan.key);
  same("stride of value", got.value, plan.value);
  same("stride of y", got.y, plan.y);
  same("stride of qkv_weight", got.qkv_weight, plan.qkv_weight);
  same("stride of q_weight", got.q_weight, plan.q_weight);
  same("stride of k_weight", got.k_weight, plan.k_weight);
  same("stride of v_weight", got.v_weight, plan.v_weight);
  same("stride of out_weight", got.out_weight, plan.out_weight);
  same("member stride of qkv_bias", got.qkv_bias_member_stride, plan.qkv_bias_member_stride);
  same("member stride of out_bias", got.out_bias_member_stride, plan.out_bias_member_stride);
  same("member stride of key_lengths", got.key_lengths_member_stride,
       plan.key_lengths_member_stride);
  same("num_members", got.num_members, plan.num_members);
  same("heads", got.heads, plan.heads);
  same("is_causal", got.is_causal, plan.is_causal);
  same("needs_weights", got.needs_weights, plan.needs_weights);
};

void require_same_attention_problem(const AttentionProblem& got, const AttentionProblem& plan) {
  require_same_problem("attention", got, plan, kAttentionFields);
}
std::string problem_key(const AttentionProblem& complete) {
  return key_of_fields(complete, kAttentionFields);
}
TuningKey tuning_key(const AttentionProblem& problem) {
  return {"attention", problem_key(complete_attention_problem(problem))};
}

bool is_empty(const AttentionProblem& p) {
  return p.batch == 0 || p.seq == 0;
}

}  // namespace wide
