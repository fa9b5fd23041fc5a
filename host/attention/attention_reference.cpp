// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Row by row; the error bounds of a part are carried through the next one.
#include "host/attention/attention_reference.hpp"

#include <cmath>

#include "host/attention/flash_attention_reference.hpp"
#include "host/linear/linear_reference.hpp"

namespace wide::catalog {

namespace {

/// y = weight x + bias of one row, and the largest errors of a kernel's.
void project(const AttentionProblem& p, std::span<const double> x, std::span<const double> weight,
             std::span<const double> bias, std::span<double> y, std::span<double> errors) {
  LinearProblem linear;
  linear.in_features = static_cast<int64_t>(x.size());
  linear.out_features = static_cast<int64_t>(y.size());
  linear.dtype = p.dtype;
  linear.epilogue.has_bias = !bias.empty();
  judge_linear_row(linear, {x, weight, bias, {}, {}}, Fill::uniform, y, errors);
}

std::span<const double> row_of(std::span<const double> rows, int64_t row, int64_t length) {
  return rows.subspan(static_cast<size_t>(row * length), static_cast<size_t>(length));
}

/// A third of the bias of queries, keys and values.
std::span<const double> third(std::span<const double> bias, int64_t index) {
  return bias.empty() ? bias : row_of(bias, index, static_cast<int64_t>(bias.size()) / 3);
}

FlashAttentionProblem core_of(const AttentionProblem& p) {
  FlashAttentionProblem core;
  core.batch = p.batch;
  core.seq = p.seq;
  core.kv_seq = p.kv_seq;
  core.heads = core.kv_heads = p.heads;
  core.head_dim = p.features / p.heads;
  core.dtype = p.dtype;
  core.scale = 1 / std::sqrt(static_cast<float>(core.head_dim));
  core.is_causal = p.is_causal;
  core.key_lengths = p.key_lengths;
  return core;
}

}  // namespace

const std::string_view kAttentionToleranceFormula =
    "linear's of the output projection + sqrt(sum_i (out_weight e_i)^2); e_i flash_attention's of "
    "element i of the heads + 4 sqrt(sum over the elements of q, k, v of (dy_i/d. times linear's "
    "tolerance of its projection)^2): roundings of so many elements are independent, and four "
    "times the root of their squares is seven standard deviations of what they come to";

AttentionReferenceKeys attention_reference_keys(const AttentionProblem& p,
                                                const AttentionReferenceMember& member,
                                                int64_t batch_row, int64_t length) {
  const int64_t keys = *p.kv_seq, d = p.features;
  AttentionReferenceKeys result{.length = length};
  for (auto* values : {&result.k, &result.v, &result.k_error, &result.v_error}) {
    values->resize(static_cast<size_t>(keys * d));
  }
  const auto part = [&](std::vector<double>& rows, int64_t key) {
    return std::span(rows).subspan(static_cast<size_t>(key * d), static_cast<size_t>(d));
  };
  for (int64_t key = 0; key < keys; ++key) {
    const int64_t row = batch_row * keys + key;
    project(p, row_of(member.key, row, p.key_features), member.k_weight, third(member.qkv_bias, 1),
            part(result.k, key), part(result.k_error, key));
    project(p, row_of(member.value, row, p.value_features), member.v_weight,
            third(member.qkv_bias, 2), part(result.v, key), part(result.v_error, key));
  }
  return result;
}

void judge_attention_row(const AttentionProblem& p, const AttentionReferenceMember& member,
                         const AttentionReferenceKeys& keys, int64_t row, std::span<double> values,
                         std::span<double> tolerances) {
  const auto d = static_cast<size_t>(p.features), dim = d / static_cast<size_t>(p.heads);
  std::vector<double> q(d), q_error(d), heads(d), heads_error(d);
  project(p, row_of(member.x, row, p.features), member.q_weight, third(member.qkv_bias, 0), q,
          q_error);
  const FlashAttentionProblem core = core_of(p);
  for (int64_t h = 0; h < p.heads; ++h) {
    const size_t first = static_cast<size_t>(h) * dim;
    FlashAttentionReferenceRow judged{
        std::span(q).subspan(first, dim), keys.k, keys.v, row % p.seq, h, keys.length, 0};
    judged.q_error = std::span(q_error).subspan(first, dim);
    judged.k_error = keys.k_error;
    judged.v_error = keys.v_error;
    judge_flash_attention_row(core, judged, std::span(heads).subspan(first, dim),
                              std::span(heads_error).subspan(first, dim));
  }
  project(p, heads, member.out_weight, member.out_bias, values, tolerances);
  for (size_t o = 0; o < d; ++o) {
    double squares = 0;
    for (size_t i = 0; i < d; ++i) {
      squares += std::pow(member.out_weight[o * d + i] * heads_error[i], 2);
    }
    tolerances[o] += std::sqrt(squares);
  }
}

}  // namespace wide::catalog
