// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the strategies of ragged_linear are started. Arguments are checked and not empty, the problem
// is laid out. The CUDA ones throw unsupported in a build without CUDA.
#pragma once

#include <memory>
#include <vector>

#include "host/linear/ragged_linear_strategy.hpp"

namespace wide {

/// The blocks of all members in one line: members whose blocks take longest first.
struct RaggedCpuBlocks {
  std::vector<size_t> members;  ///< without empty ones
  std::vector<int64_t> first;   ///< of each of these, and the number of all
};
RaggedCpuBlocks ragged_cpu_blocks(const RaggedLinearProblem& problem);

/// Strategy `wide`. `members` are problem's, as ragged_member_problem() gives them.
void run_ragged_linear_cpu(const Context& context, const RaggedLinearProblem& problem,
                           const std::vector<LinearProblem>& members, const RaggedCpuBlocks& blocks,
                           const RaggedLinearArguments& arguments);

/// `params` has the table; the rest is filled in.
void run_ragged_linear_kernel(const DeviceInfo& device, RaggedLinearStrategy strategy,
                              const RaggedLinearProblem& problem,
                              kernels::RaggedLinearParams params,
                              const RaggedLinearArguments& arguments, Stream stream);

/// cuBLAS's grouped call for one problem, with the kernels before and after it.
class RaggedGroupedCublas {
 public:
  virtual ~RaggedGroupedCublas() = default;
  /// Whether the storages begin where the call reads them; a plan is made before there are any.
  virtual bool needs_alignment() const = 0;
  virtual bool takes(const RaggedLinearArguments& arguments) const = 0;
  /// `params` as of run_ragged_linear_kernel.
  virtual void run(kernels::RaggedLinearParams params, const RaggedLinearArguments& arguments,
                   const Execution& execution) const = 0;
};
std::unique_ptr<const RaggedGroupedCublas> make_ragged_grouped_cublas(
    const DeviceInfo& device, const RaggedLinearProblem& problem);

}  // namespace wide
