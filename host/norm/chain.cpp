// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// chain's verbs: validate, choose, launch.
#include "wide/chain.hpp"

#include "host/core/member_fields.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/wide_plan.hpp"
#include "host/norm/row_norm.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kChainName = "chain";

/// One of the parameters and its places.
struct Parameter {
  const char* name;
  bool ChainProblem::*is_present;
  ConstTensorView ChainMember::*member;
  TensorView ChainParameters::*packed;
};
constexpr Parameter kParameters[] = {
    {"bias", &ChainProblem::has_bias, &ChainMember::bias, &ChainParameters::bias},
    {"gamma", &ChainProblem::has_gamma, &ChainMember::gamma, &ChainParameters::gamma},
    {"beta", &ChainProblem::has_beta, &ChainMember::beta, &ChainParameters::beta}};

}  // namespace

ChainProblem describe_chain(const ChainArguments& arguments, const ChainProblem& like) {
  return describe_rows(kChainName, arguments, like);
}

template <>
struct PlanState<ChainProblem> : WideState<ChainProblem> {};
template class PrimitivePlan<ChainProblem>;

ChainPlan make_chain_plan(const Context& context, const ChainProblem& problem,
                          const PlanOptions& options) {
  const ChainProblem full = complete_rows(kChainName, problem);
  return ChainPlan(std::make_shared<const ChainPlan::State>(
      make_wide_state(kChainName, context, full, options, row_norm_launches(full))));
}

void ChainPlan::prepare_weights(std::span<const ChainMember> members,
                                const ChainParameters& parameters, Stream stream) const {
  const ChainProblem& p = state_->problem;
  for (const Parameter& parameter : kParameters) {
    if (!(p.*parameter.is_present)) continue;
    const TensorView& packed = parameters.*parameter.packed;
    require_shape(kChainName, parameter.name, packed, "[num_members, features]",
                  {p.num_members, p.features});
    pack(operands::chain_parameter, fields_of(members, parameter.member), packed, stream);
  }
}

void ChainPlan::restore_weights(const ChainParameters& parameters,
                                std::span<const ChainParameters> members, Stream stream) const {
  for (const Parameter& parameter : kParameters) {
    if (!(state_->problem.*parameter.is_present)) continue;
    unpack(operands::chain_parameter, parameters.*parameter.packed,
           fields_of(members, parameter.packed), stream);
  }
}

void ChainPlan::run(const ChainArguments& arguments, const Execution& execution) const {
  run_rows(kChainName, *state_, arguments, execution.stream);
}

}  // namespace wide
