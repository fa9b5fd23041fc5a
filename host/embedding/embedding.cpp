// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// embedding's plan: choose, quantise, launch, check.
#include "wide/embedding.hpp"

#include <utility>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_operands.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/text.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/verified.hpp"
#include "host/embedding/embedding_problem.hpp"
#include "host/embedding/embedding_run.hpp"
#include "host/embedding/quantized_rows.hpp"
#include "kernels/embedding/embedding_params.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

/// Requires one table per member to quantise, or read back, of the problem's sizes.
template <class View>
void require_members(std::span<const View> members, const EmbeddingProblem& p) {
  WIDE_REQUIRE(static_cast<int64_t>(members.size()) == p.num_members,
               "embedding: " + counted(members.size(), "member") +
                   ", expected num_members = " + std::to_string(p.num_members));
  for (size_t n = 0; n < members.size(); ++n) {
    require_shape(kEmbeddingName, "member " + std::to_string(n), members[n], "[vocab, dim]",
                  {p.vocab, p.dim});
  }
}

}  // namespace

template <>
struct PlanState<EmbeddingProblem> : PlanFacts<EmbeddingProblem, EmbeddingChoice> {};
template class PrimitivePlan<EmbeddingProblem>;

EmbeddingPlan make_embedding_plan(const Context& context, const EmbeddingProblem& problem,
                                  const PlanOptions& options) {
  const EmbeddingProblem full = resolved(problem);
  require_no_policy(kEmbeddingName, options.policy);
  EmbeddingPlan::State state{
      {kEmbeddingName, context, full,
       choose_embedding_strategy(full, context.info(), options.strategy, verified_strategies(),
                                 tuning_of(options, kEmbeddingName, full))}};
  state.workspace_bytes = full.checked ? kWorkspaceAlignment : 0;
  return EmbeddingPlan(std::make_shared<const EmbeddingPlan::State>(std::move(state)));
}

std::string_view EmbeddingPlan::weight_format() const {
  return weight_format_name(state_->problem.table_format);
}

void EmbeddingPlan::prepare_weights(std::span<const ConstTensorView> members,
                                    const TensorView& table, Stream stream) const {
  const EmbeddingProblem& p = state_->problem;
  const bool is_packed = p.table_format == WeightFormat::packed;
  require_shape(
      kEmbeddingName, "table", table,
      is_packed ? "[num_members, vocab, dim]" : "[num_members, vocab, quantized_row_bytes(dim)]",
      {p.num_members, p.vocab, row_elements(p)});
  if (is_packed) return pack(operands::embedding_table, members, table, stream);
  require_members(members, p);
  require_dtype(kEmbeddingName, "table", table, Dtype::uint8);
  quantize_tables(state_->context, p.table_format, members, table, stream);
}

void EmbeddingPlan::restore_weights(const ConstTensorView& table,
                                    std::span<const TensorView> members, Stream stream) const {
  const EmbeddingProblem& p = state_->problem;
  if (p.table_format == WeightFormat::packed) {
    return unpack(operands::embedding_table, table, members, stream);
  }
  require_members(members, p);
  require_dtype(kEmbeddingName, "table", table, Dtype::uint8);
  require_shape(kEmbeddingName, "table", table, "[num_members, vocab, quantized_row_bytes(dim)]",
                {p.num_members, p.vocab, row_elements(p)});
  dequantize_tables(state_->context, p.table_format, table, members, stream);
}

/// Those by which y, and the ids' offsets, are measured.
static void require_plan_operands(const EmbeddingArguments& a, const EmbeddingProblem& p) {
  require_plan_shape(kEmbeddingName, "table", a.table, "[num_members, vocab, elements of a row]",
                     {p.num_members, p.vocab, row_elements(p)});
  if (p.table_format == WeightFormat::packed) {
    require_plan_dtype(kEmbeddingName, "table", a.table, p.dtype);
  }
  require_plan_dtype(kEmbeddingName, "ids", a.ids, p.id_dtype);
  if (p.bag != Bag::none) {
    return require_plan_extent(kEmbeddingName, "offsets", a.offsets, -1, "bags + 1", p.batch + 1);
  }
  if (a.ids.rank() != (p.shared_ids ? 2 : 3)) return;
  require_plan_extent(kEmbeddingName, "ids", a.ids, 0, "batch", p.batch);
  require_plan_extent(kEmbeddingName, "ids", a.ids, -1, "seq", p.seq);
}

void EmbeddingPlan::run(const EmbeddingArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kEmbeddingName, "y", arguments.y, s.context.device());
  require_plan_operands(arguments, s.problem);
  require_same(describe_embedding(arguments, s.problem), s.problem);
  require_workspace(kEmbeddingName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  const auto run =
      s.context.device().type == DeviceType::cpu ? run_embedding_cpu : run_embedding_cuda;
  run(s.context, s.problem, s.choice.strategy, arguments, execution);
}

void EmbeddingPlan::check(const Execution& execution) const {
  const State& s = *state_;
  WIDE_REQUIRE(s.problem.checked,
               "embedding: check() of an unchecked problem: set problem.checked");
  require_workspace(kEmbeddingName, execution, workspace_bytes());
  kernels::EmbeddingReport report;
  const Shape bytes{static_cast<int64_t>(sizeof(report))};
  copy(ConstTensorView(execution.workspace.data, Dtype::uint8, bytes, s.context.device()),
       TensorView(&report, Dtype::uint8, bytes, Device{}), execution.stream);
  s.context.synchronize(execution.stream);
  if (report.place == report.kNone) return;
  const auto place = static_cast<int64_t>(report.place);
  const int64_t position = place / s.problem.num_members;
  const std::string member =
      s.problem.shared_ids ? "" : "n=" + std::to_string(place % s.problem.num_members) + ", ";
  throw_invalid_argument("embedding: ids[b=" + std::to_string(position / s.problem.seq) + ", " +
                         member + "t=" + std::to_string(position % s.problem.seq) + "] is " +
                         std::to_string(report.id) + ", expected 0 <= id < " +
                         std::to_string(s.problem.vocab));
}

}  // namespace wide
