// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layernorm for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/norm/chain_reference.hpp"
#include "host/norm/layernorm_reference.hpp"
#include "host/norm/norm_spec.hpp"
#include "wide/layernorm.hpp"

namespace wide::catalog {

namespace {

LayernormProblem problem_of(const Case& point) {
  LayernormProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch") * point.integer("seq");
  p.features = point.integer("d");
  p.dtype = point.dtype();
  p.has_gamma = p.has_beta = point.word("affine") == "yes";
  p.has_residual = point.word("residual") != "no";
  p.has_sum = point.word("residual") == "stored";
  return p;
}

class LayernormWorkload final : public PackedWorkload {
 public:
  LayernormWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options), shape_(problem_of(point)) {
    const int64_t d = shape_.features;
    const Shape rows{point.integer("batch"), point.integer("seq"), d};
    const auto offset = static_cast<double>(point.integer("offset"));
    x_ = &add_operand(operands::layernorm_x, shape_.dtype, rows,
                      Distribution::uniform(offset - 1, offset + 1));
    arguments_.x = x_->packed();
    if (shape_.has_gamma) {
      gamma_ = &add_operand(operands::layernorm_gamma, shape_.dtype, {d}, Distribution::uniform());
      beta_ = &add_operand(operands::layernorm_beta, shape_.dtype, {d}, Distribution::uniform());
      arguments_.gamma = gamma_->packed();
      arguments_.beta = beta_->packed();
    }
    if (shape_.has_residual) {
      residual_ = &add_operand(operands::layernorm_x, shape_.dtype, rows, Distribution::uniform());
      arguments_.residual = residual_->packed();
    }
    if (shape_.has_sum) {
      sum_ = &add_operand(operands::layernorm_x, shape_.dtype, rows, Distribution::none());
      arguments_.sum = sum_->packed();
    }
    y_ = &add_operand(operands::layernorm_x, shape_.dtype, rows, Distribution::none());
    arguments_.y = y_->packed();
    problem_ = describe_layernorm(arguments_, shape_);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] {
      return make_layernorm_plan(context(), problem_, {.strategy = std::string(strategy)});
    });
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(make_layernorm_plan(context(), problem_, options), arguments_);
  }

  std::string baseline_unsupported_reason() const override { return ""; }

  /// No vendor has this call: a baseline member is our own kernel with N = 1.
  PreparedMembers prepare_members() override {
    LayernormProblem one = shape_;
    one.num_members = 1;
    const LayernormPlan plan = make_layernorm_plan(context(), one, {.strategy = "sequential"});
    std::vector<LayernormArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      arguments.push_back({x_->member(n), own_parameters(gamma_, n), own_parameters(beta_, n),
                           y_->member(n), own_rows(residual_, n), own_rows(sum_, n)});
    }
    return prepared_members(plan, std::move(arguments));
  }

  /// Per element: subtract, two sums, square, scale by two factors, shift.
  Cost cost() const override {
    const auto read =
        static_cast<double>(x_->bytes() + bytes_of(residual_) + bytes_of(gamma_) + bytes_of(beta_));
    const double elements = static_cast<double>(problem_.num_members) *
                            static_cast<double>(problem_.rows) *
                            static_cast<double>(problem_.features);
    return {8 * elements, read, static_cast<double>(y_->bytes() + bytes_of(sum_))};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(problem_.features);
    const auto x = x_->values(member).subspan(static_cast<size_t>(row) * d, d);
    if (residual_ != nullptr) {
      ChainProblem chain{.dtype = problem_.dtype, .norm = ChainNorm::layernorm};
      chain.epsilon = problem_.epsilon;
      const auto residual = residual_->values(member).subspan(static_cast<size_t>(row) * d, d);
      return chain_reference(chain,
                             {x, {}, residual, values_of(gamma_, member), values_of(beta_, member)},
                             values, tolerances);
    }
    layernorm_reference(problem_, x, values_of(gamma_, member), values_of(beta_, member), values,
                        tolerances);
  }
  double reference_row_flops() const override {
    return 12 * static_cast<double>(problem_.features);
  }

 private:
  LayernormProblem shape_;
  Operand* x_ = nullptr;
  Operand* gamma_ = nullptr;
  Operand* beta_ = nullptr;
  Operand* residual_ = nullptr;
  Operand* sum_ = nullptr;
  Operand* y_ = nullptr;
  LayernormArguments arguments_;
  LayernormProblem problem_;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "layernorm";
  spec.summary = "y = (x - mean) / sqrt(variance + eps) * gamma + beta, every row of every member";
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "batch rows B", int64_t{8}, {}, 0},
               {"seq", "positions per batch row T", int64_t{128}, {}, 0},
               {"d", "features that are normalised together", int64_t{256}, {}, 0},
               dtype_axis("of x, gamma, beta and y"),
               affine_axis(),
               offset_axis(),
               residual_axis()};
  // gamma and beta: as long as two rows, again for every row.
  spec.strategies = wide_strategies(
      "one launch; a row in the registers of 8 lanes or a block, read once, written once",
      {.rereads = 1.05, .is_memory_bound = true});
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
      "|gamma| s (|x - mean| + sqrt(var)) (16 + sqrt(D)) 2^-24 + 4 2^-24 (|gamma (x - mean) s| + "
      "|beta|)"
      " + u_out |y| + min_subnormal, s = 1 / sqrt(var + eps); with a residual, chain's";
  spec.impossible_reason = [](const Case&) { return std::string(); };
  spec.make_workload = make_workload<LayernormWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& layernorm_spec();
const PrimitiveSpec& layernorm_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
