// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Validation of layernorm's and rmsnorm's operands.
#include "host/norm/row_norm.hpp"

#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/norm/norm_plan.hpp"

namespace wide {

namespace {

void require_legal(std::string_view primitive, const LayernormProblem& p) {
  require_least(primitive, "num_members", p.num_members, 1);
  require_least(primitive, "rows", p.rows, 0);
  require_least(primitive, "features", p.features, 0);
  require_norm_dtype(primitive, p.dtype);
  require_epsilon(primitive, p.epsilon);
  (void)checked_bytes({p.rows, p.num_members, p.features}, dtype_bytes(p.dtype));
}

int64_t feature_stride(std::string_view primitive, const char* name, const ConstTensorView& view,
                       const LayernormProblem& p) {
  return parameter_stride(primitive, name, view, "[num_members, features]", p.num_members,
                          p.features, p.dtype);
}

}  // namespace

std::string_view row_norm_name(RowNorm norm) {
  return norm == RowNorm::layernorm ? "layernorm" : "rmsnorm";
}

LayernormProblem complete_row_norm(RowNorm norm, LayernormProblem p) {
  require_legal(row_norm_name(norm), p);
  if (p.x == RowStrides{}) p.x = packed_rows(p.num_members, p.features);
  if (p.y == RowStrides{}) p.y = packed_rows(p.num_members, p.features);
  complete_parameter(p.gamma_member_stride, p.has_gamma, p.features);
  complete_parameter(p.beta_member_stride, p.has_beta, p.features);
  return p;
}

void require_same_row_norm(RowNorm norm, const LayernormProblem& got,
                           const LayernormProblem& expected) {
  if (got == expected) return;
  const std::string_view primitive = row_norm_name(norm);
  require_same_count(primitive, "num_members", got.num_members, expected.num_members);
  require_same_count(primitive, "rows", got.rows, expected.rows);
  require_same_count(primitive, "features", got.features, expected.features);
  require_same_presence(primitive, "gamma", got.has_gamma, expected.has_gamma);
  require_same_presence(primitive, "beta", got.has_beta, expected.has_beta);
  require_same_dtype(primitive, got.dtype, expected.dtype);
  throw_invalid_argument(std::string(primitive) + ": the strides of " +
                         std::string(got.x != expected.x   ? "x"
                                     : got.y != expected.y ? "y"
                                                           : "gamma or beta") +
                         " differ from the plan's problem");
}

LayernormProblem describe_row_norm(RowNorm norm, const LayernormArguments& a,
                                   const LayernormProblem& like) {
  const std::string_view primitive = row_norm_name(norm);
  const std::string name = std::string(primitive) + ": ";
  LayernormProblem p;
  p.epsilon = like.epsilon;
  p.has_gamma = !a.gamma.is_absent();
  p.has_beta = !a.beta.is_absent();
  p.dtype = a.x.dtype;
  p.num_members = like.num_members;
  const ConstTensorView& parameter = p.has_gamma ? a.gamma : a.beta;
  if (p.has_gamma || p.has_beta) {
    WIDE_REQUIRE(parameter.rank() == 2, name + std::string(p.has_gamma ? "gamma" : "beta") +
                                            " is " + to_string(parameter.shape) +
                                            ", expected [num_members, features]");
    p.num_members = parameter.shape[0];
    p.features = parameter.shape[1];
  } else {
    WIDE_REQUIRE(a.x.rank() >= 1 && p.num_members >= 1 && a.x.shape.back() % p.num_members == 0,
                 name + "x is " + to_string(a.x.shape) +
                     ", expected [.., num_members * features] with num_members = " +
                     std::to_string(p.num_members));
    p.features = a.x.shape.back() / p.num_members;
  }
  const MemberRows x = member_rows(primitive, "x", a.x, p.num_members, p.features);
  p.rows = x.rows;
  p.x = x.strides;
  require_legal(primitive, p);
  if (p.has_gamma) p.gamma_member_stride = feature_stride(primitive, "gamma", a.gamma, p);
  if (p.has_beta) p.beta_member_stride = feature_stride(primitive, "beta", a.beta, p);

  const MemberRows y = member_rows(primitive, "y", a.y, p.num_members, p.features);
  WIDE_REQUIRE(y.rows == p.rows, name + "y is " + to_string(a.y.shape) +
                                     ", expected the rows of x = " + to_string(a.x.shape));
  require_disjoint_rows(primitive, "y", y, p.num_members, p.features);
  p.y = y.strides;
  require_dtype(primitive, "y", a.y, p.dtype);
  require_device(primitive, "x", a.x, a.y.device);
  if (p.has_gamma) require_device(primitive, "gamma", a.gamma, a.y.device);
  if (p.has_beta) require_device(primitive, "beta", a.beta, a.y.device);
  const bool is_in_place = a.x.data == a.y.data && p.x == p.y;
  WIDE_REQUIRE(is_in_place || !may_overlap(a.x, a.y),
               name + "y overlaps x, expected x itself or memory of its own");
  WIDE_REQUIRE(!may_overlap(a.gamma, a.y) && !may_overlap(a.beta, a.y),
               name + "y overlaps gamma or beta");
  return p;
}

}  // namespace wide
