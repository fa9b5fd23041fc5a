// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/norm/chain_reference.hpp"
#include "host/norm/norm_spec.hpp"
#include "host/norm/rmsnorm_reference.hpp"
#include "wide/rmsnorm.hpp"

namespace wide::catalog {

namespace {

RmsnormProblem problem_of(const Case& point) {
  RmsnormProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch") * point.integer("seq");
  p.features = point.integer("d");
  p.dtype = point.dtype();
  p.has_gamma = point.word("affine") == "yes";
  p.has_residual = point.word("residual") != "no";
  p.has_sum = point.word("residual") == "stored";
  return p;
}

class RmsnormWorkload final : public PackedWorkload {
 public:
  RmsnormWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options), shape_(problem_of(point)) {
    const int64_t d = shape_.features;
    const Shape rows{point.integer("batch"), point.integer("seq"), d};
    const auto offset = static_cast<double>(point.integer("offset"));
    x_ = &add_operand(operands::rmsnorm_x, shape_.dtype, rows,
                      Distribution::uniform(offset - 1, offset + 1));
    arguments_.x = x_->packed();
    if (shape_.has_gamma) {
      gamma_ = &add_operand(operands::rmsnorm_gamma, shape_.dtype, {d}, Distribution::uniform());
      arguments_.gamma = gamma_->packed();
    }
    if (shape_.has_residual) {
      residual_ = &add_operand(operands::rmsnorm_x, shape_.dtype, rows, Distribution::uniform());
      arguments_.residual = residual_->packed();
    }
    if (shape_.has_sum) {
      sum_ = &add_operand(operands::rmsnorm_x, shape_.dtype, rows, Distribution::none());
      arguments_.sum = sum_->packed();
    }
    y_ = &add_operand(operands::rmsnorm_x, shape_.dtype, rows, Distribution::none());
    arguments_.y = y_->packed();
    problem_ = describe_rmsnorm(arguments_, shape_);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] {
      return make_rmsnorm_plan(context(), problem_, {.strategy = std::string(strategy)});
    });
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(make_rmsnorm_plan(context(), problem_, options), arguments_);
  }

  std::string baseline_unsupported_reason() const override { return ""; }

  /// No vendor has this call: a baseline member is our own kernel with N = 1.
  PreparedMembers prepare_members() override {
    RmsnormProblem one = shape_;
    one.num_members = 1;
    const RmsnormPlan plan = make_rmsnorm_plan(context(), one, {.strategy = "sequential"});
    std::vector<RmsnormArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      arguments.push_back({x_->member(n), own_parameters(gamma_, n), y_->member(n),
                           own_rows(residual_, n), own_rows(sum_, n)});
    }
    return prepared_members(plan, std::move(arguments));
  }

  /// Per element: square, sum, scale by two factors.
  Cost cost() const override {
    const auto read = static_cast<double>(x_->bytes() + bytes_of(residual_) + bytes_of(gamma_));
    const double elements = static_cast<double>(problem_.num_members) *
                            static_cast<double>(problem_.rows) *
                            static_cast<double>(problem_.features);
    return {4 * elements, read, static_cast<double>(y_->bytes() + bytes_of(sum_))};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(problem_.features);
    const auto x = x_->values(member).subspan(static_cast<size_t>(row) * d, d);
    if (residual_ != nullptr) {
      ChainProblem chain{.dtype = problem_.dtype, .norm = ChainNorm::rmsnorm};
      chain.epsilon = problem_.epsilon;
      const auto residual = residual_->values(member).subspan(static_cast<size_t>(row) * d, d);
      return chain_reference(chain, {x, {}, residual, values_of(gamma_, member), {}}, values,
                             tolerances);
    }
    rmsnorm_reference(problem_, x, values_of(gamma_, member), values, tolerances);
  }
  double reference_row_flops() const override { return 6 * static_cast<double>(problem_.features); }

 private:
  RmsnormProblem shape_;
  Operand* x_ = nullptr;
  Operand* gamma_ = nullptr;
  Operand* residual_ = nullptr;
  Operand* sum_ = nullptr;
  Operand* y_ = nullptr;
  RmsnormArguments arguments_;
  RmsnormProblem problem_;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "rmsnorm";
  spec.summary = "y = x / sqrt(mean square + eps) * gamma, every row of every member";
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "batch rows B", int64_t{8}, {}, 0},
               {"seq", "positions per batch row T", int64_t{128}, {}, 0},
               {"d", "features that are normalised together", int64_t{256}, {}, 0},
               dtype_axis("of x, gamma and y"),
               {"affine", "gamma", "yes", {"yes", "no"}, 0},
               offset_axis(),
               residual_axis()};
  // gamma: as long as a row, again for every row.
  spec.strategies = wide_strategies(
      "one launch; a row in the registers of 8 lanes or a block, read once, written once",
      {.rereads = 0.55, .is_memory_bound = true});
  const auto small = [](std::vector<AxisValue> n) {
    return std::vector<Axis>{
        {"n", std::move(n)}, {"batch", ints({8})}, {"d", ints({256})}, {"seq", ints({128})}};
  };
  spec.sweeps = {{"quick", small(ints({4, 8, 16, 32}))},
                 {"full",
                  {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
                   {"batch", ints({4, 8, 16, 32})},
                   {"d", ints({128, 256, 512, 768})},
                   {"seq", ints({64, 128, 256, 512})}}},
                 {"ci", small(ints({4, 16}))}};
  spec.tolerance_formula =
      "((16 + sqrt(D)) 2^-24 + u_out) |y| + min_subnormal; with a residual, chain's";
  spec.impossible_reason = [](const Case&) { return std::string(); };
  spec.make_workload = make_workload<RmsnormWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& rmsnorm_spec();
const PrimitiveSpec& rmsnorm_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
