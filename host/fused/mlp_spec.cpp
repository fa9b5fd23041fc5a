// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_reference.hpp"
#include "host/fused/mlp_values.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
MlpProblem problem_of(const Case& point) {
  MlpProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.widths = mlp_widths_of_case(point);
  p.dtype = point.dtype();
  p.activation = *parse_activation(point.word("activation"));
  if (point.word("last") == "yes") p.last_activation = p.activation;
  p.has_bias = point.word("bias") == "yes";
  p.shared_input = point.word("shared") == "yes";
  p.allow_tf32 = point.word("tf32") == "yes";
  return p;
}

std::string impossible_reason(const Case& point) {
  return mlp_impossible_reason(point);
}

class MlpWorkload final : public PlanWorkload<describe_mlp, make_mlp_plan> {
 public:
  MlpWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, complete_mlp_problem(problem_of(point)), options),
        x_(add_operand(operands::mlp_x, like().dtype, {like().batch, like().widths.front()},
                       mlp_input_distribution(options.fill), like().shared_input)),
        weights_(add_operand(mlp_weights_description(like(), options))),
        y_(add_operand(operands::mlp_x, like().dtype, {like().batch, like().widths.back()},
                       Distribution::none())) {}

  std::string baseline_unsupported_reason() const override {
    return is_empty(like()) ? "" : cublas_unavailable_reason();
  }

  /// Neither values between layers nor the padding of weights need be in memory.
  Cost cost() const override {
    const double products = mlp_weight_count(like()), outputs = mlp_bias_count(like());
    const auto members = static_cast<double>(like().num_members);
    Cost cost;
    cost.flops = members * static_cast<double>(like().batch) * (2 * products + outputs);
    cost.bytes_read = bytes_of({&x_}) + members * (products + outputs) *
                                            static_cast<double>(dtype_bytes(like().dtype));
    cost.bytes_written = bytes_of({&y_});
    return cost;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    judge_mlp_row(like(), row_of(&x_, member, row, like().widths.front()), weights_.values(member),
                  options().fill, values, tolerances);
  }

  double reference_row_flops() const override { return 10 * mlp_weight_count(like()); }

 private:
  MlpArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(weights_), view(y_)};
  }

  const Operand& x_;
  const Operand& weights_;
  const Operand& y_;
};

std::vector<AxisInfo> axes() {
  return {{"n", "members", int64_t{4}, {}, 1},
          {"batch", "rows of x per member", int64_t{32}, {}, 0},
          {"d", "in = out = hidden = d", int64_t{64}, {}, 1},
          {"in", "features of x; 0: d", int64_t{0}, {}, 0},
          {"hidden", "features between layers; 0: d", int64_t{0}, {}, 0},
          {"out", "features of y; 0: d", int64_t{0}, {}, 0},
          {"layers", "linear layers: weights", int64_t{2}, {}, 1, {2, 3, 4}},
          dtype_axis("of all operands"),
          activation_axis("after hidden layers", "relu"),
          {"last", "whether the last layer has the activation, too", "no", {"no", "yes"}},
          {"bias", "of every layer", "yes", {"yes", "no"}},
          shared_axis(),
          tf32_axis()};
}

std::vector<StrategyInfo> strategies() {
  using enum DeviceType;
  using enum StrategyKind;
  return {{"sequential", cuda, sequential, "member by member, a cuBLAS GEMM and epilogue a layer"},
          {"cublas_batched", cuda, vendor,
           "layer by layer, one strided-batched cuBLAS GEMM and one epilogue for all members"},
          {"layerwise",
           cuda,
           hand_written,
           "layer by layer, one of linear's kernels for all members, epilogue fused",
           // Values between layers are written and read; linear's kernels read x again.
           {.streamed = 2.0, .rereads = 2.0, .bank_conflicts = 0.15}},
          {"fused",
           cuda,
           hand_written,
           "all layers of all members in one launch, what lies between them in registers",
           // Rows of weights are padded; for tf32, sums are exchanged with conflicts.
           {.streamed = 1.1, .rereads = 0, .bank_conflicts = 0.11}},
          {"sequential", cpu, sequential, "member by member, each layer over all threads"},
          {"wide", cpu, hand_written, "layer by layer, all members over all threads at once"}};
}

std::vector<Sweep> sweeps() {
  return {{"quick",
           {{"n", ints({20, 100})},
            {"batch", ints({32})},
            {"d", ints({64})},
            {"hidden", ints({128})},
            {"layers", ints({2})}}},
          {"full",
           {{"n", ints({4, 20, 100})},
            {"batch", ints({32, 256})},
            {"d", ints({64, 256, 512})},
            {"hidden", ints({128, 512})},
            {"layers", ints({2, 8})}}},
          {"ci",
           {{"n", ints({4, 16})},
            {"batch", ints({32})},
            {"d", ints({64})},
            {"hidden", ints({128})},
            {"layers", ints({2})}}}};
}

}  // namespace

const PrimitiveSpec& mlp_spec() {
  static const PrimitiveSpec spec{
      .name = "mlp",
      .summary = "whole multilayer perceptrons, one per member, in one call",
      .axes = axes(),
      .strategies = strategies(),
      .sweeps = sweeps(),
      .tolerance_formula = kMlpToleranceFormula,
      .trusted_zeros = 0.9,  // of relu, and of few whole numbers
      .impossible_reason = impossible_reason,
      .tuning_key = tuned_by(problem_of),
      .make_workload = make_workload<MlpWorkload>};
  return spec;
}

}  // namespace wide::catalog
