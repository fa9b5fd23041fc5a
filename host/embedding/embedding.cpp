// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// embedding's verbs: validate, choose, launch.
#include "wide/embedding.hpp"

#include <vector>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/verified.hpp"
#include "host/embedding/embedding_run.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kName = "embedding";

struct Field {
  const char* name;
  int64_t EmbeddingProblem::*value;
};
constexpr Field kSizes[] = {{"num_members", &EmbeddingProblem::num_members},
                            {"batch", &EmbeddingProblem::batch},
                            {"seq", &EmbeddingProblem::seq},
                            {"vocab", &EmbeddingProblem::vocab},
                            {"dim", &EmbeddingProblem::dim}};

void require_legal(const EmbeddingProblem& p) {
  for (const Field& field : kSizes) {
    const int64_t least = p.*field.value == p.num_members && field.value == kSizes[0].value ? 1 : 0;
    WIDE_REQUIRE(p.*field.value >= least, "embedding: " + std::string(field.name) + " is " +
                                              std::to_string(p.*field.value) +
                                              ", expected >= " + std::to_string(least));
  }
  WIDE_REQUIRE(p.id_dtype == Dtype::int32 || p.id_dtype == Dtype::int64,
               "embedding: id_dtype is " + std::string(dtype_name(p.id_dtype)) +
                   ", expected int32 or int64");
  (void)checked_bytes({p.num_members, p.vocab, p.dim}, dtype_bytes(p.dtype));
  (void)checked_bytes({p.batch, p.seq, p.num_members, p.dim}, dtype_bytes(p.dtype));
}

/// Fills in strides that were left 0: packed.
EmbeddingProblem resolved(EmbeddingProblem p) {
  require_legal(p);
  if (p.y == RowStrides{}) p.y = packed_rows(p.num_members, p.dim);
  if (p.table == RowStrides{}) p.table = {p.dim, p.vocab * p.dim};
  if (p.ids_batch_stride == 0) p.ids_batch_stride = p.shared_ids ? p.seq : p.num_members * p.seq;
  if (p.ids_member_stride == 0 && !p.shared_ids) p.ids_member_stride = p.seq;
  return p;
}

/// The first field in which the operands differ from the plan's problem.
void require_same(const EmbeddingProblem& got, const EmbeddingProblem& expected) {
  if (got == expected) return;
  for (const Field& field : kSizes) {
    WIDE_REQUIRE(got.*field.value == expected.*field.value,
                 "embedding: the operands' " + std::string(field.name) + " is " +
                     std::to_string(got.*field.value) +
                     ", expected the plan's = " + std::to_string(expected.*field.value));
  }
  WIDE_REQUIRE(got.dtype == expected.dtype && got.id_dtype == expected.id_dtype,
               "embedding: the operands are " + std::string(dtype_name(got.dtype)) + " with " +
                   std::string(dtype_name(got.id_dtype)) +
                   " ids, expected the plan's = " + std::string(dtype_name(expected.dtype)) +
                   " with " + std::string(dtype_name(expected.id_dtype)));
  throw_invalid_argument("embedding: the strides of " +
                         std::string(got.y != expected.y           ? "y"
                                     : got.table != expected.table ? "table"
                                                                   : "ids") +
                         " differ from the plan's problem");
}

}  // namespace

EmbeddingProblem describe_embedding(const EmbeddingArguments& a, const EmbeddingProblem& like) {
  EmbeddingProblem p;
  p.shared_ids = like.shared_ids;
  p.checked = like.checked;
  WIDE_REQUIRE(a.table.rank() == 3, "embedding: table is " + to_string(a.table.shape) +
                                        ", expected [num_members, vocab, dim]");
  p.num_members = a.table.shape[0];
  p.vocab = a.table.shape[1];
  p.dim = a.table.shape[2];
  p.dtype = a.table.dtype;
  WIDE_REQUIRE(p.dim <= 1 || a.table.strides[2] == 1,
               "embedding: table has strides " + to_string(a.table.strides) +
                   ", expected contiguous rows: a last stride of 1");
  // Strides that nothing steps along are given their packed value, so that equal layouts are equal.
  p.table = {p.vocab <= 1 || p.dim == 0 ? p.dim : a.table.strides[1],
             p.num_members <= 1 || p.vocab * p.dim == 0 ? p.vocab * p.dim : a.table.strides[0]};
  const int ids_rank = p.shared_ids ? 2 : 3;
  WIDE_REQUIRE(
      a.ids.rank() == ids_rank,
      "embedding: ids is " + to_string(a.ids.shape) + ", expected " +
          (p.shared_ids ? "[batch, seq], shared by all members" : "[batch, num_members, seq]"));
  WIDE_REQUIRE(p.shared_ids || a.ids.shape[1] == p.num_members,
               "embedding: ids is " + to_string(a.ids.shape) +
                   ", expected [batch, num_members, seq] with num_members = " +
                   std::to_string(p.num_members));
  p.batch = a.ids.shape[0];
  p.seq = a.ids.shape[ids_rank - 1];
  p.id_dtype = a.ids.dtype;
  WIDE_REQUIRE(p.seq <= 1 || a.ids.strides[ids_rank - 1] == 1,
               "embedding: ids has strides " + to_string(a.ids.strides) +
                   ", expected contiguous positions: a last stride of 1");
  p.ids_batch_stride = p.batch <= 1 || p.seq == 0 ? (p.shared_ids ? p.seq : p.num_members * p.seq)
                                                  : a.ids.strides[0];
  if (!p.shared_ids)
    p.ids_member_stride = p.num_members <= 1 || p.seq == 0 ? p.seq : a.ids.strides[1];
  require_legal(p);

  const MemberRows y = member_rows(kName, "y", a.y, p.num_members, p.dim);
  WIDE_REQUIRE(y.rows == p.batch * p.seq,
               "embedding: y is " + to_string(a.y.shape) +
                   ", expected [batch, seq, num_members * dim] = " +
                   to_string(Shape{p.batch, p.seq, p.num_members * p.dim}));
  require_disjoint_rows(kName, "y", y, p.num_members, p.dim);
  p.y = y.strides;
  require_dtype(kName, "y", a.y, p.dtype);
  for (const auto& [view, name] : {std::pair{a.ids, "ids"}, {a.table, "table"}}) {
    require_device(kName, name, view, a.y.device);
    WIDE_REQUIRE(!may_overlap(view, a.y), "embedding: y overlaps " + std::string(name));
  }
  return p;
}

struct EmbeddingPlan::State {
  Context context;
  EmbeddingProblem problem;
  EmbeddingChoice choice;
  std::string range;
};

EmbeddingPlan make_embedding_plan(const Context& context, const EmbeddingProblem& problem,
                                  const PlanOptions& options) {
  const EmbeddingProblem full = resolved(problem);
  require_no_policy(kName, options.policy);
  const DeviceInfo& device = context.info();
  EmbeddingChoice choice = choose_embedding_strategy(
      full, device, options.strategy, is_verified(kName, "indexed", device.compute_capability));
  std::string range = "wide::embedding(" + std::string(strategy_name(choice.strategy)) + ")";
  return EmbeddingPlan(std::make_shared<const EmbeddingPlan::State>(
      EmbeddingPlan::State{context, full, std::move(choice), std::move(range)}));
}

const EmbeddingProblem& EmbeddingPlan::problem() const {
  return state_->problem;
}
std::string_view EmbeddingPlan::strategy() const {
  return strategy_name(state_->choice.strategy);
}
std::string EmbeddingPlan::explain() const {
  return state_->choice.explain;
}
int64_t EmbeddingPlan::workspace_bytes() const {
  return state_->problem.checked ? kWorkspaceAlignment : 0;
}
std::string_view EmbeddingPlan::weight_format() const {
  return "packed";
}

void EmbeddingPlan::prepare_weights(std::span<const ConstTensorView> members,
                                    const TensorView& table, Stream stream) const {
  require_shape(kName, "table", table, "[num_members, vocab, dim]",
                {state_->problem.num_members, state_->problem.vocab, state_->problem.dim});
  pack(operands::embedding_table, members, table, stream);
}

void EmbeddingPlan::restore_weights(const ConstTensorView& table,
                                    std::span<const TensorView> members, Stream stream) const {
  unpack(operands::embedding_table, table, members, stream);
}

void EmbeddingPlan::run(const EmbeddingArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kName, "y", arguments.y, s.context.device());
  require_same(describe_embedding(arguments, s.problem), s.problem);
  require_workspace(kName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  const auto run =
      s.context.device().type == DeviceType::cpu ? run_embedding_cpu : run_embedding_cuda;
  run(s.context, s.problem, s.choice.strategy, arguments, execution);
}

void EmbeddingPlan::check(const Execution& execution) const {
  const State& s = *state_;
  WIDE_REQUIRE(s.problem.checked,
               "embedding: check() of an unchecked problem: set problem.checked");
  require_workspace(kName, execution, workspace_bytes());
  EmbeddingFinding finding;
  const Shape bytes{static_cast<int64_t>(sizeof(finding))};
  copy(ConstTensorView(execution.workspace.data, Dtype::fp8_e4m3, bytes, s.context.device()),
       TensorView(&finding, Dtype::fp8_e4m3, bytes, Device{}), execution.stream);
  s.context.synchronize(execution.stream);
  if (finding.place == ~uint64_t{0}) return;
  const auto place = static_cast<int64_t>(finding.place);
  const int64_t position = place / s.problem.num_members;
  const std::string member =
      s.problem.shared_ids ? "" : "n=" + std::to_string(place % s.problem.num_members) + ", ";
  throw_invalid_argument("embedding: ids[b=" + std::to_string(position / s.problem.seq) + ", " +
                         member + "t=" + std::to_string(position % s.problem.seq) + "] is " +
                         std::to_string(finding.id) + ", expected 0 <= id < " +
                         std::to_string(s.problem.vocab));
}

}  // namespace wide
