// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// embedding: rows of N tables, gathered in one call, or the sums and means of bags of them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "wide/parse_enumerator.hpp"
#include "wide/plan.hpp"
#include "wide/quantize.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// How a bag of rows is combined.
enum class Bag : uint8_t {
  none,  ///< there are no bags: one row for each id
  sum,
  mean,  ///< sum * (1 / number of rows added up)
};

constexpr std::string_view bag_name(Bag bag) {
  switch (bag) {
    case Bag::none:
      return "none";
    case Bag::sum:
      return "sum";
    case Bag::mean:
      return "mean";
  }
  return "?";
}

inline constexpr auto kAllBags = enumerators<Bag, bag_name>();

constexpr std::optional<Bag> parse_bag(std::string_view name) {
  return parse_enumerator(name, kAllBags, bag_name);
}

struct EmbeddingProblem {
  int64_t num_members = 1;
  int64_t batch = 0;              ///< B; with bags, their number
  int64_t seq = 0;                ///< T, ids per batch row; with bags L, all ids of a member
  int64_t vocab = 0;              ///< V, rows of each table
  int64_t dim = 0;                ///< D, elements of a row
  Dtype dtype = Dtype::fp32;      ///< of table and y: any; rows are copied bit for bit. fp32, fp16
                                  ///< or bf16 where tables are quantised or there are bags
  Dtype id_dtype = Dtype::int64;  ///< int32 or int64
  bool shared_ids = true;         ///< one ids [B, T] for all members; else ids [B, N, T]
  bool checked = false;           ///< run() notes the first id outside [0, V) for check()
  WeightFormat table_format = WeightFormat::packed;  ///< or fp8_e4m3, int8: quantised rows
  Bag bag = Bag::none;
  int64_t padding_id = -1;  ///< an id that means zeros, whatever its row holds; -1: none
  float max_norm = 0;       ///< 0; others are refused: lookups would rewrite rows that others read
                            ///< meanwhile. Rows can be scaled down before prepare_weights().
  RowStrides y{};           ///< rows are the B*T positions, or the B bags
  RowStrides table{};       ///< row: from one table row to the next; of quantised ones in bytes
  int64_t ids_batch_stride = 0, ids_member_stride = 0;  ///< positions of a row are contiguous
  int64_t offsets_member_stride = 0;
  friend bool operator==(const EmbeddingProblem&, const EmbeddingProblem&) = default;
};

struct EmbeddingArguments {
  ConstTensorView ids;    ///< shared [B, T]; own [B, N, T]; of bags shared [L], own [N, L]
  ConstTensorView table;  ///< [N, V, D]; quantised uint8 [N, V, quantized_row_bytes(D)]
  TensorView y;           ///< [B, T, N*D]; of bags [B, N*D]
  /// With bags, in the ids' dtype: shared [B + 1], own [N, B + 1]. Bag b has the ids
  /// [offsets[b], offsets[b + 1]).
  ConstTensorView offsets{};
};

/// Reads the problem off the operands; `like` gives what they do not show: shared_ids, checked,
/// bag, padding_id and the table's format; where that is a quantised one, also dim.
EmbeddingProblem describe_embedding(const EmbeddingArguments& arguments,
                                    const EmbeddingProblem& like = {});

extern template class PrimitivePlan<EmbeddingProblem>;

class EmbeddingPlan : public PrimitivePlan<EmbeddingProblem> {
 public:
  /// The table's format: "packed" is [N, V, D], the others are rows of quantized_row_bytes(D).
  std::string_view weight_format() const;

  /// N tables [V, D] -> [N, V, D]. Tables to be quantised may be fp32, fp16 or bf16 whatever the
  /// problem's dtype. The scale of a row is the better, by squared error, of max |w| / (largest
  /// value) and the next power of two above; codes are the nearest, ties to even. A row with a NaN
  /// or an infinity becomes NaN. On CUDA quantised tables are staged through the host: this is not
  /// part of an execution, as it allocates, waits for `stream` and cannot be captured.
  void prepare_weights(std::span<const ConstTensorView> members, const TensorView& table,
                       Stream stream) const;
  /// The inverse, bit for bit; for quantised tables the stored values, rounded to the members'
  /// dtype.
  void restore_weights(const ConstTensorView& table, std::span<const TensorView> members,
                       Stream stream) const;

  /// y[b, t, n, :] = table[n, ids[b, t], :]      (ids[b, n, t] where members have their own)
  /// Bags:   y[b, n, :] = the sum of table[n, ids[n, l], :] over the bag's l, in their order, in
  ///         fp32 and rounded once, or their mean; 0 for an empty bag. Rows of the padding id are
  ///         skipped: neither added nor counted.
  /// Out of range: an id outside [0, V) reads nothing; its row of y is filled with 0xFF bytes,
  ///         which is NaN in every floating dtype. A checked problem also notes the first such
  ///         position in the workspace: see check(). A bag with such an id, or with offsets
  ///         outside of the ids or in the wrong order, is filled so, too; bags are never checked.
  /// Layout: as EmbeddingArguments says; rows of any length and alignment. y overlaps no input.
  /// Types: table and y share any dtype, whose rows are copied bit for bit; with bags fp32, fp16 or
  ///        bf16, as y of a quantised table (uint8), whose elements are exact in fp32. ids and
  ///        offsets share int32 or int64.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace (0 unless checked).
  /// Errors: invalid_argument, cuda.
  /// Threads: safe with an Execution each.
  void run(const EmbeddingArguments& arguments, const Execution& execution) const;

  /// For a checked problem, after run() on the same Execution: waits for the stream and throws
  /// invalid_argument with member, position and id of the first id out of range (lowest position,
  /// then lowest member; shared ids name no member). The only call here that synchronizes.
  void check(const Execution& execution) const;

 private:
  friend EmbeddingPlan make_embedding_plan(const Context&, const EmbeddingProblem&,
                                           const PlanOptions&);
  explicit EmbeddingPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

EmbeddingPlan make_embedding_plan(const Context& context, const EmbeddingProblem& problem,
                                  const PlanOptions& options = {});

}  // namespace wide
