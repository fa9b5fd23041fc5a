// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear for bench and verify. How unevenly rows are routed is one axis, `spread`.
// Rows of all members are shuffled: where x or y lies by rows, a member's are scattered over it.
#include <numeric>

#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_reference.hpp"
#include "host/linear/linear_strategy.hpp"
#include "host/linear/linear_weight_workload.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/linear_values.hpp"
#include "host/routed_workload.hpp"
#include "host/specs.hpp"
#include "wide/linear.hpp"
#include "wide/routed_linear.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
RoutedLinearProblem routed_problem_of(const Case& point, const std::vector<int64_t>& counts) {
  const int64_t d = point.integer("d"), in = point.integer("in"), out = point.integer("out");
  RoutedLinearProblem problem;
  problem.num_members = point.integer("n");
  problem.num_rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  problem.in_features = in == 0 ? d : in;
  problem.out_features = out == 0 ? d : out;
  problem.dtype = point.dtype();
  problem.allow_tf32 = point.word("tf32") == "yes";
  problem.gathers = point.word("gather") == "yes";
  problem.scatters = point.word("scatter") == "yes";
  problem.has_gates = point.word("gates") == "yes";
  const QuantizedWeight weight = weight_of_case(point, problem.out_features, problem.in_features);
  problem.weight_format = weight.format, problem.group_size = weight.group_size;
  problem.epilogue = epilogue_of_case(point);
  return problem;
}

std::string routed_impossible_reason(const Case& point) {
  const std::string reason = spread_impossible_reason(point);
  return reason.empty() ? weights_impossible_reason(point) : reason;
}

class RoutedLinearWorkload final
    : public RoutedWorkload<describe_routed_linear, make_routed_linear_plan> {
 public:
  RoutedLinearWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : RoutedLinearWorkload(context, point, options, row_counts(point, options)) {}

  std::string baseline_unsupported_reason() const override {
    if (gates_ != nullptr) return "linear has no gates";
    LinearProblem one = member_problem();
    one.batch = 1;  // one that is empty could be multiplied by all
    const std::string reason = linear_unsupported_reason(
        LinearStrategy::sequential, complete_linear_problem(one), context().info());
    return reason.empty() && !is_quantized(like()) ? cublas_unavailable_reason() : reason;
  }

  /// One linear of one member each, on rows that lie together: one cublasGemmEx and its epilogue
  /// (quantised weights: weight_only; CPU: our kernel).
  PreparedMembers prepare_members() override {
    std::vector<LinearPlan> plans;
    std::vector<LinearArguments> members;
    for (int64_t i = 0; i < num_members(); ++i) {
      const OperandViews view(i);
      LinearArguments& one = members.emplace_back();
      one.x = x_.member(i);
      one.weight = view(weight_);
      one.bias = view(bias_);
      one.y = y_->member(i);
      one.scale = view(scale_);
      if (residual_ != nullptr) one.residual = residual_->member(i);
      plans.push_back(make_linear_plan(context(), describe_linear(one, member_problem()),
                                       {.strategy = "sequential"}));
    }
    return prepared_members(std::move(plans), std::move(members));
  }

  Cost cost() const override {
    const RoutedLinearProblem& p = like();
    Cost cost;
    cost.items = static_cast<double>(num_routed_rows());
    cost.flops = cost.items * static_cast<double>(p.out_features) *
                 (2 * static_cast<double>(p.in_features) + (bias_ ? 1 : 0) + (scale_ ? 1 : 0) +
                  (residual_ ? 1 : 0) + (gates_ ? 1 : 0));
    cost.bytes_read = bytes_of({&x_, &weight_, bias_, scale_, residual_, gates_, first_rows(),
                                p.gathers || p.scatters || p.has_gates ? order() : nullptr});
    cost.bytes_written = bytes_of({y_});
    return cost;
  }

  double mean_square_limit() const override {
    return product_mean_square_limit(like().dtype, like().dtype, like().allow_tf32, options().fill);
  }

  double reference_row_flops() const override {
    return 4 * static_cast<double>(like().in_features) * static_cast<double>(like().out_features);
  }

 private:
  RoutedLinearWorkload(const Context& context, const Case& point, const WorkloadOptions& options,
                       const std::vector<int64_t>& counts)
      : RoutedWorkload(context, complete_routed_linear_problem(routed_problem_of(point, counts)),
                       options, counts),
        x_(add_rows("x", like().dtype, like().in_features, like().gathers,
                    linear_input_distribution(options.fill, like().dtype, like().epilogue,
                                              like().in_features * (like().has_gates ? 2 : 1)))),
        weight_(add_operand(
            linear_weight_operand(linear_quantized_weight(like()), like().dtype, options))) {
    const RoutedLinearProblem& p = like();
    const int64_t out = p.out_features;
    const bool is_per_member = p.epilogue.scale == OutputScale::per_member;
    bias_ =
        add_operand_if(p.epilogue.has_bias, operands::linear_bias, p.dtype, {out}, parameters());
    scale_ =
        add_operand_if(p.epilogue.scale != OutputScale::none, operands::linear_scale, Dtype::fp32,
                       {is_per_member ? 1 : out}, linear_scale_distribution(options.fill));
    if (p.epilogue.residual != Residual::none) {
      residual_ = &add_rows("residual", p.dtype, out, p.scatters, parameters());
    }
    if (p.has_gates) {
      gates_ = &add_rows("gates", Dtype::fp32, 1, true, linear_scale_distribution(options.fill), 0);
    }
    add_routing();
    y_ = &add_rows("y", p.dtype, out, p.scatters, Distribution::none());
  }

  void judge_row(int64_t member, int64_t row, std::span<double> values,
                 std::span<double> tolerances) const override {
    const RoutedLinearProblem& p = like();
    const LinearReferenceRow operands{row_of(&x_, member, row, p.in_features),
                                      weights_.of(weight_, member), values_of(bias_, member),
                                      values_of(scale_, member),
                                      row_of(residual_, member, row, p.out_features)};
    judge_linear_row(member_problem(), operands, options().fill, values, tolerances);
    if (gates_ != nullptr) {
      judge_gate(gates_->values(member)[static_cast<size_t>(row)], p.dtype, values, tolerances);
    }
  }

  Arguments arguments(const OperandViews& view) const override {
    const int64_t out = like().out_features;
    return {.x = rows_of(&x_, like().in_features),
            .weight = view(weight_),
            .bias = view(bias_),
            .y = rows_of(y_, out),
            .scale = view(scale_),
            .residual = rows_of(residual_, out),
            .gates = view(gates_),
            .first_rows = view(first_rows()),
            .order = view(order())};
  }

  /// A member as a problem of linear, whatever its rows.
  LinearProblem member_problem() const {
    LinearProblem one;
    one.num_members = 1;
    one.in_features = like().in_features;
    one.out_features = like().out_features;
    one.dtype = one.y_dtype.emplace(like().dtype);
    one.allow_tf32 = like().allow_tf32;
    one.weight_format = like().weight_format, one.group_size = like().group_size;
    one.epilogue = like().epilogue;
    return one;
  }

  Distribution parameters() const { return linear_parameter_distribution(options().fill); }

  const Operand& x_;
  const Operand& weight_;
  const Operand* bias_ = nullptr;
  const Operand* scale_ = nullptr;
  const Operand* residual_ = nullptr;
  const Operand* gates_ = nullptr;
  const Operand* y_ = nullptr;
  ReferenceWeights weights_{linear_quantized_weight(like())};
};

std::vector<AxisInfo> routed_axes() {
  return {
      {"n", "members", int64_t{8}, {}, 1},
      {"batch", "rows of the member that has most", int64_t{16}, {}, 0},
      {"d", "in = out = d", int64_t{256}, {}, 0},
      {"in", "in_features; 0: d", int64_t{0}, {}, 0},
      {"out", "out_features; 0: d", int64_t{0}, {}, 0},
      {"spread", "percent of them by which a member's rows may be fewer", int64_t{75}, {}, 0},
      dropped_axis(),
      {"gather", "whether x lies by rows, not in routed order", "yes", {"yes", "no"}},
      {"scatter", "whether y and the residual lie by rows", "no", {"no", "yes"}},
      {"gates", "whether each row has a factor", "no", {"no", "yes"}},
      dtype_axis("of x, weight, bias and y"),
      activation_axis("after the bias"),
      bias_axis(),
      linear_scale_axis(),
      epilogue_residual_axis(),
      tf32_axis(),
      weights_axis("how they are stored"),
      group_axis(),
  };
}

std::vector<Sweep> routed_sweeps() {
  std::vector<Sweep> sweeps = uneven_sweeps();
  for (Sweep& sweep : sweeps) {
    if (sweep.name == "ci") sweep.axes.push_back({"dropped", ints({0, 10})});
  }
  return sweeps;
}

std::vector<StrategyInfo> routed_strategies() {
  using enum StrategyKind;
  return {
      // No vendor's: cuBLAS has the sizes of its products from the host, which does not know them.
      {"sequential", DeviceType::cuda, sequential,
       "one launch per member: simt's kernel; quantised weights: weight_only's"},
      {"simt",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel that finds its rows itself, fp32 multiply-adds, epilogue fused",
       // Every warp asks for the members' first rows; operands as ragged_linear's.
       {.streamed = 1.06, .rereads = 0.2, .bank_conflicts = 0.025}},
      {"tensor_core",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel that finds its rows itself on tensor cores, epilogue fused",
       {.streamed = 1.06, .rereads = 0.2, .bank_conflicts = 0.01}},
      {"wgmma",
       DeviceType::cuda,
       hand_written,
       "persistent kernel that gathers rows itself, Hopper's warpgroup products, epilogue fused",
       {.streamed = 1.06, .rereads = 0.2, .bank_conflicts = 0.01}},
      {"weight_only",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel that finds its rows itself, on quantised weights (weights=int4, ..)",
       {.streamed = 1.06, .rereads = 1.2, .bank_conflicts = 0.02}},
      {"sequential", DeviceType::cpu, sequential, "member after member, each over all threads"},
      {"wide", DeviceType::cpu, hand_written, "the blocks of all members over all threads at once"},
  };
}

}  // namespace

const PrimitiveSpec& routed_linear_spec() {
  static const PrimitiveSpec spec{
      .name = "routed_linear",
      .summary = "linear on the rows of one batch that are routed to each member, in one call",
      .axes = routed_axes(),
      .strategies = routed_strategies(),
      .sweeps = routed_sweeps(),
      .tolerance_formula = kLinearToleranceFormula,
      .trusted_zeros = 0.9,  // of relu, and of few whole numbers
      .impossible_reason = routed_impossible_reason,
      .tuning_key =
          [](const Case& point) {
            return tuning_key(routed_problem_of(point, row_counts(point, {})));
          },
      .make_workload = make_workload<RoutedLinearWorkload>};
  return spec;
}

}  // namespace wide::catalog
