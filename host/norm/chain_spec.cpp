// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// chain for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/norm/row_norm_workload.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

struct Chain {
  static constexpr auto& kX = operands::chain_x;
  static constexpr auto& kParameter = operands::chain_parameter;
  /// Two sums, an activation of a few operations, a norm's eight.
  static constexpr double kFlops = 12, kReferenceFlops = 64;
  static constexpr auto describe = describe_chain;
  static constexpr auto make_plan = make_chain_plan;
  static constexpr auto reference = chain_reference;

  static const ChainProblem& problem(const ChainProblem& p) { return p; }
  static const ChainArguments& arguments(const ChainArguments& a) { return a; }
  static ChainProblem problem_of(const Case& point) {
    ChainProblem p = rows_of(point);
    p.activation = *parse_activation(point.word("activation"));
    p.norm = *parse_chain_norm(point.word("norm"));
    p.has_bias = point.word("bias") == "yes";
    p.has_gamma = p.norm != ChainNorm::none;
    p.has_beta = p.norm == ChainNorm::layernorm;
    return p;
  }
  static Distribution x_values(const Case&) { return Distribution::uniform(-2, 2); }
};

PrimitiveSpec make_spec() {
  // bias, gamma and beta: each as long as a row, reread for every row of three operands.
  PrimitiveSpec spec = row_norm_spec<Chain>(
      "chain", "y = norm(residual + activation(x + bias)), every row of every member",
      {{"norm", "of the sum", "layernorm", {"layernorm", "rmsnorm", "none"}, 0},
       activation_axis("of x + bias"),
       {"bias", "per feature", "yes", {"yes", "no"}, 0},
       {"residual", "whether one is added, and the sum stored", "yes", {"yes", "no", "stored"}, 0},
       dtype_axis("of all operands")},
      1.05);
  spec.sweeps = {
      spec.sweeps.front(),
      {"full",
       {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
        {"batch", ints({8, 32})},
        {"d", ints({128, 256, 512, 768})},
        {"seq", ints({128, 512})},
        {"norm", {"layernorm", "rmsnorm", "none"}},
        {"activation", {"none", "gelu"}}}},
      {"ci", {{"n", ints({4})}, {"batch", ints({4})}, {"d", ints({256})}, {"seq", ints({64})}}}};
  spec.sweeps.back().axes.push_back({"routed", {"no", "yes"}});
  spec.trusted_zeros = 0.65;  // half of relu's are
  spec.tolerance_formula =
      "the norm's + |gamma| t (e + E (1 + |n|)) (1 + 2 t E), t = 1 / sqrt(var + eps), n the "
      "normalised value, E^2 the mean of e^2; e = u_out |s| + min_subnormal + 2^-24 (L |v| + |s|) "
      "+ [gelu, gelu_tanh, silu: pointwise's of v in fp32], v = x + bias, s the sum, L = 1.13 for "
      "gelu and gelu_tanh, 1.1 for silu, else 1";
  spec.impossible_reason = [of_rows = spec.impossible_reason](const Case& point) {
    const bool is_lost = point.word("norm") == "none" && point.word("residual") == "stored";
    return is_lost ? "without a norm y is the sum" : of_rows(point);
  };
  return spec;
}

}  // namespace

const PrimitiveSpec& chain_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
