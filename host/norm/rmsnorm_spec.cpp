// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/norm/rmsnorm_reference.hpp"
#include "host/norm/row_norm.hpp"
#include "host/norm/row_norm_workload.hpp"
#include "host/specs.hpp"
#include "wide/rmsnorm.hpp"

namespace wide::catalog {

namespace {

struct Rmsnorm {
  using Problem = RmsnormProblem;
  using Arguments = RmsnormArguments;

  static constexpr auto& kX = operands::rmsnorm_x;
  static constexpr auto& kParameter = operands::rmsnorm_gamma;
  /// Square, sum, scale by two factors.
  static constexpr double kFlops = 4, kReferenceFlops = 6;
  static constexpr auto describe = describe_rmsnorm;
  static constexpr auto make_plan = make_rmsnorm_plan;
  static constexpr auto problem = to_rmsnorm;

  static ChainProblem problem_of(const Case& point) {
    ChainProblem p = rows_of(point);
    p.norm = ChainNorm::rmsnorm;
    p.has_gamma = point.word("affine") == "yes";
    return p;
  }
  static Distribution x_values(const Case& point) { return around_offset(point); }
  static Arguments arguments(const ChainArguments& a) {
    return {a.x, a.gamma, a.y, a.residual, a.sum, a.ids};
  }
  static void reference(const Problem& p, const ChainRow& row, std::span<double> y,
                        std::span<double> tolerance) {
    if (!row.residual.empty()) return chain_reference(to_chain(p), row, y, tolerance);
    rmsnorm_reference(p, row.x, row.gamma, y, tolerance);
  }
};

PrimitiveSpec make_spec() {
  // gamma: as long as a row, reread for every row.
  PrimitiveSpec spec = row_norm_spec<Rmsnorm>(
      "rmsnorm", "y = x / sqrt(mean square + eps) * gamma, every row of every member",
      {dtype_axis("of x, gamma and y"),
       {"affine", "gamma", "yes", {"yes", "no"}, 0},
       offset_axis(),
       residual_axis()},
      0.55);
  spec.strategies = with_cudnn(std::move(spec.strategies), kRowNormCudnnSummary);
  spec.trusted_zeros = 0.65;  // rows of nobody are
  spec.tolerance_formula =
      "((16 + sqrt(D)) 2^-24 + u_out) |y| + min_subnormal; with a residual, chain's";
  return spec;
}

}  // namespace

const PrimitiveSpec& rmsnorm_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
