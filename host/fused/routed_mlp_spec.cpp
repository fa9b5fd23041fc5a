// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_mlp for bench and verify: mlp's networks on routed_linear's rows.
#include <algorithm>
#include <numeric>

#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_reference.hpp"
#include "host/fused/mlp_values.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/routed_workload.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
RoutedMlpProblem routed_mlp_of(const Case& point, const std::vector<int64_t>& counts) {
  RoutedMlpProblem p;
  p.num_members = point.integer("n");
  p.num_rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  p.widths = mlp_widths_of_case(point);
  p.dtype = point.dtype();
  p.allow_tf32 = point.word("tf32") == "yes";
  p.gathers = point.word("gather") == "yes";
  p.scatters = point.word("scatter") == "yes";
  p.has_gates = point.word("gates") == "yes";
  p.has_bias = point.word("bias") == "yes";
  p.activation = *parse_activation(point.word("activation"));
  if (point.word("last") == "yes") p.last_activation = p.activation;
  return p;
}

std::string routed_mlp_impossible_reason(const Case& point) {
  const std::string reason = spread_impossible_reason(point);
  return reason.empty() ? mlp_impossible_reason(point) : reason;
}

class RoutedMlpWorkload final : public RoutedWorkload<describe_routed_mlp, make_routed_mlp_plan> {
 public:
  RoutedMlpWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : RoutedMlpWorkload(context, point, options, row_counts(point, options)) {}

  std::string baseline_unsupported_reason() const override {
    if (gates_ != nullptr) return "mlp has no gates";
    return is_empty(like()) ? "" : cublas_unavailable_reason();
  }

  /// One mlp of one member each, on rows that lie together: a cublasGemmEx and its epilogue a layer
  /// (CPU: our kernel).
  PreparedMembers prepare_members() override {
    std::vector<MlpPlan> plans;
    std::vector<MlpArguments> members;
    MlpProblem one = mlp_of(like());
    one.num_members = 1;
    for (int64_t i = 0; i < num_members(); ++i) {
      members.push_back({x_.member(i), OperandViews(i)(weights_), y_->member(i)});
      plans.push_back(
          make_mlp_plan(context(), describe_mlp(members.back(), one), {.strategy = "sequential"}));
    }
    return prepared_members(std::move(plans), std::move(members));
  }

  /// Neither values between layers nor the padding of weights need be in memory.
  Cost cost() const override {
    const RoutedMlpProblem& p = like();
    const MlpProblem mlp = mlp_of(p);
    const double products = mlp_weight_count(mlp), outputs = mlp_bias_count(mlp);
    const auto rows = static_cast<double>(num_routed_rows());
    Cost cost;
    cost.items = rows;
    cost.flops =
        rows * (2 * products + outputs + (gates_ ? static_cast<double>(p.widths.back()) : 0));
    cost.bytes_read = static_cast<double>(p.num_members) * (products + outputs) *
                          static_cast<double>(dtype_bytes(p.dtype)) +
                      bytes_of({&x_, gates_, first_rows(),
                                p.gathers || p.scatters || p.has_gates ? order() : nullptr});
    cost.bytes_written = bytes_of({y_});
    return cost;
  }

  double reference_row_flops() const override { return 10 * mlp_weight_count(mlp_of(like())); }

 private:
  RoutedMlpWorkload(const Context& context, const Case& point, const WorkloadOptions& options,
                    const std::vector<int64_t>& counts)
      : RoutedWorkload(context, complete_routed_mlp_problem(routed_mlp_of(point, counts)), options,
                       counts),
        x_(add_rows("x", like().dtype, like().widths.front(), like().gathers,
                    mlp_input_distribution(options.fill))),
        weights_(add_operand(mlp_weights_description(mlp_of(like()), options))),
        gates_(like().has_gates ? &add_rows("gates", Dtype::fp32, 1, true,
                                            linear_scale_distribution(options.fill), 0)
                                : nullptr) {
    add_routing();
    y_ = &add_rows("y", like().dtype, like().widths.back(), like().scatters, Distribution::none());
  }

  void judge_row(int64_t member, int64_t row, std::span<double> values,
                 std::span<double> tolerances) const override {
    judge_mlp_row(mlp_of(like()), row_of(&x_, member, row, like().widths.front()),
                  weights_.values(member), options().fill, values, tolerances);
    if (gates_ != nullptr) {
      judge_gate(gates_->values(member)[static_cast<size_t>(row)], like().dtype, values,
                 tolerances);
    }
  }

  Arguments arguments(const OperandViews& view) const override {
    return {.x = rows_of(&x_, like().widths.front()),
            .weights = view(weights_),
            .y = rows_of(y_, like().widths.back()),
            .gates = view(gates_),
            .first_rows = view(first_rows()),
            .order = view(order())};
  }

  const Operand& x_;
  const Operand& weights_;
  const Operand* gates_;
  const Operand* y_ = nullptr;  ///< the last of the operands: the output
};

std::vector<AxisInfo> routed_mlp_axes() {
  return {{"n", "members", int64_t{16}, {}, 1},
          {"batch", "rows of the member that has most", int64_t{32}, {}, 0},
          {"d", "in = out = hidden = d", int64_t{64}, {}, 1},
          {"in", "features of x; 0: d", int64_t{0}, {}, 0},
          {"hidden", "features between layers; 0: d", int64_t{0}, {}, 0},
          {"out", "features of y; 0: d", int64_t{0}, {}, 0},
          {"layers", "linear layers: weights", int64_t{2}, {}, 1, {2, 3, 4}},
          {"spread", "percent of them by which a member's rows may be fewer", int64_t{75}, {}, 0},
          dropped_axis(),
          {"gather", "whether x lies by rows, not in routed order", "yes", {"yes", "no"}},
          {"scatter", "whether y lies by rows", "yes", {"yes", "no"}},
          {"gates", "whether each row has a factor", "no", {"no", "yes"}},
          dtype_axis("of x, weights and y"),
          activation_axis("after hidden layers", "relu"),
          {"last", "whether the last layer has the activation, too", "no", {"no", "yes"}},
          {"bias", "of every layer", "yes", {"yes", "no"}},
          tf32_axis()};
}

std::vector<StrategyInfo> routed_mlp_strategies() {
  using enum DeviceType;
  using enum StrategyKind;
  return {
      // No vendor's: cuBLAS has the sizes of its products from the host, which does not know them.
      {"sequential", cuda, sequential,
       "layer by layer, routed_linear's simt kernel, one launch per member"},
      {"layerwise",
       cuda,
       hand_written,
       "layer by layer, one of routed_linear's kernels for all members, epilogue fused",
       // Values between layers are written and read; every warp asks for the members' first rows.
       {.streamed = 2.0, .rereads = 2.0, .bank_conflicts = 0.15}},
      {"fused",
       cuda,
       hand_written,
       "all layers of all members in one launch that finds its rows itself",
       // Narrow rows of weights have more padding, 32 of 16 bits a quarter; weights of a member
       // with many rows are read by several blocks.
       {.streamed = 1.25, .rereads = 1.0, .bank_conflicts = 0.11}},
      {"sequential", cpu, sequential, "layer by layer, member after member over all threads"},
      {"wide", cpu, hand_written, "layer by layer, all members over all threads at once"}};
}

std::vector<Sweep> routed_mlp_sweeps() {
  return {{"quick",
           {{"n", ints({32, 256})},
            {"batch", ints({64})},
            {"d", ints({32})},
            {"layers", ints({3})},
            {"spread", ints({0, 75})}}},
          {"full",
           {{"n", ints({8, 64, 512, 4096})},
            {"batch", ints({16, 128})},
            {"d", ints({32, 64})},
            {"hidden", ints({32, 128})},
            {"layers", ints({2, 4})},
            {"spread", ints({0, 75})}}},
          {"ci",
           {{"n", ints({4, 40})},
            {"batch", ints({32})},
            {"d", ints({32})},
            {"layers", ints({3})},
            {"spread", ints({75})},
            {"dropped", ints({0, 10})}}}};
}

}  // namespace

const PrimitiveSpec& routed_mlp_spec() {
  static const PrimitiveSpec spec{
      .name = "routed_mlp",
      .summary = "whole multilayer perceptrons on the rows of one batch that are routed to each",
      .axes = routed_mlp_axes(),
      .strategies = routed_mlp_strategies(),
      .sweeps = routed_mlp_sweeps(),
      .tolerance_formula = kMlpToleranceFormula,
      .trusted_zeros = 0.9,  // of relu, and of few whole numbers
      .impossible_reason = routed_mlp_impossible_reason,
      .tuning_key =
          [](const Case& point) { return tuning_key(routed_mlp_of(point, row_counts(point, {}))); },
      .make_workload = make_workload<RoutedMlpWorkload>};
  return spec;
}

}  // namespace wide::catalog
