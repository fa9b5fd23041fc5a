// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention: softmax(scale q k^T) v of every head of every member in one call, without a
// matrix of scores in memory.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// Key lengths, which hide the keys beyond them.
enum class KeyLengths : uint8_t {
  none,        ///< all Tk keys are there
  shared,      ///< key_lengths [B], the same for all members
  per_member,  ///< key_lengths [N, B]
};

struct FlashAttentionProblem {
  int64_t num_members = 1;
  int64_t batch = 0;
  int64_t seq = 0;                  ///< queries Tq of a batch row, up to 2^30
  std::optional<int64_t> kv_seq{};  ///< keys Tk of a batch row, up to 2^30; absent: seq
  int64_t heads = 1;                ///< of a member's queries
  int64_t kv_heads = 0;             ///< of its keys and values, divides heads; 0: heads
  int64_t head_dim = 0;             ///< D, in [1, 256]
  Dtype dtype = Dtype::fp32;        ///< of q, k, v and y: fp32, fp16 or bf16
  std::optional<float> scale{};     ///< of q k^T; absent: 1 / sqrt(head_dim)
  bool is_causal = false;           ///< a query sees no key after its own position
  int64_t window = 0;               ///< a query sees keys nearer to it than this; 0: all
  /// Scores become soft_cap tanh(score / soft_cap), within 2^-22 soft_cap; at most 65536; 0: off.
  float soft_cap = 0;
  KeyLengths key_lengths = KeyLengths::none;
  /// A row's last query aligns with the last of its key_lengths keys, not with the last of Tk.
  bool aligns_to_lengths = false;
  bool has_slopes = false;        ///< of ALiBi
  bool has_bias = false;          ///< a bias is added to each score
  ScoreBiasStrides bias{};        ///< 0 along an axis: one for all of it (it does not mean packed)
  RowStrides q{}, k{}, v{}, y{};  ///< rows are positions: batch row after batch row
  int64_t key_lengths_member_stride = 0, slopes_member_stride = 0;
  friend bool operator==(const FlashAttentionProblem&, const FlashAttentionProblem&) = default;
};

struct FlashAttentionArguments {
  ConstTensorView q;              ///< [B, Tq, N*heads*D]
  ConstTensorView k, v;           ///< [B, Tk, N*kv_heads*D]
  ConstTensorView key_lengths{};  ///< int32 [N, B], shared [B], or absent
  ConstTensorView slopes{};       ///< fp32 [N, heads], or absent
  TensorView y;                   ///< [B, Tq, N*heads*D]
  ConstTensorView bias{};         ///< as q: [N or 1, B or 1, heads or 1, Tq, Tk], or absent
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members, heads,
/// kv_heads, scale, is_causal, window, soft_cap and aligns_to_lengths.
FlashAttentionProblem describe_flash_attention(const FlashAttentionArguments& arguments,
                                               const FlashAttentionProblem& like);

extern template class PrimitivePlan<FlashAttentionProblem>;

/// Has no weights, so nothing is prepared: problem, plan, run.
class FlashAttentionPlan : public PrimitivePlan<FlashAttentionProblem> {
 public:
  /// y[b, i, n, h] = sum_j p[j] v[b, j, n, g], p = softmax over the keys j that are seen of
  ///   s[j] = soft_cap tanh(scale q[b, i, n, h] . k[b, j, n, g] / soft_cap) - slopes[n, h] |i' - j|
  ///          + bias[n, b, h, i, j]
  /// with head g = h / (heads / kv_heads) of k and v. Query i has position i' = i + Tk - Tq: the
  /// last query aligns with the last key ("bottom right"), as when the first keys come from a
  /// cache. It sees key j where
  ///   j < key_lengths[n, b]   (below 0 counts as 0, above Tk as Tk),
  ///   j <= i'                 where the problem is causal, and
  ///   |i' - j| < window       where it has one.
  /// Key lengths hide keys and move no positions, unless aligns_to_lengths: then the length stands
  /// for Tk in i', so that rows of a batch may be at different places of their caches, whose slots
  /// behind are hidden; queries before a row's first key see none where causal. A bias is finite,
  /// or -infinity, which hides the key: a mask of any shape. A query that sees no key, or only keys
  /// so hidden, gives 0. Layout: as FlashAttentionArguments says, packed or with members explicit
  /// ([B, T, N,
  ///         heads*D]); D contiguous, heads adjacent, any row and member strides, any
  ///         alignment of an element. y overlaps nothing.
  /// Types: q, k, v, y share a dtype in {fp32, fp16, bf16}; scores, softmax and sums in fp32. On
  ///         CUDA p is rounded to the dtype before it multiplies v.
  /// Values: keys and values beyond a key length are ignored. Keys hidden by causality,
  ///         window or bias only, or by a score so far below the largest that its exponential is 0
  ///         in fp32, must be finite, as 0 v is not 0 where v is NaN or infinite. A query's NaN or
  ///         infinity affects only its own output.
  /// Limits: on CUDA a launch has up to 2^31 - 1 blocks, each of up to 128 queries of a head, or of
  ///         the few of all heads that share keys. If one launch for all members exceeds this, its
  ///         strategy is unsupported and "auto" takes another one, such as sequential.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace: nothing grows with Tq Tk.
  /// Errors: invalid_argument, cuda, cudnn; unsupported where cudnn was asked for and operands are
  ///         not aligned to 16 bytes.
  /// Threads: safe with an Execution each.
  /// Source: Dao, "FlashAttention-2", 2023, arXiv:2307.08691, section 3; Press et al., "Train
  ///         Short, Test Long" (ALiBi), 2021, arXiv:2108.12409, section 3.
  void run(const FlashAttentionArguments& arguments, const Execution& execution) const;

 private:
  friend FlashAttentionPlan make_flash_attention_plan(const Context&, const FlashAttentionProblem&,
                                                      const PlanOptions&);
  explicit FlashAttentionPlan(std::shared_ptr<const State> state)
      : PrimitivePlan(std::move(state)) {}
};

FlashAttentionPlan make_flash_attention_plan(const Context& context,
                                             const FlashAttentionProblem& problem,
                                             const PlanOptions& options = {});

}  // namespace wide
