// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// dropout for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/plan_workload.hpp"
#include "host/pointwise/dropout_reference.hpp"
#include "host/pointwise/dropout_run.hpp"
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

class DropoutWorkload final : public PlanWorkload<describe_dropout, make_dropout_plan> {
 public:
  DropoutWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {}

  /// Per element: a quarter of a block of ten rounds of six operations, compare, multiply.
  Cost cost() const override {
    return {17 * elements_of(x_), bytes_of({&x_, &seeds_, &probabilities_}), bytes_of({&y_})};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto seed = seeds_.values(member);
    dropout_reference(like(),
                      {static_cast<int64_t>(seed[0]), static_cast<int64_t>(seed[1]),
                       probabilities_.values(member)[0]},
                      row, row_of(&x_, member, row, like().features), values, tolerances);
  }
  double reference_row_flops() const override { return 100 * static_cast<double>(like().features); }

 private:
  DropoutArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(seeds_), view(probabilities_), view(y_)};
  }

  const Shape rows_{like().rows, like().features};
  const Operand& x_ =
      add_operand(operands::dropout_x, like().dtype, rows_, Distribution::uniform());
  // As many bits as a double holds.
  const Operand& seeds_ =
      add_operand(operands::dropout_seed, Dtype::int64, {2}, Distribution::integers(0, 0x1p53 - 1));
  const Operand& probabilities_ = add_operand(operands::dropout_probability, Dtype::fp32, {1},
                                              Distribution::uniform(0.05, 0.5));
  const Operand& y_ = add_operand(operands::dropout_x, like().dtype, rows_, Distribution::none());
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
  spec.trusted_zeros = 0.65;  // half are dropped at p = 0.5
  spec.tolerance_formula =
      "dropped: 0; kept: 0 where 1 - p is a power of two, by which x is divided exactly, else 3 "
      "2^-24 |y| + u_out |y| + min_subnormal; the mask is exact";
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
