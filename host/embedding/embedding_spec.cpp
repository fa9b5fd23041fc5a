// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// embedding for bench and verify: axes, sweeps, strategies, operands, reference, cost.
#include <algorithm>

#include "host/core/check.hpp"
#include "host/operand.hpp"
#include "wide/embedding.hpp"

namespace wide::catalog {

namespace {

EmbeddingProblem problem_of(const Case& point) {
  EmbeddingProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.seq = point.integer("seq");
  p.vocab = point.integer("vocab");
  p.dim = point.integer("dim");
  p.dtype = point.dtype();
  p.id_dtype = *parse_dtype(point.word("id_dtype"));
  p.shared_ids = point.word("ids") == "shared";
  return p;
}

class EmbeddingWorkload final : public PackedWorkload {
 public:
  EmbeddingWorkload(const Context& context, const EmbeddingProblem& p,
                    const WorkloadOptions& options)
      : PackedWorkload(context, p.num_members, options),
        shape_(p),
        ids_(add_operand(operands::embedding_ids, p.id_dtype, {p.batch, p.seq},
                         Distribution::ids(p.vocab), p.shared_ids)),
        table_(add_operand(operands::embedding_table, p.dtype, {p.vocab, p.dim},
                           Distribution::uniform())),
        y_(add_operand(operands::embedding_y, p.dtype, {p.batch, p.seq, p.dim},
                       Distribution::none())) {
    arguments_ = {ids_.packed(), table_.packed(), y_.packed()};
    problem_ = describe_embedding(arguments_, p);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    try {
      (void)make_embedding_plan(context(), problem_, {.strategy = std::string(strategy)});
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  Prepared prepare(const PlanOptions& options) override {
    const EmbeddingPlan plan = make_embedding_plan(context(), problem_, options);
    return {[plan, arguments = arguments_](const Execution& execution) {
              plan.run(arguments, execution);
            },
            plan.workspace_bytes(), std::string(plan.strategy()), "", plan.explain()};
  }

  std::string baseline_unsupported_reason() const override { return ""; }

  /// No vendor has this call: a baseline member is our own kernel with N = 1.
  PreparedMembers prepare_members() override {
    EmbeddingProblem one = shape_;
    one.num_members = 1;
    one.shared_ids = true;
    const EmbeddingPlan plan = make_embedding_plan(context(), one, {.strategy = "sequential"});
    std::vector<EmbeddingArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      ConstTensorView table = table_.member(n);
      table.shape = {1, one.vocab, one.dim};
      table.strides = contiguous_strides(table.shape);
      arguments.push_back({ids_.member(n), table, y_.member(n)});
    }
    return {[plan, arguments](int64_t n, const Execution& execution) {
              plan.run(arguments[static_cast<size_t>(n)], execution);
            },
            plan.workspace_bytes()};
  }

  /// Rows that are gathered twice need reading once, and never more rows than a table has.
  Cost cost() const override {
    const auto n = static_cast<double>(problem_.num_members);
    const auto positions = static_cast<double>(problem_.batch * problem_.seq);
    const auto row = static_cast<double>(problem_.dim * dtype_bytes(problem_.dtype));
    const double rows_read = std::min(positions, static_cast<double>(problem_.vocab));
    return {0, n * rows_read * row + static_cast<double>(ids_.bytes()), n * positions * row};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto id = static_cast<int64_t>(ids_.values(member)[static_cast<size_t>(row)]);
    const auto table = table_.values(member);
    for (size_t d = 0; d < values.size(); ++d) {
      const bool exists = id >= 0 && id < problem_.vocab;
      values[d] = exists ? table[static_cast<size_t>(id * problem_.dim) + d]
                         : std::numeric_limits<double>::quiet_NaN();
      tolerances[d] = 0;
    }
  }
  double reference_row_flops() const override { return static_cast<double>(problem_.dim); }

 private:
  EmbeddingProblem shape_;
  Operand& ids_;
  Operand& table_;
  Operand& y_;
  EmbeddingArguments arguments_;
  EmbeddingProblem problem_;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "embedding";
  spec.summary = "y[b, t, n, :] = table[n, ids, :], rows of N tables gathered in one call";
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0},
      {"seq", "ids per batch row T", int64_t{128}, {}, 0},
      {"vocab", "rows per table V", int64_t{1000}, {}, 1},
      {"dim", "elements per row D", int64_t{256}, {}, 0},
      {"dtype", "of table and y", "fp32", {"fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"}, 0},
      {"ids", "one set for all members, or one each", "shared", {"shared", "own"}, 0},
      {"id_dtype", "of ids", "int64", {"int64", "int32"}, 0}};
  using enum DeviceType;
  using enum StrategyKind;
  spec.strategies = {{"sequential", cuda, sequential, "the gather kernel, one launch per member"},
                     {"indexed",
                      cuda,
                      hand_written,
                      "one launch: 16-byte gathers, four rows in flight per group of lanes",
                      {.rereads = 0.25}},  // ids repeat
                     {"sequential", cpu, sequential, "member after member, each threaded"},
                     {"wide", cpu, hand_written, "all members' rows over all threads at once"}};
  const auto fixed = [](int64_t batch, int64_t vocab, int64_t dim, int64_t seq) {
    return std::vector<Axis>{
        {"batch", {batch}}, {"vocab", {vocab}}, {"dim", {dim}}, {"seq", {seq}}};
  };
  const auto with_n = [&](std::vector<AxisValue> n) {
    std::vector<Axis> axes{{"n", std::move(n)}};
    for (Axis& axis : fixed(8, 1000, 256, 128)) axes.push_back(std::move(axis));
    return axes;
  };
  const auto ints = [](std::initializer_list<int64_t> values) {
    return std::vector<AxisValue>(values.begin(), values.end());
  };
  spec.sweeps = {{"quick", with_n(ints({4, 8, 16, 32}))},
                 {"full",
                  {{"n", ints({2, 4, 8, 16, 32, 64})},
                   {"batch", ints({4, 8, 16, 32})},
                   {"vocab", ints({1000, 10000, 50000})},
                   {"dim", ints({128, 256, 512})},
                   {"seq", ints({64, 128, 256})}}},
                 {"ci", with_n(ints({4, 16}))}};
  spec.tolerance_formula = "0: rows are copied bit for bit";
  spec.impossible_reason = [](const Case&) { return std::string(); };
  spec.make_workload = [](const Context& context, const Case& point,
                          const WorkloadOptions& options) {
    return std::unique_ptr<Workload>(
        std::make_unique<EmbeddingWorkload>(context, problem_of(point), options));
  };
  return spec;
}

}  // namespace

const PrimitiveSpec& embedding_spec();
const PrimitiveSpec& embedding_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
