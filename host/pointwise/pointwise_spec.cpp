// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pointwise for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/pointwise/pointwise_reference.hpp"
#include "host/spec.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
PointwiseProblem problem_of(const Case& point) {
  PointwiseProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch") * point.integer("seq");
  p.features = point.integer("d");
  p.function = *parse_pointwise_function(point.word("function"));
  p.dtype = point.dtype();
  // Values that do not hide a mistake: different from the defaults and from one another.
  p.slope = 0.125f, p.alpha = 0.75f, p.beta = 1.5f, p.low = -0.5f, p.high = 0.75f;
  if (p.function == PointwiseFunction::prelu) {
    p.num_slopes = point.word("slopes") == "feature" ? p.features : 1;
  }
  return p;
}

std::string impossible_reason(const Case& point) {
  const bool is_default = point.word("slopes") == "member";
  return is_default || point.word("function") == "prelu" ? "" : "prelu alone has slopes";
}

class PointwiseWorkload final : public PackedWorkload {
 public:
  PointwiseWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options), shape_(problem_of(point)) {
    const Shape rows{shape_.rows, shape_.features};
    // Both sides of every knee, and hardswish's at 3.
    x_ = &add_operand(operands::pointwise_x, shape_.dtype, rows, Distribution::uniform(-4, 4));
    arguments_.x = x_->packed();
    if (shape_.num_slopes > 0) {
      slope_ = &add_operand(operands::pointwise_slope, shape_.dtype, {shape_.num_slopes},
                            Distribution::uniform());
      arguments_.slope = slope_->packed();
    }
    y_ = &add_operand(operands::pointwise_x, shape_.dtype, rows, Distribution::none());
    arguments_.y = y_->packed();
    problem_ = describe_pointwise(arguments_, shape_);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] {
      return make_pointwise_plan(context(), problem_, {.strategy = std::string(strategy)});
    });
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(make_pointwise_plan(context(), problem_, options), arguments_);
  }

  /// A baseline member is our own kernel with N = 1.
  PreparedMembers prepare_members() override {
    PointwiseProblem one = shape_;
    one.num_members = 1;
    const PointwisePlan plan = make_pointwise_plan(context(), one, {.strategy = "sequential"});
    std::vector<PointwiseArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      arguments.push_back({x_->member(n), own_parameters(slope_, n), y_->member(n)});
    }
    return prepared_members(plan, std::move(arguments));
  }

  /// One operation per element, whatever the function: bytes determine the time.
  Cost cost() const override {
    const auto read = static_cast<double>(x_->bytes() + bytes_of(slope_));
    const double elements = static_cast<double>(problem_.num_members) *
                            static_cast<double>(problem_.rows) *
                            static_cast<double>(problem_.features);
    return {elements, read, static_cast<double>(y_->bytes())};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(problem_.features);
    const auto x = x_->values(member).subspan(static_cast<size_t>(row) * d, d);
    pointwise_reference(problem_, x, values_of(slope_, member), values, tolerances);
  }
  double reference_row_flops() const override {
    return 64 * static_cast<double>(problem_.features);
  }

 private:
  PointwiseProblem shape_;
  Operand* x_ = nullptr;
  Operand* slope_ = nullptr;
  Operand* y_ = nullptr;
  PointwiseArguments arguments_;
  PointwiseProblem problem_;
};

std::vector<std::string_view> function_names() {
  std::vector<std::string_view> names;
  for (const PointwiseFunction function : kAllPointwiseFunctions) {
    names.push_back(pointwise_function_name(function));
  }
  return names;
}

std::vector<Sweep> sweeps() {
  const std::vector<AxisValue> some{"relu", "gelu", "silu"};
  std::vector<AxisValue> all;
  for (const std::string_view name : function_names()) all.emplace_back(std::string(name));
  return {{"quick",
           {{"n", ints({8, 32})}, {"batch", ints({1024})}, {"d", ints({256})}, {"function", some}}},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
            {"batch", ints({1024, 4096})},
            {"d", ints({128, 256, 512, 768})},
            {"function", all}}},
          {"ci", {{"n", ints({4, 16})}, {"batch", ints({128})}, {"d", ints({256})}}}};
}

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "pointwise";
  spec.version = 2;  // the first lacked seq
  spec.summary = "y = function(x), every element of every member";
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0},
      {"seq", "positions per batch row T", int64_t{1}, {}, 0},
      {"d", "features", int64_t{256}, {}, 0},
      {"function", "of x", "relu", function_names(), 0},
      {"slopes", "prelu's: of a member, or of each feature", "member", {"member", "feature"}, 0},
      {"dtype", "of x, slopes and y", "fp32", {"fp32", "fp16", "bf16"}, 0}};
  spec.strategies =
      wide_strategies("one launch over all elements of all members, 16 bytes a load and store",
                      {.streamed = 1.03, .is_memory_bound = true});
  spec.sweeps = sweeps();
  spec.tolerance_formula =
      "[relu, leaky_relu, prelu, hardswish, clamp: 4 2^-24 |y|; others: (16 + 4 |z|) 2^-24 |y| + "
      "2^-119] + u_out |y| + min_subnormal; z what exp is taken of where it was rounded: gelu "
      "x^2 / 2, gelu_tanh twice tanh's argument, softplus beta x, silu and sigmoid x below 0, else "
      "0";
  spec.impossible_reason = impossible_reason;
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<PointwiseWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& pointwise_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
