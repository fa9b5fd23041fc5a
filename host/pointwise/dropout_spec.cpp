// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// dropout for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/pointwise/dropout_reference.hpp"
#include "host/spec.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
DropoutProblem problem_of(const Case& point) {
  DropoutProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch");
  p.features = point.integer("d");
  p.dtype = point.dtype();
  return p;
}

class DropoutWorkload final : public PackedWorkload {
 public:
  DropoutWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options),
        shape_(problem_of(point)),
        x_(add_operand(operands::dropout_x, shape_.dtype, {shape_.rows, shape_.features},
                       Distribution::uniform())),
        // As many bits as a double holds.
        seeds_(add_operand(operands::dropout_seed, Dtype::int64, {2},
                           Distribution::integers(0, 0x1p53 - 1))),
        probabilities_(add_operand(operands::dropout_probability, Dtype::fp32, {1},
                                   Distribution::uniform(0.05, 0.5))),
        y_(add_operand(operands::dropout_x, shape_.dtype, {shape_.rows, shape_.features},
                       Distribution::none())) {
    arguments_ = {x_.packed(), seeds_.packed(), probabilities_.packed(), y_.packed()};
    problem_ = describe_dropout(arguments_, shape_);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] {
      return make_dropout_plan(context(), problem_, {.strategy = std::string(strategy)});
    });
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(make_dropout_plan(context(), problem_, options), arguments_);
  }

  /// A baseline member is our own kernel with N = 1.
  PreparedMembers prepare_members() override {
    DropoutProblem one = shape_;
    one.num_members = 1;
    const DropoutPlan plan = make_dropout_plan(context(), one, {.strategy = "sequential"});
    std::vector<DropoutArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      arguments.push_back({x_.member(n), own_parameters(&seeds_, n),
                           own_parameters(&probabilities_, n), y_.member(n)});
    }
    return prepared_members(plan, std::move(arguments));
  }

  /// Per element: a quarter of a block of ten rounds of six operations, compare, multiply.
  Cost cost() const override {
    const double elements = static_cast<double>(problem_.num_members) *
                            static_cast<double>(problem_.rows) *
                            static_cast<double>(problem_.features);
    return {17 * elements,
            static_cast<double>(x_.bytes() + seeds_.bytes() + probabilities_.bytes()),
            static_cast<double>(y_.bytes())};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(problem_.features);
    const auto seed = seeds_.values(member);
    dropout_reference(problem_, static_cast<int64_t>(seed[0]), static_cast<int64_t>(seed[1]),
                      probabilities_.values(member)[0], row,
                      x_.values(member).subspan(static_cast<size_t>(row) * d, d), values,
                      tolerances);
  }
  double reference_row_flops() const override {
    return 100 * static_cast<double>(problem_.features);
  }

 private:
  DropoutProblem shape_;
  Operand& x_;
  Operand& seeds_;
  Operand& probabilities_;
  Operand& y_;
  DropoutArguments arguments_;
  DropoutProblem problem_;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "dropout";
  spec.summary = "y = x / (1 - p) or 0, by numbers of every member's own";
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "rows of x per member: B, or B*T", int64_t{1024}, {}, 0},
               {"d", "features", int64_t{256}, {}, 0},
               dtype_axis("of x and y")};
  spec.strategies = wide_strategies(
      "one launch over all elements of all members, a Philox block for four of them",
      {.streamed = 1.03,
       .rereads = 0.1,
       .is_memory_bound = true});  // operands that a member's blocks share
  spec.sweeps = {{"quick", {{"n", ints({8, 32})}, {"batch", ints({1024})}, {"d", ints({256})}}},
                 {"full",
                  {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
                   {"batch", ints({1024, 4096})},
                   {"d", ints({128, 256, 512, 768})}}},
                 {"ci", {{"n", ints({4, 16})}, {"batch", ints({128})}, {"d", ints({256})}}}};
  spec.tolerance_formula =
      "dropped: 0; kept: 3 2^-24 |y| + u_out |y| + min_subnormal; the mask is exact";
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<DropoutWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& dropout_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
