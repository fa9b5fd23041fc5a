// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// softmax for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/plan_workload.hpp"
#include "host/pointwise/softmax_cudnn.hpp"
#include "host/pointwise/softmax_reference.hpp"
#include "host/pointwise/softmax_run.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
SoftmaxProblem problem_of(const Case& point) {
  SoftmaxProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch");
  p.features = point.integer("d");
  p.is_log = point.word("log") == "yes";
  p.dtype = point.dtype();
  return p;
}

class SoftmaxWorkload final : public PlanWorkload<describe_softmax, make_softmax_plan> {
 public:
  SoftmaxWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {}

  /// Per element: compare, subtract, exp, add, scale.
  Cost cost() const override { return {5 * elements_of(x_), bytes_of({&x_}), bytes_of({&y_})}; }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    softmax_reference(like(), row_of(&x_, member, row, like().features), values, tolerances);
  }
  double reference_row_flops() const override { return 64 * static_cast<double>(like().features); }

 private:
  SoftmaxArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(y_)};
  }
  std::string cudnn_unsupported_reason(const SoftmaxArguments& arguments) const override {
    return softmax_cudnn_unsupported_reason(arguments);
  }

  const Shape rows_{like().rows, like().features};
  // Logits: far enough apart for a few to count.
  const Operand& x_ =
      add_operand(operands::softmax_x, like().dtype, rows_, Distribution::uniform(-8, 8));
  const Operand& y_ = add_operand(operands::softmax_x, like().dtype, rows_, Distribution::none());
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "softmax";
  spec.summary = "y = exp(x - max) / sum exp(x - max), every row of every member";
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "rows of x per member: B, or B*T", int64_t{1024}, {}, 0},
               {"d", "features that add up to 1", int64_t{256}, {}, 0},
               {"log", "whether the logarithm is taken", "no", {"no", "yes"}, 0},
               dtype_axis("of x and y")};
  spec.strategies = with_cudnn(
      wide_strategies(
          "one launch; a row in the registers of 8 lanes or a block, read once, written once",
          {.streamed = 1.03, .is_memory_bound = true}),
      "cuDNN's, over the rows of all members", {});
  spec.sweeps = {
      {"quick", {{"n", ints({4, 8, 16, 32})}, {"batch", ints({1024})}, {"d", ints({256})}}},
      {"full",
       {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
        {"batch", ints({1024, 4096})},
        {"d", ints({128, 256, 512, 1000, 4096, 32768})}}},
      {"ci", {{"n", ints({4, 16})}, {"batch", ints({128})}, {"d", ints({256})}}}};
  spec.tolerance_formula =
      "2 2^-24 (|d| + A + 16 + sqrt(D)) y + u_out y + min_subnormal + 2^-140, d = x - max, A = sum "
      "|d| exp(d) / sum exp(d); log: 2 2^-24 (|d| + A + 16 + sqrt(D) + |log sum exp(d)|) + "
      "u_out |y| + min_subnormal";
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<SoftmaxWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& softmax_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
