// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent for bench and verify: axes, sweeps, strategies, operands, cost.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "host/linear/linear_reference.hpp"
#include "host/plan_workload.hpp"
#include "host/recurrent/recurrent_problem.hpp"
#include "host/recurrent/recurrent_reference.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
RecurrentProblem problem_of(const Case& point) {
  const auto features = [&](const char* axis) {
    return point.integer(axis) == 0 ? point.integer("d") : point.integer(axis);
  };
  RecurrentProblem p;
  p.cell = *parse_recurrent_cell(point.word("cell"));
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.steps = point.integer("seq");
  p.in_features = features("in");
  p.hidden = features("hidden");
  p.dtype = point.dtype();
  p.is_reversed = point.word("reversed") == "yes";
  p.has_bias = point.word("bias") == "yes";
  p.has_first_state = point.word("state") == "given";
  p.shared_input = point.word("shared") == "yes";
  p.allow_tf32 = point.word("tf32") == "yes";
  return p;
}

class RecurrentWorkload final : public PlanWorkload<describe_recurrent, make_recurrent_plan> {
 public:
  RecurrentWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, complete_recurrent_problem(problem_of(point)), options) {
    const RecurrentProblem& p = like();
    const int64_t gates = recurrent_gates(p.cell) * p.hidden;
    // As layers are initialised for training: states neither die nor saturate.
    const double spread = 1 / std::sqrt(static_cast<double>(p.hidden));
    const auto parameter = [&](const PackedOperand& packing, const Shape& shape) {
      return &add_operand(packing, p.dtype, shape, Distribution::uniform(-spread, spread));
    };
    x_ = &add_operand(operands::recurrent_x, p.dtype, {p.batch, p.steps, p.in_features},
                      Distribution::uniform(), p.shared_input);
    input_weight_ = parameter(operands::recurrent_weight, {gates, p.in_features});
    hidden_weight_ = parameter(operands::recurrent_weight, {gates, p.hidden});
    if (p.has_bias) {
      input_bias_ = parameter(operands::recurrent_bias, {gates});
      hidden_bias_ = parameter(operands::recurrent_bias, {gates});
    }
    const auto state = [&](Dtype dtype) {
      return &add_operand(operands::recurrent_state, dtype, {p.batch, p.hidden},
                          Distribution::uniform());
    };
    if (p.has_first_state) first_hidden_ = state(p.dtype);
    if (p.has_first_state && p.cell == RecurrentCell::lstm) first_cell_ = state(Dtype::fp32);
    y_ = &add_operand(operands::recurrent_x, p.dtype, {p.batch, p.steps, p.hidden},
                      Distribution::none());
  }

  std::string baseline_unsupported_reason() const override {
    return is_empty(like()) ? "" : cublas_unavailable_reason();
  }

  /// Values between products and cells need not be in memory; a unit's functions count as one each.
  Cost cost() const override {
    const RecurrentProblem& p = like();
    const auto gates = static_cast<double>(recurrent_gates(p.cell) * p.hidden);
    const auto sequences = static_cast<double>(p.num_members * p.batch * p.steps);
    Cost cost;
    cost.flops = sequences * gates *
                 (2 * static_cast<double>(p.in_features + p.hidden) + (p.has_bias ? 3 : 1) + 3);
    for (const Operand* operand : inputs()) cost.bytes_read += bytes_of({operand});
    cost.bytes_written = bytes_of({y_});
    return cost;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const std::pair sequence(member, row / like().steps);
    if (judged_ != sequence) {
      const std::array operands = inputs();
      std::array<std::span<const double>, 7> own;
      for (size_t i = 0; i < operands.size(); ++i) own[i] = values_of(operands[i], member);
      sequence_ = judge_recurrent_sequence(
          like(), {own[0], own[1], own[2], own[3], own[4], own[5], own[6]}, sequence.second);
      judged_ = sequence;
    }
    const auto first = static_cast<size_t>(row % like().steps) * values.size();
    std::copy_n(sequence_.values.begin() + static_cast<ptrdiff_t>(first), values.size(),
                values.begin());
    std::copy_n(sequence_.tolerances.begin() + static_cast<ptrdiff_t>(first), values.size(),
                tolerances.begin());
  }

  /// As for linear's outputs; with 16 bits both products and h are rounded. Operands of one sign
  /// open the gates that keep h, and so each step's rounding errors; what h grows by is then nearly
  /// the same in every step, and so is its error, up to half a unit of h: T of them have T^2 times
  /// one's square.
  double mean_square_limit() const override {
    const double of_product =
        product_mean_square_limit(like().dtype, like().dtype, like().allow_tf32, options().fill);
    if (like().dtype == Dtype::fp32) return of_product;
    const bool keeps_all = options().fill == Fill::positive;
    const double kept = keeps_all ? static_cast<double>(like().steps) : 0;
    return (4 + kept * kept) * of_product;
  }

  int64_t reference_rows_together() const override { return like().steps; }
  /// For a row whose sequence has not been judged yet.
  double reference_row_flops() const override {
    const RecurrentProblem& p = like();
    return 10 * static_cast<double>(p.steps * recurrent_gates(p.cell) * p.hidden) *
           static_cast<double>(p.in_features + p.hidden);
  }

 private:
  std::array<const Operand*, 7> inputs() const {
    return {x_,           input_weight_, hidden_weight_, input_bias_,
            hidden_bias_, first_hidden_, first_cell_};
  }

  RecurrentArguments arguments(const OperandViews& view) const override {
    return {
        view(x_), view(input_weight_), view(hidden_weight_), view(input_bias_), view(hidden_bias_),
        view(y_), view(first_hidden_), view(first_cell_)};
  }

  const Operand *x_ = nullptr, *input_weight_ = nullptr, *hidden_weight_ = nullptr,
                *input_bias_ = nullptr, *hidden_bias_ = nullptr, *first_hidden_ = nullptr,
                *first_cell_ = nullptr, *y_ = nullptr;
  mutable std::pair<int64_t, int64_t> judged_{-1, -1};
  mutable RecurrentReferenceSequence sequence_;
};

std::vector<AxisInfo> axes() {
  return {{"n", "members", int64_t{4}, {}, 1},
          {"cell", "what a step does", "lstm", words_of(kAllRecurrentCells, recurrent_cell_name)},
          {"batch", "sequences per member B", int64_t{16}, {}, 0, {3, 5, 19}},
          {"seq", "steps T", int64_t{32}, {}, 0, {2, 3, 4}},
          {"d", "in = hidden = d", int64_t{64}, {}, 1},
          {"in", "features of x; 0: d", int64_t{0}, {}, 0},
          {"hidden", "features of y; 0: d", int64_t{0}, {}, 0},
          dtype_axis("of all operands but cell states, which are fp32"),
          {"bias", "of x's products and of the hidden state's", "yes", {"yes", "no"}},
          {"state", "what sequences begin with", "zeros", {"zeros", "given"}},
          {"reversed", "whether steps go from the last to the first", "no", {"no", "yes"}},
          shared_axis(),
          tf32_axis()};
}

std::vector<StrategyInfo> strategies() {
  using enum DeviceType;
  using enum StrategyKind;
  return {{"sequential", cuda, sequential,
           "member by member, a cuBLAS GEMM for x, then one and the cells a step"},
          {"cublas_batched", cuda, vendor,
           "one strided-batched cuBLAS GEMM for x, then one and the cells a step, all members"},
          {"stepwise",
           cuda,
           hand_written,
           "one of linear's kernels for x, then one and the cells a step, all members",
           // Weights are read in every step, gates written and read.
           {.streamed = 4.5, .rereads = 2.3, .bank_conflicts = 0.25}},
          {"fused",
           cuda,
           hand_written,
           "one of linear's kernels for x, then all steps of all members in one launch, hidden "
           "weights in shared memory",
           // x's part of the gates is written and read.
           {.streamed = 2.1, .rereads = 0.8, .bank_conflicts = 0.03}},
          {"sequential", cpu, sequential, "member by member, products and cells over all threads"},
          {"wide", cpu, hand_written, "step by step, all members over all threads at once"}};
}

std::vector<Sweep> sweeps() {
  const Axis cells{"cell", word_values(kAllRecurrentCells, recurrent_cell_name)};
  return {{"quick",
           {{"n", ints({4, 8, 16, 32})},
            cells,
            {"batch", ints({16})},
            {"seq", ints({32})},
            {"d", ints({64})}}},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
            cells,
            {"batch", ints({1, 16, 64})},
            {"seq", ints({1, 32, 128})},
            {"d", ints({32, 64, 128, 256})}}},
          {"ci",
           {{"n", ints({4, 16})},
            cells,
            {"batch", ints({16})},
            {"seq", ints({4})},
            {"d", ints({64})}}}};
}

}  // namespace

const PrimitiveSpec& recurrent_spec() {
  static const PrimitiveSpec spec{.name = "recurrent",
                                  .summary = "LSTM or GRU layers over whole sequences",
                                  .axes = axes(),
                                  .strategies = strategies(),
                                  .sweeps = sweeps(),
                                  .tolerance_formula = kRecurrentToleranceFormula,
                                  .impossible_reason = tf32_impossible_reason,
                                  .tuning_key = tuned_by(problem_of),
                                  .make_workload = make_workload<RecurrentWorkload>};
  return spec;
}

}  // namespace wide::catalog
