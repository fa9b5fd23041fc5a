// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// chain for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/norm/chain_reference.hpp"
#include "host/norm/norm_spec.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
ChainProblem problem_of(const Case& point) {
  ChainProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch") * point.integer("seq");
  p.features = point.integer("d");
  p.dtype = point.dtype();
  p.activation = *parse_activation(point.word("activation"));
  p.norm = *parse_chain_norm(point.word("norm"));
  p.has_bias = point.word("bias") == "yes";
  p.has_residual = point.word("residual") != "no";
  p.has_sum = point.word("residual") == "stored";
  p.has_gamma = p.norm != ChainNorm::none;
  p.has_beta = p.norm == ChainNorm::layernorm;
  return p;
}

class ChainWorkload final : public PackedWorkload {
 public:
  ChainWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options), shape_(problem_of(point)) {
    const ChainProblem& p = shape_;
    const Shape rows{point.integer("batch"), point.integer("seq"), p.features};
    const auto add_rows = [&](bool is_there, const Distribution& from) {
      return is_there ? &add_operand(operands::chain_x, p.dtype, rows, from) : nullptr;
    };
    const auto add_parameter = [&](bool is_there) {
      return is_there ? &add_operand(operands::chain_parameter, p.dtype, {p.features},
                                     Distribution::uniform())
                      : nullptr;
    };
    x_ = add_rows(true, Distribution::uniform(-2, 2));
    bias_ = add_parameter(p.has_bias);
    residual_ = add_rows(p.has_residual, Distribution::uniform());
    gamma_ = add_parameter(p.has_gamma);
    beta_ = add_parameter(p.has_beta);
    sum_ = add_rows(p.has_sum, Distribution::none());
    y_ = add_rows(true, Distribution::none());
    const auto packed = [](const Operand* operand) {
      return operand == nullptr ? TensorView() : operand->packed();
    };
    arguments_ = {packed(x_),    packed(bias_), packed(residual_), packed(gamma_),
                  packed(beta_), packed(y_),    packed(sum_)};
    problem_ = describe_chain(arguments_, shape_);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against(
        [&] { return make_chain_plan(context(), problem_, {.strategy = std::string(strategy)}); });
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(make_chain_plan(context(), problem_, options), arguments_);
  }

  std::string baseline_unsupported_reason() const override { return ""; }

  /// A baseline member is our own kernel with N = 1.
  PreparedMembers prepare_members() override {
    ChainProblem one = shape_;
    one.num_members = 1;
    const ChainPlan plan = make_chain_plan(context(), one, {.strategy = "sequential"});
    std::vector<ChainArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      arguments.push_back({own_rows(x_, n), own_parameters(bias_, n), own_rows(residual_, n),
                           own_parameters(gamma_, n), own_parameters(beta_, n), own_rows(y_, n),
                           own_rows(sum_, n)});
    }
    return prepared_members(plan, std::move(arguments));
  }

  /// Per element: two sums, an activation of a few operations, a norm's eight.
  Cost cost() const override {
    const auto read = static_cast<double>(x_->bytes() + bytes_of(bias_) + bytes_of(residual_) +
                                          bytes_of(gamma_) + bytes_of(beta_));
    const double elements =
        static_cast<double>(x_->bytes()) / static_cast<double>(dtype_bytes(problem_.dtype));
    return {12 * elements, read, static_cast<double>(y_->bytes() + bytes_of(sum_))};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(problem_.features);
    const auto of_row = [&](const Operand* operand) {
      return operand == nullptr ? std::span<const double>()
                                : operand->values(member).subspan(static_cast<size_t>(row) * d, d);
    };
    chain_reference(problem_,
                    {of_row(x_), values_of(bias_, member), of_row(residual_),
                     values_of(gamma_, member), values_of(beta_, member)},
                    values, tolerances);
  }
  double reference_row_flops() const override {
    return 64 * static_cast<double>(problem_.features);
  }

 private:
  ChainProblem shape_;
  Operand* x_ = nullptr;
  Operand* bias_ = nullptr;
  Operand* residual_ = nullptr;
  Operand* gamma_ = nullptr;
  Operand* beta_ = nullptr;
  Operand* sum_ = nullptr;
  Operand* y_ = nullptr;
  ChainArguments arguments_;
  ChainProblem problem_;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "chain";
  spec.summary = "y = norm(residual + activation(x + bias)), every row of every member";
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0},
      {"seq", "positions per batch row T", int64_t{128}, {}, 0},
      {"d", "features that are normalised together", int64_t{256}, {}, 0},
      {"norm", "of the sum", "layernorm", {"layernorm", "rmsnorm", "none"}, 0},
      {"activation", "of x + bias", "none", {"none", "relu", "gelu", "silu"}, 0},
      {"bias", "per feature", "yes", {"yes", "no"}, 0},
      {"residual", "whether one is added, and the sum stored", "yes", {"yes", "no", "stored"}, 0},
      dtype_axis("of all operands")};
  // bias, gamma and beta: as long as a row each, again for every row of three.
  spec.strategies = wide_strategies(
      "one launch; a row in the registers of 8 lanes or a block, read once, written once",
      {.rereads = 1.05, .is_memory_bound = true});
  const auto small = [](std::vector<AxisValue> n) {
    return std::vector<Axis>{
        {"n", std::move(n)}, {"batch", ints({8})}, {"d", ints({256})}, {"seq", ints({128})}};
  };
  spec.sweeps = {
      {"quick", small(ints({4, 8, 16, 32}))},
      {"full",
       {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
        {"batch", ints({8, 32})},
        {"d", ints({128, 256, 512, 768})},
        {"seq", ints({128, 512})},
        {"norm", {"layernorm", "rmsnorm", "none"}},
        {"activation", {"none", "gelu"}}}},
      {"ci", {{"n", ints({4})}, {"batch", ints({4})}, {"d", ints({256})}, {"seq", ints({64})}}}};
  spec.tolerance_formula =
      "the norm's + |gamma| t (e + E (1 + |n|)) (1 + 2 t E), t = 1 / sqrt(var + eps), n the "
      "normalised value, E^2 the mean of e^2; e = u_out |s| + min_subnormal + 2^-24 (|v| + |s| + "
      "[gelu, silu: 16 |activation(v)| + 2 |v| (1 + |v|)]), v = x + bias, s the sum";
  spec.impossible_reason = [](const Case& point) {
    const bool is_lost = point.word("norm") == "none" && point.word("residual") == "stored";
    return std::string(is_lost ? "without a norm y is the sum" : "");
  };
  spec.make_workload = make_workload<ChainWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& chain_spec();
const PrimitiveSpec& chain_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
