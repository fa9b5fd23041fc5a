// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// embedding: rows of N tables, gathered in one call.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct EmbeddingProblem {
  int64_t num_members = 1;
  int64_t batch = 0;              ///< B
  int64_t seq = 0;                ///< T, ids per batch row
  int64_t vocab = 0;              ///< V, rows of each table
  int64_t dim = 0;                ///< D, elements of a row
  Dtype dtype = Dtype::fp32;      ///< of table and y: any; rows are copied bit for bit
  Dtype id_dtype = Dtype::int64;  ///< int32 or int64
  bool shared_ids = true;         ///< one ids [B, T] for all members; else ids [B, N, T]
  bool checked = false;           ///< run() notes the first id outside [0, V) for check()
  RowStrides y{};                 ///< rows are the B*T positions
  RowStrides table{};             ///< row: from one table row to the next
  int64_t ids_batch_stride = 0, ids_member_stride = 0;  ///< positions of a row are contiguous
  friend bool operator==(const EmbeddingProblem&, const EmbeddingProblem&) = default;
};

struct EmbeddingArguments {
  ConstTensorView ids;    ///< shared [B, T]; own [B, N, T]
  ConstTensorView table;  ///< [N, V, D]
  TensorView y;           ///< [B, T, N*D]
};

/// Reads the problem off the operands; `like` gives what they do not show: shared_ids and checked.
EmbeddingProblem describe_embedding(const EmbeddingArguments& arguments,
                                    const EmbeddingProblem& like = {});

class EmbeddingPlan {
 public:
  const EmbeddingProblem& problem() const;
  std::string_view strategy() const;
  std::string explain() const;
  int64_t workspace_bytes() const;
  std::string_view weight_format() const;

  /// N tables [V, D] -> [N, V, D].
  void prepare_weights(std::span<const ConstTensorView> members, const TensorView& table,
                       Stream stream) const;
  void restore_weights(const ConstTensorView& table, std::span<const TensorView> members,
                       Stream stream) const;

  /// y[b, t, n, :] = table[n, ids[b, t], :]      (ids[b, n, t] where members have their own)
  /// Out of range: an id outside [0, V) reads nothing; its row of y is filled with 0xFF bytes,
  ///         which is NaN in every floating dtype. A checked problem also notes the first such
  ///         position in the workspace: see check().
  /// Layout: as EmbeddingArguments says; rows of any length and alignment. y overlaps no input.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace (0 unless checked).
  /// Errors: invalid_argument, cuda. Threads: safe with an Execution each.
  void run(const EmbeddingArguments& arguments, const Execution& execution) const;

  /// For a checked problem, after run() on the same Execution: waits for the stream and throws
  /// invalid_argument with member, position and id of the first id out of range (lowest position,
  /// then lowest member; shared ids name no member). The one call here that synchronizes.
  void check(const Execution& execution) const;

  struct State;

 private:
  friend EmbeddingPlan make_embedding_plan(const Context&, const EmbeddingProblem&,
                                           const PlanOptions&);
  explicit EmbeddingPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

EmbeddingPlan make_embedding_plan(const Context& context, const EmbeddingProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
