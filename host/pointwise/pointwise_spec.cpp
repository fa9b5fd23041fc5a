// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pointwise for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/plan_workload.hpp"
#include "host/pointwise/pointwise_problem.hpp"
#include "host/pointwise/pointwise_reference.hpp"
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

class PointwiseWorkload final : public PlanWorkload<describe_pointwise, make_pointwise_plan> {
 public:
  PointwiseWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {}

  /// One operation per element, whatever the function: bytes determine the time.
  Cost cost() const override { return {elements_of(x_), bytes_of({&x_, slope_}), bytes_of({&y_})}; }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    pointwise_reference(like(), row_of(&x_, member, row, like().features),
                        values_of(slope_, member), values, tolerances);
  }
  double reference_row_flops() const override { return 64 * static_cast<double>(like().features); }

 private:
  PointwiseArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(slope_), view(y_)};
  }

  const Shape rows_{like().rows, like().features};
  // Both sides of every knee, and hardswish's at 3.
  const Operand& x_ =
      add_operand(operands::pointwise_x, like().dtype, rows_, Distribution::uniform(-4, 4));
  const Operand* slope_ =
      add_operand_if(like().num_slopes > 0, operands::pointwise_slope, like().dtype,
                     {like().num_slopes}, Distribution::uniform());
  const Operand& y_ = add_operand(operands::pointwise_x, like().dtype, rows_, Distribution::none());
};

std::vector<Sweep> sweeps() {
  const std::vector<AxisValue> some{"relu", "gelu", "silu"};
  return {{"quick",
           {{"n", ints({8, 32})}, {"batch", ints({1024})}, {"d", ints({256})}, {"function", some}}},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
            {"batch", ints({1024, 4096})},
            {"d", ints({128, 256, 512, 768})},
            {"function", word_values(kAllPointwiseFunctions, pointwise_function_name)}}},
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
      {"function", "of x", "relu", words_of(kAllPointwiseFunctions, pointwise_function_name)},
      {"slopes", "prelu's: of a member, or of each feature", "member", {"member", "feature"}, 0},
      dtype_axis("of x, slopes and y")};
  spec.strategies =
      wide_strategies("one launch over all elements of all members, 16 bytes a load and store",
                      {.streamed = 1.03, .is_memory_bound = true});
  spec.sweeps = sweeps();
  spec.trusted_zeros = 0.65;  // half of relu's are
  spec.tolerance_formula =
      "0 where y is x, 0 or a bound of clamp as it is; else [clamp: 0; leaky_relu, prelu, "
      "hardswish: 4 2^-24 |y|; others: (16 + 4 z) 2^-24 |y| + 2^-119] + u_out |y| + min_subnormal; "
      "z, where x < 0, what they fall with as exp(-z): gelu x^2 / 2, gelu_tanh twice tanh's "
      "|argument|, softplus beta |x|, silu and sigmoid |x|; else 0";
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
