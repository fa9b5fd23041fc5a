// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Linear layers of all kinds, for fault_scenarios.hpp.
#pragma once

#include "verify/catalog/fault_values.hpp"
#include "wide/wide.hpp"

namespace wide::test {

inline Bytes run_linear(const char* strategy, Dtype dtype) {
  const CudaRun on;
  const LinearProblem problem{.num_members = 2,
                              .batch = 3,
                              .in_features = 8,
                              .out_features = 5,
                              .dtype = dtype,
                              .epilogue = {.has_bias = true}};
  const LinearPlan plan = make_linear_plan(on.context, problem, {.strategy = strategy});
  const auto some = [&](const Shape& shape) { return on.filled(shape, 0.25f, dtype); };
  const Tensor x = some({3, 16}), w = some({5, 8}), bias = some({5});
  Tensor weight(on.context, dtype, {2, 5, 8}), biases(on.context, dtype, {2, 5});
  const LinearMember members[] = {{w.view(), bias.view()}, {w.view(), bias.view()}};
  plan.prepare_weights(members, weight.view(), biases.view(), on.stream.get());
  Tensor y(on.context, dtype, {3, 10});
  return on.run(plan, LinearArguments{.x = x, .weight = weight, .bias = biases, .y = y}, y);
}

/// Making the plan uploads a table.
inline Bytes run_ragged_linear() {
  const CudaRun on;
  RaggedLinearProblem problem;
  problem.members.resize(2);
  problem.members[0].batch = 3, problem.members[1].batch = 20;
  problem.members[0].in_features = 8, problem.members[1].in_features = 12;
  problem.members[0].out_features = 5, problem.members[1].out_features = 7;
  const auto plan = make_ragged_linear_plan(on.context, problem, {.strategy = "simt"});
  const RaggedLinearExtents extents = ragged_linear_extents(problem);
  const Tensor x = on.filled({extents.x});
  const Tensor weight = on.filled({extents.weight});
  Tensor y = on.zeros({extents.y});
  return on.run(plan, RaggedLinearArguments{.x = x, .weight = weight, .bias = {}, .y = y}, y);
}

inline Bytes run_quantized_linear(const char* strategy) {
  const CudaRun on;
  LinearProblem problem{.num_members = 2, .batch = 3, .in_features = 8, .out_features = 5};
  problem.dtype = Dtype::bf16;
  problem.weight_format = WeightFormat::int4;
  problem.allow_rounded_weights = true;
  const LinearPlan plan = make_linear_plan(on.context, problem, {.strategy = strategy});
  const Tensor x = on.filled({3, 16}, 0.25f, Dtype::bf16);
  const Tensor w = on.filled({5, 8}, 0.5f);
  Tensor blobs(on.context, Dtype::uint8, {2, linear_member_bytes(problem)});
  const LinearMember members[] = {{w.view(), {}}, {w.view(), {}}};
  plan.prepare_weights(members, blobs, {}, on.stream.get());
  Tensor y(on.context, Dtype::bf16, {3, 10});
  return on.run(plan, LinearArguments{.x = x, .weight = blobs, .bias = {}, .y = y}, y);
}

}  // namespace wide::test
