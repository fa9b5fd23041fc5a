// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Types of what activations make with one another: products, attention, recurrent layers.
#include <cmath>

#include "host/attention/flash_attention_problem.hpp"
#include "host/core/text.hpp"
#include "host/model/infer_operands.hpp"

namespace wide::infer_detail {

namespace {

Shape with_extent(Shape shape, int axis, int64_t extent) {
  shape[axis] = extent;
  return shape;
}

void check_key_lengths(const Operands& at) {
  if (at.has("key_lengths")) at.same("key_lengths", {Dtype::int32, {kBatch}});
}

/// [B, heads or 1, Tq or 1, Tk], without the batch where it is a parameter.
void check_score_bias(const Operands& at, int64_t heads, const ValueType& q, const ValueType& k) {
  if (!at.has("bias")) return;
  const ValueType& bias = at.type("bias");
  const int first = at.is_parameter("bias") ? 0 : 1;
  const auto is_one_of = [&](int axis, int64_t extent) {
    return bias.shape[axis] == 1 || bias.shape[axis] == extent;
  };
  const bool fits = bias.dtype == q.dtype && bias.shape.rank() == first + 3 &&
                    is_one_of(first, heads) && is_one_of(first + 1, q.shape[1]) &&
                    bias.shape[first + 2] == k.shape[1];
  at.require(fits, "bias is " + to_string(bias) + ", expected q's dtype and [" +
                       (first == 1 ? "B, " : "") + "1 or " + text(heads) + ", 1 or " +
                       text(q.shape[1]) + ", " + text(k.shape[1]) + "]");
}

}  // namespace

Types infer(const MatmulOp& op, const Operands& at) {
  at.only({"left", "right", "residual"});
  const ValueType& left = at.floating("left", 3, kMaxRank - 1);
  const int rank = left.shape.rank();
  const ValueType& right = at.floating("right", rank, rank);
  const bool fits =
      right == ValueType{left.dtype, with_extent(left.shape, rank - 2, right.shape[rank - 2])};
  at.require(fits, "right is " + to_string(right) + ", expected left's dtype and axes, " +
                       to_string(left) + ", but for the last but one");
  at.require(std::isfinite(op.alpha), "alpha is " + text(op.alpha) + ", expected a finite number");
  const ValueType y = with_last(left, right.shape[rank - 2]);
  at.residual(op.residual, y);
  return {y};
}

Types infer(const AttentionOp& op, const Operands& at) {
  at.only({"x", "key", "value", "qkv_weight", "q_weight", "k_weight", "v_weight", "qkv_bias",
           "out_weight", "out_bias", "key_lengths"});
  const ValueType& x = at.floating("x", 3, 3);
  const int64_t d = x.shape.back();
  at.require(op.heads >= 1 && d % op.heads == 0 && d / op.heads <= kMaxHeadDim,
             "heads is " + text(op.heads) + ", expected a divisor of " + text(d) +
                 " that leaves at most " + text(kMaxHeadDim) + " features a head");
  const bool is_cross = at.has("key");
  if (is_cross) {
    const ValueType& key = at.floating("key", 3, 3);
    const ValueType& value = at.floating("value", 3, 3);
    at.require(key.shape[1] == value.shape[1] && key.dtype == x.dtype && value.dtype == x.dtype,
               "value is " + to_string(value) + ", expected as many positions as key " +
                   to_string(key) + " and x's dtype");
    at.parameter("q_weight", {d, d}, x.dtype);
    at.parameter("k_weight", {d, key.shape.back()}, x.dtype);
    at.parameter("v_weight", {d, value.shape.back()}, x.dtype);
  } else {
    at.parameter("qkv_weight", {3 * d, d}, x.dtype);
  }
  at.require(at.has("qkv_bias") == at.has("out_bias"),
             "qkv_bias or out_bias is absent, expected both or none");
  at.optional_parameter("qkv_bias", {3 * d}, x.dtype);
  at.parameter("out_weight", {d, d}, x.dtype);
  at.optional_parameter("out_bias", {d}, x.dtype);
  check_key_lengths(at);
  return {x};
}

Types infer(const FlashAttentionOp& op, const Operands& at) {
  at.only({"q", "k", "v", "key_lengths", "bias", "slopes"});
  const ValueType& q = at.floating("q", 3, 3);
  const ValueType& k = at.floating("k", 3, 3);
  at.same("v", k);
  const int64_t kv_heads = op.kv_heads == 0 ? op.heads : op.kv_heads;
  at.require(
      op.heads >= 1 && kv_heads >= 1 && op.heads % kv_heads == 0 && q.shape.back() % op.heads == 0,
      "heads is " + text(op.heads) + " and kv_heads " + text(kv_heads) + ", expected divisors of " +
          text(q.shape.back()) + " and of one another");
  at.require(k.dtype == q.dtype && k.shape.back() == q.shape.back() / op.heads * kv_heads,
             "k is " + to_string(k) + ", expected q's dtype and " +
                 text(q.shape.back() / op.heads * kv_heads) + " features");
  at.require_accepted([&] {
    require_flash_attention_head_dim(q.shape.back() / op.heads);
    if (op.scale) require_flash_attention_scale(*op.scale);
    require_flash_attention_window(op.window);
    require_flash_attention_soft_cap(op.soft_cap);
  });
  check_key_lengths(at);
  at.require(!op.aligns_to_lengths || at.has("key_lengths"),
             "aligns_to_lengths is true without key_lengths, expected lengths to align with");
  check_score_bias(at, op.heads, q, k);
  at.optional_parameter("slopes", {op.heads}, Dtype::fp32);
  return {q};
}

Types infer(const RecurrentOp& op, const Operands& at) {
  at.only({"x", "input_weight", "hidden_weight", "input_bias", "hidden_bias", "first_hidden",
           "first_cell"});
  const ValueType& x = at.floating("x", 3, 3);
  const int64_t hidden = at.parameter("hidden_weight", {kBatch, kBatch}, x.dtype).shape[1];
  const int64_t gates = recurrent_gates(op.cell) * hidden;
  const bool is_lstm = op.cell == RecurrentCell::lstm;
  at.parameter("hidden_weight", {gates, hidden}, x.dtype);
  at.parameter("input_weight", {gates, x.shape.back()}, x.dtype);
  at.require(at.has("input_bias") == at.has("hidden_bias"),
             "input_bias or hidden_bias is absent, expected both or none");
  at.optional_parameter("input_bias", {gates}, x.dtype);
  at.optional_parameter("hidden_bias", {gates}, x.dtype);
  if (at.has("first_hidden")) at.same("first_hidden", {x.dtype, {kBatch, hidden}});
  at.require(at.has("first_cell") == (is_lstm && at.has("first_hidden")),
             is_lstm ? "first_hidden or first_cell is absent, expected both or none"
                     : "first_cell is present, expected none: a gru has no cell state");
  if (at.has("first_cell")) at.same("first_cell", {Dtype::fp32, {kBatch, hidden}});
  at.require(is_lstm || !op.writes_cell,
             "writes_cell is true, expected false: a gru has no cell state");
  Types types{with_last(x, hidden)};
  if (op.writes_cell) types.push_back({Dtype::fp32, {kBatch, hidden}});
  return types;
}

}  // namespace wide::infer_detail
