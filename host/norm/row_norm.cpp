// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Validation of the operands of layernorm, rmsnorm and chain.
#include "host/norm/row_norm.hpp"

#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/wide_plan.hpp"
#include "host/norm/norm_plan.hpp"

namespace wide {

namespace {

/// Whose rows lie side by side: routed ones lie as those of one member.
int64_t members_in_a_row(const ChainProblem& p) {
  return p.id_dtype ? 1 : p.num_members;
}

void require_legal_ids(std::string_view primitive, const ChainProblem& p) {
  const std::string name = std::string(primitive) + ": ";
  require_at_least(primitive, "first_id", p.first_id, 0);
  WIDE_REQUIRE(p.id_dtype || p.first_id == 0,
               name + "first_id is " + text(p.first_id) + ", expected 0 without ids");
  if (!p.id_dtype) return;
  WIDE_REQUIRE(*p.id_dtype == Dtype::int32 || *p.id_dtype == Dtype::int64,
               name + "ids is " + text(*p.id_dtype) + ", expected int32 or int64");
  WIDE_REQUIRE(p.first_id <= INT64_MAX - p.num_members,
               name + "first_id is " + text(p.first_id) +
                   ", expected first_id + num_members in 64 bits, num_members is " +
                   text(p.num_members));
}

void require_legal(std::string_view primitive, const ChainProblem& p) {
  require_at_least(primitive, "num_members", p.num_members, 1);
  require_at_least(primitive, "rows", p.rows, 0);
  require_at_least(primitive, "features", p.features, 0);
  require_float_dtype(primitive, p.dtype);
  require_epsilon(primitive, p.epsilon);
  require_enumerator(primitive, "activation", p.activation, kAllActivations.back());
  require_enumerator(primitive, "norm", p.norm, kAllChainNorms.back());
  require_legal_ids(primitive, p);
  (void)checked_bytes({p.rows, members_in_a_row(p), p.features}, dtype_bytes(p.dtype));
  const auto require_norm = [&](const char* argument, bool is_present, bool is_legal) {
    WIDE_REQUIRE(!is_present || is_legal, std::string(primitive) + ": " + argument +
                                              " is present, expected none with norm = " +
                                              std::string(chain_norm_name(p.norm)));
  };
  const bool has_norm = p.norm != ChainNorm::none;
  require_norm("gamma", p.has_gamma, has_norm);
  require_norm("beta", p.has_beta, p.norm == ChainNorm::layernorm);
  require_norm("sum", p.has_sum, has_norm);
}

/// An output, which may be x or the residual itself.
RowStrides output_strides(std::string_view primitive, const char* name, const TensorView& view,
                          const ChainArguments& a, const ChainProblem& p) {
  const std::string text = std::string(primitive) + ": " + name;
  const MemberRows rows = member_rows(primitive, name, view, members_in_a_row(p), p.features);
  WIDE_REQUIRE(rows.rows == p.rows, text + " is " + to_string(view.shape) +
                                        ", expected the rows of x = " + to_string(a.x.shape));
  require_disjoint_rows(primitive, name, rows, members_in_a_row(p), p.features);
  require_dtype(primitive, name, view, p.dtype);
  require_device(primitive, name, view, a.y.device);
  const auto require_apart = [&](const char* other, const ConstTensorView& input,
                                 const RowStrides& strides) {
    const bool is_in_place = view.data == input.data && rows.strides == strides;
    WIDE_REQUIRE(
        input.is_absent() || is_in_place || !may_overlap(input, view),
        text + " overlaps " + other + ", expected " + other + " itself or memory of its own");
  };
  require_apart("x", a.x, p.x);
  require_apart("residual", a.residual, p.residual);
  require_own_memory(primitive, name, view, "bias", a.bias);
  require_own_memory(primitive, name, view, "gamma", a.gamma);
  require_own_memory(primitive, name, view, "beta", a.beta);
  require_own_memory(primitive, name, view, "ids", a.ids);
  return rows.strides;
}

/// num_members and features from the first parameter present, else unchanged; features that are
/// not given (0) are x's, packed.
void read_sizes(std::string_view primitive, const ChainArguments& a, ChainProblem& p) {
  const std::string name = std::string(primitive) + ": ";
  struct Parameter {
    const char* name;
    const ConstTensorView* view;
  };
  for (const Parameter& parameter :
       {Parameter{"gamma", &a.gamma}, Parameter{"beta", &a.beta}, Parameter{"bias", &a.bias}}) {
    if (parameter.view->is_absent()) continue;
    WIDE_REQUIRE(parameter.view->rank() == 2, name + parameter.name + " is " +
                                                  to_string(parameter.view->shape) +
                                                  ", expected [num_members, features]");
    p.num_members = parameter.view->shape[0];
    p.features = parameter.view->shape[1];
    return;
  }
  if (p.features > 0) return;
  const int64_t members = members_in_a_row(p);
  WIDE_REQUIRE(
      a.x.rank() >= 1 && members >= 1 && a.x.shape.back() % members == 0,
      name + "x is " + to_string(a.x.shape) +
          ", expected [.., num_members * features] with num_members = " + std::to_string(members));
  p.features = member_features(primitive, "x", a.x, members, 0);
}

void require_ids(std::string_view primitive, const ChainArguments& a, const ChainProblem& p) {
  if (a.ids.is_absent()) return;
  const ArgumentName name = name_of(primitive, "ids");
  WIDE_REQUIRE(a.ids.is_contiguous(),
               name + " has strides " + to_string(a.ids.strides) + ", expected contiguous ones");
  WIDE_REQUIRE(a.ids.num_elements() == p.rows,
               name + " is " + to_string(a.ids.shape) +
                   ", expected one for each row of x = " + to_string(a.x.shape));
  require_device(primitive, "ids", a.ids, a.y.device);
}

}  // namespace

ChainProblem complete_rows(std::string_view primitive, ChainProblem p) {
  require_legal(primitive, p);
  const int64_t members = members_in_a_row(p);
  const RowStrides packed = packed_rows(members, p.features);
  const auto complete = [&](const char* name, RowStrides& strides) {
    strides =
        complete_strides(name_of(primitive, name), strides, packed, p.rows, members, p.features);
  };
  complete("x", p.x);
  complete("y", p.y);
  if (p.has_residual) complete("residual", p.residual);
  if (p.has_sum) complete("sum", p.sum);
  const auto complete_member = [&](const char* name, int64_t& stride, bool is_present) {
    complete_parameter(name_of(primitive, name), stride, is_present, p.num_members, p.features);
  };
  complete_member("bias_member_stride", p.bias_member_stride, p.has_bias);
  complete_member("gamma_member_stride", p.gamma_member_stride, p.has_gamma);
  complete_member("beta_member_stride", p.beta_member_stride, p.has_beta);
  return p;
}

static std::string text(ChainNorm norm) {
  return text(chain_norm_name(norm));
}

constexpr auto kChainFields = [](const auto& same, const ChainProblem& got,
                                 const ChainProblem& plan) {
  same("num_members", got.num_members, plan.num_members);
  same("rows", got.rows, plan.rows);
  same("features", got.features, plan.features);
  same.presence("bias", got.has_bias, plan.has_bias);
  same.presence("residual", got.has_residual, plan.has_residual);
  same.presence("sum", got.has_sum, plan.has_sum);
  same.presence("gamma", got.has_gamma, plan.has_gamma);
  same.presence("beta", got.has_beta, plan.has_beta);
  same.presence("ids", got.id_dtype.has_value(), plan.id_dtype.has_value());
  same("dtype", got.dtype, plan.dtype);
  same("stride of x", got.x, plan.x);
  same("stride of y", got.y, plan.y);
  same("stride of residual", got.residual, plan.residual);
  same("stride of sum", got.sum, plan.sum);
  same("member stride of bias", got.bias_member_stride, plan.bias_member_stride);
  same("member stride of gamma", got.gamma_member_stride, plan.gamma_member_stride);
  same("member stride of beta", got.beta_member_stride, plan.beta_member_stride);
  same("activation", got.activation, plan.activation);
  same("norm", got.norm, plan.norm);
  same("epsilon", got.epsilon, plan.epsilon);
  same("id_dtype", got.id_dtype, plan.id_dtype);
  same("first_id", got.first_id, plan.first_id);
};

void require_same_chain(std::string_view primitive, const ChainProblem& got,
                        const ChainProblem& plan) {
  require_same_problem(primitive, got, plan, kChainFields);
}
std::string problem_key(const ChainProblem& complete) {
  return key_of_fields(complete, kChainFields);
}
std::string problem_key(const LayernormProblem& complete) {
  return problem_key(to_chain(complete));
}
std::string problem_key(const RmsnormProblem& complete) {
  return problem_key(to_chain(complete));
}
TuningKey tuning_key(const ChainProblem& problem) {
  return {"chain", problem_key(complete_rows("chain", problem))};
}
TuningKey tuning_key(const LayernormProblem& problem) {
  return {"layernorm", problem_key(complete_rows("layernorm", to_chain(problem)))};
}
TuningKey tuning_key(const RmsnormProblem& problem) {
  return {"rmsnorm", problem_key(complete_rows("rmsnorm", to_chain(problem)))};
}

ChainProblem describe_rows(std::string_view primitive, const ChainArguments& a,
                           const ChainProblem& like) {
  ChainProblem p;
  p.activation = like.activation;
  p.norm = like.norm;
  p.epsilon = like.epsilon;
  p.has_bias = !a.bias.is_absent();
  p.has_residual = !a.residual.is_absent();
  p.has_sum = !a.sum.is_absent();
  p.has_gamma = !a.gamma.is_absent();
  p.has_beta = !a.beta.is_absent();
  p.dtype = a.x.dtype;
  p.num_members = like.num_members;
  p.features = like.features;
  if (!a.ids.is_absent()) p.id_dtype = a.ids.dtype;
  p.first_id = like.first_id;
  read_sizes(primitive, a, p);
  const MemberRows x = member_rows(primitive, "x", a.x, members_in_a_row(p), p.features);
  p.rows = x.rows;
  p.x = x.strides;
  require_legal(primitive, p);
  require_ids(primitive, a, p);
  const auto parameter = [&](const char* argument, const ConstTensorView& view) -> int64_t {
    if (view.is_absent()) return 0;
    require_device(primitive, argument, view, a.y.device);
    return parameter_stride(primitive, argument, view, "[num_members, features]", p.num_members,
                            p.features, p.dtype);
  };
  p.gamma_member_stride = parameter("gamma", a.gamma);
  p.beta_member_stride = parameter("beta", a.beta);
  p.bias_member_stride = parameter("bias", a.bias);
  if (p.has_residual) {
    const MemberRows residual =
        member_rows(primitive, "residual", a.residual, members_in_a_row(p), p.features);
    WIDE_REQUIRE(residual.rows == p.rows, std::string(primitive) + ": residual is " +
                                              to_string(a.residual.shape) +
                                              ", expected the rows of x = " + to_string(a.x.shape));
    require_dtype(primitive, "residual", a.residual, p.dtype);
    require_device(primitive, "residual", a.residual, a.y.device);
    p.residual = residual.strides;
  }
  require_device(primitive, "x", a.x, a.y.device);
  p.y = output_strides(primitive, "y", a.y, a, p);
  if (p.has_sum) {
    p.sum = output_strides(primitive, "sum", a.sum, a, p);
    require_own_memory(primitive, "sum", a.sum, "y", a.y);
  }
  return p;
}

ChainProblem to_chain(const LayernormProblem& p) {
  ChainProblem chain{p.num_members, p.rows, p.features, p.dtype};
  chain.norm = ChainNorm::layernorm;
  chain.epsilon = p.epsilon;
  chain.has_residual = p.has_residual;
  chain.has_sum = p.has_sum;
  chain.has_gamma = p.has_gamma;
  chain.has_beta = p.has_beta;
  chain.x = p.x;
  chain.residual = p.residual;
  chain.sum = p.sum;
  chain.y = p.y;
  chain.gamma_member_stride = p.gamma_member_stride;
  chain.beta_member_stride = p.beta_member_stride;
  chain.id_dtype = p.id_dtype;
  chain.first_id = p.first_id;
  return chain;
}

LayernormProblem to_layernorm(const ChainProblem& p) {
  return {p.num_members,        p.rows,         p.features, p.dtype,    p.epsilon,
          p.has_gamma,          p.has_beta,     p.x,        p.y,        p.gamma_member_stride,
          p.beta_member_stride, p.has_residual, p.has_sum,  p.residual, p.sum,
          p.id_dtype,           p.first_id};
}

ChainProblem to_chain(const RmsnormProblem& p) {
  ChainProblem chain =
      to_chain(LayernormProblem{p.num_members, p.rows, p.features, p.dtype, p.epsilon, p.has_gamma,
                                false, p.x, p.y, p.gamma_member_stride, 0, p.has_residual,
                                p.has_sum, p.residual, p.sum, p.id_dtype, p.first_id});
  chain.norm = ChainNorm::rmsnorm;
  return chain;
}

RmsnormProblem to_rmsnorm(const ChainProblem& p) {
  return {p.num_members,
          p.rows,
          p.features,
          p.dtype,
          p.epsilon,
          p.has_gamma,
          p.x,
          p.y,
          p.gamma_member_stride,
          p.has_residual,
          p.has_sum,
          p.residual,
          p.sum,
          p.id_dtype,
          p.first_id};
}

ChainArguments to_chain(const LayernormArguments& a) {
  return {a.x, {}, a.residual, a.gamma, a.beta, a.y, a.sum, a.ids};
}
ChainArguments to_chain(const RmsnormArguments& a) {
  return {a.x, {}, a.residual, a.gamma, {}, a.y, a.sum, a.ids};
}

LaunchRefusal row_norm_launches(const ChainProblem& problem) {
  ChainProblem launched = problem;
  launched.num_members = members_in_a_row(problem);
  return row_launches(launched);
}

void run_row_norm(const Context& context, const ChainProblem& problem, WideStrategy strategy,
                  const ChainArguments& arguments, Stream stream) {
  if (context.device().type == DeviceType::cpu) {
    run_row_norm_cpu(context, problem, strategy, arguments);
  } else {
    run_row_norm_cuda(context, problem, strategy, arguments, stream);
  }
}

}  // namespace wide
