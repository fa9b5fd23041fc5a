// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// softmax for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/pointwise/softmax_cudnn.hpp"
#include "host/pointwise/softmax_reference.hpp"
#include "host/spec.hpp"
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

class SoftmaxWorkload final : public PackedWorkload {
 public:
  SoftmaxWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options), shape_(problem_of(point)) {
    const Shape rows{shape_.rows, shape_.features};
    // Logits: far enough apart for a few to count.
    x_ = &add_operand(operands::softmax_x, shape_.dtype, rows, Distribution::uniform(-8, 8));
    y_ = &add_operand(operands::softmax_x, shape_.dtype, rows, Distribution::none());
    arguments_ = {x_->packed(), y_->packed()};
    problem_ = describe_softmax(arguments_, shape_);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    const std::string reason = reason_against([&] {
      return make_softmax_plan(context(), problem_, {.strategy = std::string(strategy)});
    });
    const bool is_cudnn = reason.empty() && strategy == "cudnn";
    return is_cudnn ? softmax_cudnn_unsupported_reason(arguments_) : reason;
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(make_softmax_plan(context(), problem_, options), arguments_);
  }

  /// A baseline member is `sequential` of one member: cuDNN's call where it has one.
  PreparedMembers prepare_members() override {
    SoftmaxProblem one = shape_;
    one.num_members = 1;
    const SoftmaxPlan plan = make_softmax_plan(context(), one, {.strategy = "sequential"});
    std::vector<SoftmaxArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      arguments.push_back({x_->member(n), y_->member(n)});
    }
    return prepared_members(plan, std::move(arguments));
  }

  /// Per element: compare, subtract, exp, add, scale.
  Cost cost() const override {
    const double elements = static_cast<double>(problem_.num_members) *
                            static_cast<double>(problem_.rows) *
                            static_cast<double>(problem_.features);
    return {5 * elements, static_cast<double>(x_->bytes()), static_cast<double>(y_->bytes())};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(problem_.features);
    softmax_reference(problem_, x_->values(member).subspan(static_cast<size_t>(row) * d, d), values,
                      tolerances);
  }
  double reference_row_flops() const override {
    return 64 * static_cast<double>(problem_.features);
  }

 private:
  SoftmaxProblem shape_;
  Operand* x_ = nullptr;
  Operand* y_ = nullptr;
  SoftmaxArguments arguments_;
  SoftmaxProblem problem_;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "softmax";
  spec.summary = "y = exp(x - max) / sum exp(x - max), every row of every member";
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "rows of x per member: B, or B*T", int64_t{1024}, {}, 0},
               {"d", "features that add up to 1", int64_t{256}, {}, 0},
               {"log", "whether the logarithm is taken", "no", {"no", "yes"}, 0},
               {"dtype", "of x and y", "fp32", {"fp32", "fp16", "bf16"}, 0}};
  spec.strategies = with_cudnn(
      wide_strategies(
          "one launch; a row in the registers of 8 lanes or a block, read once, written once",
          {.streamed = 1.03, .is_memory_bound = true}),
      "cuDNN's, over the rows of all members");
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
