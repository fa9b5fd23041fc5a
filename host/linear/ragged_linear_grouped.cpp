// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/linear/ragged_linear_grouped.hpp"

#include <algorithm>

#include "host/core/workspace.hpp"
#include "host/linear/linear_vendor.hpp"
#include "host/linear/ragged_linear_problem.hpp"
#include "host/linear/ragged_linear_strategy.hpp"

namespace wide {

bool is_product(const RaggedLinearMember& member) {
  return !is_empty(member) && member.in_features > 0;
}

RaggedGroupedCall describe_ragged_grouped(const RaggedLinearProblem& problem) {
  const CublasGroupedCall like = describe_cublas_grouped(ragged_member_problem(problem, 0));
  RaggedGroupedCall call;
  call.begins_with_epilogue = like.begins_with_epilogue;
  call.needs_kernel = like.needs_kernel;
  call.writes_sums = like.writes_sums;
  // Where no kernel follows, one has to write the zeros of members without in_features first.
  const bool has_zeros =
      std::any_of(problem.members.begin(), problem.members.end(),
                  [](const RaggedLinearMember& one) { return !is_empty(one) && !is_product(one); });
  if (has_zeros && !call.needs_kernel) call.begins_with_epilogue = true;

  std::vector<int64_t>* const columns[] = {&call.out,        &call.batch, &call.in,
                                           &call.weight_row, &call.x_row, &call.y_row};
  for (size_t i = 0; i < problem.members.size(); ++i) {
    if (!is_product(problem.members[i])) continue;
    ++call.num_products;
    const LinearProblem one = ragged_member_problem(problem, i);
    const auto [weight, x, y] = blas_problem(one, one.y);
    const int64_t values[] = {y.rows, y.columns, x.rows, weight.leading, x.leading, y.leading};
    const bool goes_on =
        !call.sizes.empty() &&
        std::equal(std::begin(values), std::end(values), std::begin(columns),
                   [](int64_t value, const auto* all) { return all->back() == value; });
    if (goes_on) {
      ++call.sizes.back();
      continue;
    }
    for (size_t column = 0; column < std::size(values); ++column) {
      columns[column]->push_back(values[column]);
    }
    call.sizes.push_back(1);
  }
  call.alphas.assign(call.sizes.size(), like.alpha);
  call.betas.assign(call.sizes.size(), call.begins_with_epilogue ? 1.0f : 0.0f);
  return call;
}

std::string ragged_grouped_offset_reason(const RaggedLinearProblem& problem, size_t index) {
  const RaggedLinearMember& member = problem.members[index];
  if (!is_product(member) || !cublas_grouped_needs_alignment(ragged_member_problem(problem, index)))
    return "";
  const int64_t vector = 16 / dtype_bytes(problem.dtype);
  const std::pair<const char*, int64_t> offsets[] = {
      {"x", member.x.offset}, {"weight", member.weight.offset}, {"y", member.y.offset}};
  for (const auto& [name, offset] : offsets) {
    if (offset % vector == 0) continue;
    return std::string(name) + " has offset " + std::to_string(offset) +
           ", the call needs multiples of " + std::to_string(vector) + " elements";
  }
  return "";
}

LinearWorkspace ragged_grouped_workspace(const RaggedLinearProblem& problem,
                                         const DeviceInfo& device) {
  const RaggedGroupedCall call = describe_ragged_grouped(problem);
  if (call.num_products == 0) return {};
  LinearWorkspace workspace = cublas_workspace({}, device, false);
  if (call.writes_sums) {
    workspace.sums_bytes = aligned_bytes(checked_bytes({extents_of_laid_out(problem).y}, 4));
  }
  constexpr int64_t kPointerBytes = 8;
  workspace.pointers_bytes = aligned_bytes(checked_bytes({3, call.num_products}, kPointerBytes));
  return workspace;
}

}  // namespace wide
