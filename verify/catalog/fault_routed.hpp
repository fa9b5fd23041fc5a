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
  const CudaRun on;
  RoutedLinearProblem problem;
  problem.num_members = 2, problem.num_rows = 9;
  problem.in_features = 8, problem.out_features = 5;
  const auto plan = make_routed_linear_plan(on.context, problem, {.strategy = "sequential"});
  const Tensor x = on.filled({9, 8});
  const Tensor weight = on.filled({2, 5, 8});
  // Zeros as a routing: all rows are of none.
  const Tensor first_rows = on.zeros({3}, Dtype::int32), order = on.zeros({9}, Dtype::int32);
  Tensor y(on.context, Dtype::fp32, {9, 5});
  return on.run(plan,
                RoutedLinearArguments{
                    .x = x, .weight = weight, .y = y, .first_rows = first_rows, .order = order},
                y);
}

inline Bytes run_routing() {
  const CudaRun on;
  const RoutingProblem problem{.num_members = 3, .num_rows = 1100, .id_dtype = Dtype::int32};
  const RoutingPlan plan = make_routing_plan(on.context, problem, {.strategy = "wide"});
  const Tensor ids = on.filled({1100}, 1, Dtype::int32);
  Tensor first_rows(on.context, Dtype::int32, {4}), order(on.context, Dtype::int32, {1100});
  return on.run(plan, RoutingArguments{.ids = ids, .first_rows = first_rows, .order = order},
                order);
}

/// A launch per member and layer.
inline Bytes run_routed_mlp(const char* strategy) {
  const CudaRun on;
  RoutedMlpProblem problem{.num_members = 2, .num_rows = 9, .widths = {8, 12, 5}};
  const auto plan = make_routed_mlp_plan(on.context, problem, {.strategy = strategy});
  const Tensor x = on.filled({9, 8});
  MlpProblem networks;
  networks.widths = problem.widths;
  const Tensor weights = on.filled({2, mlp_member_elements(networks)});
  // Zeros as a routing: all rows are of none.
  const Tensor first_rows = on.zeros({3}, Dtype::int32), order = on.zeros({9}, Dtype::int32);
  Tensor y = on.zeros({9, 5});
  return on.run(plan,
                RoutedMlpArguments{
                    .x = x, .weights = weights, .y = y, .first_rows = first_rows, .order = order},
                y);
}

}  // namespace wide::test
