// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// All members' blocks over the threads at once, each computed as linear computes it.
#include <algorithm>

#include "host/core/parallel.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/ragged_linear_problem.hpp"
#include "host/linear/ragged_linear_run.hpp"

namespace wide {

RaggedCpuBlocks ragged_cpu_blocks(const RaggedLinearProblem& problem) {
  RaggedCpuBlocks blocks;
  for (size_t i = 0; i < problem.members.size(); ++i) {
    if (!is_empty(problem.members[i])) blocks.members.push_back(i);
  }
  std::stable_sort(blocks.members.begin(), blocks.members.end(), [&](size_t a, size_t b) {
    return problem.members[a].in_features > problem.members[b].in_features;
  });
  blocks.first.push_back(0);
  for (const size_t i : blocks.members) {
    blocks.first.push_back(blocks.first.back() +
                           linear_cpu_blocks(ragged_member_problem(problem, i)));
  }
  return blocks;
}

void run_ragged_linear_cpu(const Context& context, const RaggedLinearProblem& problem,
                           const std::vector<LinearProblem>& members, const RaggedCpuBlocks& blocks,
                           const RaggedLinearArguments& arguments) {
  parallel_for(context, blocks.first.back(), [&](int64_t task) {
    const auto behind = std::upper_bound(blocks.first.begin(), blocks.first.end(), task);
    const size_t member = blocks.members[static_cast<size_t>(behind - blocks.first.begin() - 1)];
    run_linear_cpu_block(members[member], ragged_member_arguments(problem, arguments, member), 0,
                         task - behind[-1]);
  });
}

}  // namespace wide
