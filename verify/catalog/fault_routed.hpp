// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The scenarios of fault_scenarios.hpp with rows that the device routes.
#pragma once

#include "verify/catalog/fault_values.hpp"
#include "wide/wide.hpp"

namespace wide::test {

/// A launch per member.
inline Bytes run_routed_linear() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  RoutedLinearProblem problem;
  problem.num_members = 2, problem.num_rows = 9;
  problem.in_features = 8, problem.out_features = 5;
  const auto plan = make_routed_linear_plan(context, problem, {.strategy = "sequential"});
  const Tensor x = filled(context, {9, 8}, stream.get());
  const Tensor weight = filled(context, {2, 5, 8}, stream.get());
  // Zeros as a routing: all rows are of none.
  Tensor first_rows(context, Dtype::int32, {3}), order(context, Dtype::int32, {9});
  fill_bytes(first_rows.view(), 0, stream.get());
  fill_bytes(order.view(), 0, stream.get());
  Tensor y(context, Dtype::fp32, {9, 5});
  plan.run({.x = x, .weight = weight, .y = y, .first_rows = first_rows, .order = order},
           {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_routing() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const RoutingProblem problem{.num_members = 3, .num_rows = 1100, .id_dtype = Dtype::int32};
  const RoutingPlan plan = make_routing_plan(context, problem, {.strategy = "wide"});
  const Tensor ids = filled(context, {1100}, stream.get(), 1, Dtype::int32);
  Tensor first_rows(context, Dtype::int32, {4}), order(context, Dtype::int32, {1100});
  Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
  plan.run({.ids = ids, .first_rows = first_rows, .order = order},
           {stream.get(), {scratch.data(), scratch.bytes()}});
  return read(context, order, stream.get());
}

/// A launch per member and layer.
inline Bytes run_routed_mlp(const char* strategy) {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  RoutedMlpProblem problem{.num_members = 2, .num_rows = 9, .widths = {8, 12, 5}};
  const auto plan = make_routed_mlp_plan(context, problem, {.strategy = strategy});
  const Tensor x = filled(context, {9, 8}, stream.get());
  MlpProblem networks;
  networks.widths = problem.widths;
  const Tensor weights = filled(context, {2, mlp_member_elements(networks)}, stream.get());
  // Zeros as a routing: all rows are of none.
  Tensor first_rows(context, Dtype::int32, {3}), order(context, Dtype::int32, {9});
  fill_bytes(first_rows.view(), 0, stream.get());
  fill_bytes(order.view(), 0, stream.get());
  Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
  Tensor y(context, Dtype::fp32, {9, 5});
  fill_bytes(y.view(), 0, stream.get());
  plan.run({.x = x, .weights = weights, .y = y, .first_rows = first_rows, .order = order},
           {stream.get(), {workspace.data(), workspace.bytes()}});
  return read(context, y, stream.get());
}

}  // namespace wide::test
