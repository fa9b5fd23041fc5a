// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// attention: the multi-head module of N members in one call: projections to queries, keys and
// values, flash_attention between them, and the projection of what comes out.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "wide/flash_attention.hpp"
#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct AttentionProblem {
  int64_t num_members = 1;
  int64_t batch = 0;
  int64_t seq = 0;                  ///< positions Tq of x and y
  int64_t features = 0;             ///< D of x and y: heads of D / heads elements each, up to 256
  int64_t heads = 1;                ///< divides features
  Dtype dtype = Dtype::fp32;        ///< of all but lengths: fp32, fp16 or bf16
  bool is_cross = false;            ///< keys and values come from inputs of their own, not from x
  std::optional<int64_t> kv_seq{};  ///< cross: their positions Tk; absent: seq
  int64_t key_features = 0;         ///< cross: of the input of keys (kdim); 0: as features
  int64_t value_features = 0;       ///< cross: of the input of values (vdim); 0: as features
  bool has_bias = false;            ///< of every projection
  bool is_causal = false;  ///< as in flash_attention: the last query aligns with the last key
  KeyLengths key_lengths = KeyLengths::none;
  bool needs_weights = false;           ///< refused: see AttentionPlan::run
  RowStrides x{}, key{}, value{}, y{};  ///< rows are positions: batch row after batch row
  RowStrides qkv_weight{}, q_weight{}, k_weight{}, v_weight{}, out_weight{};
  int64_t qkv_bias_member_stride = 0, out_bias_member_stride = 0, key_lengths_member_stride = 0;
  friend bool operator==(const AttentionProblem&, const AttentionProblem&) = default;
};

/// The parameters of all members; those of one, as in a checkpoint, lack the leading axis.
template <class View>
struct BasicAttentionParameters {
  View qkv_weight{};  ///< [N, 3D, D]: rows of queries, keys, values; absent where is_cross
  View q_weight{};    ///< cross: [N, D, D]
  View k_weight{};    ///< cross: [N, D, key_features]
  View v_weight{};    ///< cross: [N, D, value_features]
  View qkv_bias{};    ///< [N, 3D], or absent
  View out_weight{};  ///< [N, D, D]
  View out_bias{};    ///< [N, D], or absent
};
using AttentionParameters = BasicAttentionParameters<ConstTensorView>;

struct AttentionArguments {
  ConstTensorView x;        ///< [B, Tq, N*D]
  ConstTensorView key{};    ///< [B, Tk, N*key_features], or absent
  ConstTensorView value{};  ///< [B, Tk, N*value_features], or absent
  AttentionParameters parameters;
  ConstTensorView key_lengths{};  ///< int32 [N, B], shared [B], or absent
  TensorView y;                   ///< [B, Tq, N*D]
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members, heads,
/// is_causal and needs_weights.
AttentionProblem describe_attention(const AttentionArguments& arguments,
                                    const AttentionProblem& like);

extern template class PrimitivePlan<AttentionProblem>;

class AttentionPlan : public PrimitivePlan<AttentionProblem> {
 public:
  /// N members' parameters -> the packed ones. Runs once per set of weights, on `stream`.
  void prepare_weights(std::span<const AttentionParameters> members,
                       const BasicAttentionParameters<TensorView>& packed, Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const AttentionParameters& packed,
                       std::span<const BasicAttentionParameters<TensorView>> members,
                       Stream stream) const;

  /// y[b, i, n] = out_weight[n] concat_h(a[b, i, n, h]) + out_bias[n], a flash_attention of head h
  ///   of q = q_weight x + q_bias, k = k_weight key + k_bias, v = v_weight value + v_bias, scaled
  ///   by 1 / sqrt(D / heads); the biases are thirds of qkv_bias, and without cross the weights are
  ///   thirds of qkv_weight and key = value = x.
  /// Padding: by key lengths, which say where a batch row ends and cost nothing to read. There is
  ///         no operand for a byte mask, which might have holes.
  /// Attention weights: not provided (needs_weights is refused): no strategy stores them, since
  ///         avoiding Tq Tk of them per head in memory is the point of flash_attention.
  /// Layout: as AttentionArguments says, packed or with members explicit ([B, T, N, D]); features
  ///         contiguous, any row and member strides, any alignment of an element. y overlaps
  ///         nothing.
  /// Values: positions that causality hides must be finite, as for flash_attention; positions
  ///         beyond a key length may be NaN and affect no other position.
  /// Types: one dtype in {fp32, fp16, bf16}; q, k, v and a are rounded to it between the parts;
  ///         sums and softmax in fp32.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace: room for queries, keys, values and the
  ///         heads' outputs, and the largest workspace that any of the parts needs: they run one
  ///         after another.
  /// Errors: invalid_argument, unsupported, cuda, cublas, cudnn: see plan.hpp.
  /// Threads: safe with an Execution each.
  void run(const AttentionArguments& arguments, const Execution& execution) const;

 private:
  friend AttentionPlan make_attention_plan(const Context&, const AttentionProblem&,
                                           const PlanOptions&);
  explicit AttentionPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

AttentionPlan make_attention_plan(const Context& context, const AttentionProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
