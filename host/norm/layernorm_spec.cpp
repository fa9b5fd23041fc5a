// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layernorm for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/norm/layernorm_reference.hpp"
#include "host/norm/row_norm.hpp"
#include "host/norm/row_norm_workload.hpp"
#include "host/specs.hpp"
#include "wide/layernorm.hpp"

namespace wide::catalog {

namespace {

struct Layernorm {
  using Problem = LayernormProblem;
  using Arguments = LayernormArguments;

  static constexpr auto& kX = operands::layernorm_x;
  static constexpr auto& kParameter = operands::layernorm_gamma;
  /// Subtract, two sums, square, scale by two factors, shift.
  static constexpr double kFlops = 8, kReferenceFlops = 12;
  static constexpr auto describe = describe_layernorm;
  static constexpr auto make_plan = make_layernorm_plan;
  static constexpr auto problem = to_layernorm;

  static ChainProblem problem_of(const Case& point) {
    ChainProblem p = rows_of(point);
    p.norm = ChainNorm::layernorm;
    p.has_gamma = p.has_beta = point.word("affine") == "yes";
    return p;
  }
  static Distribution x_values(const Case& point) { return around_offset(point); }
  static Arguments arguments(const ChainArguments& a) {
    return {a.x, a.gamma, a.beta, a.y, a.residual, a.sum, a.ids};
  }
  static void reference(const Problem& p, const ChainRow& row, std::span<double> y,
                        std::span<double> tolerance) {
    if (!row.residual.empty()) return chain_reference(to_chain(p), row, y, tolerance);
    layernorm_reference(p, row.x, row.gamma, row.beta, y, tolerance);
  }
};

PrimitiveSpec make_spec() {
  // gamma and beta: as long as two rows, reread for every row.
  PrimitiveSpec spec = row_norm_spec<Layernorm>(
      "layernorm",
      "y = (x - mean) / sqrt(variance + eps) * gamma + beta, every row of every member",
      {dtype_axis("of x, gamma, beta and y"), affine_axis(), offset_axis(), residual_axis()}, 1.05);
  spec.strategies = with_cudnn(std::move(spec.strategies), kRowNormCudnnSummary);
  spec.trusted_zeros = 0.65;  // rows of nobody are
  spec.tolerance_formula =
      "|gamma| s (|x - mean| + sqrt(var)) (16 + sqrt(D)) 2^-24 + 4 2^-24 (|gamma (x - mean) s| + "
      "|beta|) + u_out |y| + min_subnormal, s = 1 / sqrt(var + eps); with a residual, chain's";
  return spec;
}

}  // namespace

const PrimitiveSpec& layernorm_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
