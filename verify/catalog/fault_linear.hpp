// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Linear layers of all kinds, for fault_scenarios.hpp.
#pragma once

#include "verify/catalog/fault_values.hpp"
#include "wide/wide.hpp"

namespace wide::test {

inline Bytes run_linear(const char* strategy, Dtype dtype) {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const LinearProblem problem{.num_members = 2,
                              .batch = 3,
                              .in_features = 8,
                              .out_features = 5,
                              .dtype = dtype,
                              .epilogue = {.has_bias = true}};
  const LinearPlan plan = make_linear_plan(context, problem, {.strategy = strategy});
  const auto some = [&](const Shape& shape) {
    return filled(context, shape, stream.get(), 0.25f, dtype);
  };
  const Tensor x = some({3, 16}), w = some({5, 8}), bias = some({5});
  Tensor weight(context, dtype, {2, 5, 8}), biases(context, dtype, {2, 5});
  const LinearMember members[] = {{w.view(), bias.view()}, {w.view(), bias.view()}};
  plan.prepare_weights(members, weight.view(), biases.view(), stream.get());
  Tensor y(context, dtype, {3, 10});
  plan.run({.x = x, .weight = weight, .bias = biases, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

/// Making the plan uploads a table.
inline Bytes run_ragged_linear() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  RaggedLinearProblem problem;
  problem.members.resize(2);
  problem.members[0].batch = 3, problem.members[1].batch = 20;
  problem.members[0].in_features = 8, problem.members[1].in_features = 12;
  problem.members[0].out_features = 5, problem.members[1].out_features = 7;
  const auto plan = make_ragged_linear_plan(context, problem, {.strategy = "simt"});
  const RaggedLinearExtents extents = ragged_linear_extents(problem);
  const Tensor x = filled(context, {extents.x}, stream.get());
  const Tensor weight = filled(context, {extents.weight}, stream.get());
  Tensor y(context, Dtype::fp32, {extents.y});
  fill_bytes(y.view(), 0, stream.get());
  plan.run({.x = x, .weight = weight, .bias = {}, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_quantized_linear() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  LinearProblem problem{.num_members = 2, .batch = 3, .in_features = 8, .out_features = 5};
  problem.dtype = Dtype::bf16;
  problem.weight_format = WeightFormat::int4;
  const LinearPlan plan = make_linear_plan(context, problem, {.strategy = "weight_only"});
  const Tensor x = filled(context, {3, 16}, stream.get(), 0.25f, Dtype::bf16);
  const Tensor w = filled(context, {5, 8}, stream.get(), 0.5f);
  Tensor blobs(context, Dtype::uint8, {2, linear_member_bytes(problem)});
  const LinearMember members[] = {{w.view(), {}}, {w.view(), {}}};
  plan.prepare_weights(members, blobs, {}, stream.get());
  Tensor y(context, Dtype::bf16, {3, 10});
  plan.run({.x = x, .weight = blobs, .bias = {}, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

}  // namespace wide::test
