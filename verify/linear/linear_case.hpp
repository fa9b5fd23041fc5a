// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of linear share: a workload of the catalogue run and judged, and the layouts that
// every strategy must take.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <utility>
#include <vector>

#include "host/compare.hpp"
#include "host/specs.hpp"
#include "verify/linear/placed_linear.hpp"
#include "wide/catalog.hpp"
#include "wide/wide.hpp"

namespace wide::test {

using Values = std::vector<std::pair<std::string, catalog::AxisValue>>;

/// Runs the case of the catalogue and compares every output with the reference.
inline catalog::MemberOutputs check_case(TestDevice& bench, const std::string& strategy,
                                         const Values& values,
                                         const catalog::WorkloadOptions& options = {}) {
  const catalog::PrimitiveSpec& spec = catalog::linear_spec();
  const catalog::Case point = catalog::make_case(spec, values);
  INFO("linear " << point.to_string() << " strategy " << strategy);
  const auto workload = spec.make_workload(bench.context(), point, options);
  REQUIRE(workload->unsupported_reason(strategy) == "");
  const catalog::Prepared prepared = workload->prepare(strategy);
  workload->poison_outputs(catalog::OutputOf::strategy, bench.stream());
  prepared.run(bench.execution(prepared.workspace_bytes));
  const auto outputs = workload->read_outputs(catalog::OutputOf::strategy, bench.stream());
  const catalog::ReferenceSample reference(*workload, 1e15);
  REQUIRE(reference.elements() == reference.elements_in_all());
  const catalog::Verdict verdict = catalog::compare(reference, outputs);
  INFO(verdict.message);
  REQUIRE(verdict.passed);
  REQUIRE(workload->damage(bench.stream()) == "");
  return outputs;
}

/// A problem of small odd sizes.
inline LinearProblem small_problem(Dtype dtype = Dtype::fp32) {
  LinearProblem problem;
  problem.num_members = 3;
  problem.batch = 5;
  problem.in_features = 19;
  problem.out_features = 7;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  return problem;
}

/// The layouts that every strategy must take, by name.
inline std::vector<std::pair<std::string, LinearProblem>> layouts(const LinearProblem& base) {
  std::vector<std::pair<std::string, LinearProblem>> list{{"packed", base}};
  const int64_t n = base.num_members, in = base.in_features, out = base.out_features;
  LinearProblem problem = base;
  problem.x = {in, base.batch * in};
  problem.y = {out, base.batch * out};
  list.emplace_back("member-major", problem);
  problem = base;
  problem.x = {n * (in + 5) + 2, in + 5};
  problem.weight = {in + 1, out * (in + 1) + 3};
  problem.bias_member_stride = out + 2;
  problem.y = {n * (out + 3) + 1, out + 3};
  list.emplace_back("padded everywhere", problem);
  problem = base;
  problem.x = {in + 8 - in % 8 + 8, 0};
  list.emplace_back("x member stride 0", problem);
  problem = base;
  problem.shared_input = true;
  list.emplace_back("shared input", problem);
  problem = base;
  problem.weight = {in + 8 - in % 8 + 8, 0};
  list.emplace_back("weight member stride 0", problem);
  problem = base;
  problem.epilogue = {.has_bias = false, .activation = Activation::relu};
  list.emplace_back("relu, no bias", problem);
  problem = base;
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .scale = OutputScale::per_output,
                      .residual = Residual::before_activation};
  list.emplace_back("scale per output, residual, relu", problem);
  problem.epilogue.scale = OutputScale::per_member;
  problem.epilogue.residual = Residual::after_activation;
  problem.epilogue.alpha = 0.5f;
  problem.scale_member_stride = 3;
  problem.residual = {n * (out + 1) + 1, out + 1};
  list.emplace_back("half the scale per member, relu, padded residual", problem);
  return list;
}

}  // namespace wide::test
