// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Divides a problem into its parts; strides are completed by them and taken back.
#include "host/attention/attention_problem.hpp"

#include <string>
#include <utility>

#include "host/attention/flash_attention_problem.hpp"
#include "host/core/check.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide {

namespace {

void require_least(const char* field, int64_t value, int64_t least) {
  WIDE_REQUIRE(value >= least, "attention: " + std::string(field) + " is " + std::to_string(value) +
                                   ", expected >= " + std::to_string(least));
}

void check_sizes(const AttentionProblem& p) {
  require_least("num_members", p.num_members, 1);
  require_least("batch", p.batch, 0);
  require_least("seq", p.seq, 0);
  require_least("kv_seq", *p.kv_seq, 0);
  require_least("features", p.features, 1);
  require_least("heads", p.heads, 1);
  require_least("key_features", p.key_features, 0);
  require_least("value_features", p.value_features, 0);
  constexpr int64_t kMaxHeadDim = 256;
  WIDE_REQUIRE(p.features % p.heads == 0,
               "attention: heads is " + std::to_string(p.heads) +
                   ", expected a divisor of features = " + std::to_string(p.features));
  WIDE_REQUIRE(p.features / p.heads <= kMaxHeadDim,
               "attention: features is " + std::to_string(p.features) + ", expected at most " +
                   std::to_string(kMaxHeadDim) + " for each of " + std::to_string(p.heads) +
                   " heads");
  WIDE_REQUIRE(
      p.dtype == Dtype::fp32 || p.dtype == Dtype::fp16 || p.dtype == Dtype::bf16,
      "attention: dtype is " + std::string(dtype_name(p.dtype)) + ", expected fp32, fp16 or bf16");
  WIDE_REQUIRE(p.is_cross || (*p.kv_seq == p.seq && p.key_features == p.features &&
                              p.value_features == p.features),
               "attention: keys are of " + std::to_string(*p.kv_seq) + " positions and " +
                   std::to_string(p.key_features) + " features, values of " +
                   std::to_string(p.value_features) + ", expected x's = " + std::to_string(p.seq) +
                   " and " + std::to_string(p.features) + ": not is_cross");
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

void require_same_attention_problem(const AttentionProblem& got, const AttentionProblem& plan) {
  if (got == plan) return;
  const auto differ = [](const char* field, int64_t got_value, int64_t plan_value) {
    WIDE_REQUIRE(got_value == plan_value,
                 "attention: the operands' " + std::string(field) + " is " +
                     std::to_string(got_value) +
                     ", expected the plan's = " + std::to_string(plan_value));
  };
  WIDE_REQUIRE(got.dtype == plan.dtype,
               "attention: the operands' dtype is " + std::string(dtype_name(got.dtype)) +
                   ", expected the plan's = " + std::string(dtype_name(plan.dtype)));
  differ("batch", got.batch, plan.batch);
  differ("seq", got.seq, plan.seq);
  differ("is_cross", got.is_cross, plan.is_cross);
  differ("kv_seq", *got.kv_seq, *plan.kv_seq);
  differ("features", got.features, plan.features);
  differ("key_features", got.key_features, plan.key_features);
  differ("value_features", got.value_features, plan.value_features);
  differ("has_bias", got.has_bias, plan.has_bias);
  differ("number of sets of key_lengths", static_cast<int64_t>(got.key_lengths),
         static_cast<int64_t>(plan.key_lengths));
  const auto differ_strides = [&](const std::string& field, const RowStrides& a,
                                  const RowStrides& b) {
    differ(("row stride of " + field).c_str(), a.row, b.row);
    differ(("member stride of " + field).c_str(), a.member, b.member);
  };
  differ_strides("x", got.x, plan.x);
  differ_strides("key", got.key, plan.key);
  differ_strides("value", got.value, plan.value);
  differ_strides("y", got.y, plan.y);
  differ_strides("qkv_weight", got.qkv_weight, plan.qkv_weight);
  differ_strides("q_weight", got.q_weight, plan.q_weight);
  differ_strides("k_weight", got.k_weight, plan.k_weight);
  differ_strides("v_weight", got.v_weight, plan.v_weight);
  differ_strides("out_weight", got.out_weight, plan.out_weight);
  differ("member stride of qkv_bias", got.qkv_bias_member_stride, plan.qkv_bias_member_stride);
  differ("member stride of out_bias", got.out_bias_member_stride, plan.out_bias_member_stride);
  differ("member stride of key_lengths", got.key_lengths_member_stride,
         plan.key_lengths_member_stride);
}

bool is_empty(const AttentionProblem& p) {
  return p.batch == 0 || p.seq == 0;
}

}  // namespace wide
