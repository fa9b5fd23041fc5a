// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Who runs which rows of a routed model when it is validated, and the sums of what they make of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wide/model_plan.hpp"

namespace wide {

struct RandomRouting {
  std::vector<int64_t> members;                ///< [batch, K]
  std::vector<double> gates;                   ///< as many; 1 where there are none
  std::vector<std::vector<std::byte>> inputs;  ///< of the plan, after the graph's
};

/// By plain loops over the definition of top_k where the plan has scores.
RandomRouting random_routing(const ModelPlan& plan, uint64_t seed);
/// By scores whatever the router: these inputs, or what a caller makes of them. Each row has
/// different members; `choices` must be at most num_members.
RandomRouting random_routing_by_scores(const ModelPlan& plan, uint64_t seed);

/// The outputs of a mixture out of those of its members alone.
class MixtureSums {
 public:
  MixtureSums(const RandomRouting& routing, const ModelPlan& plan);
  /// Output `k` of a member that ran all rows; its own are taken.
  void add(size_t k, int64_t member, const std::vector<std::byte>& alone);
  /// After all are added: the largest difference in the rows that a member has a part in, over the
  /// largest of their values.
  double error(size_t k, int64_t member, const std::vector<std::byte>& all) const;

 private:
  /// Calls visit(element, gate) for those of a member's rows.
  template <class Visit>
  void for_each(size_t k, int64_t member, const Visit& visit) const;

  const RandomRouting& routing_;
  int64_t choices_;
  std::span<const ModelOperand> outputs_;
  std::vector<std::vector<double>> sums_;  ///< by output
};

}  // namespace wide
