// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the strategies of linear are started. Arguments are checked and not empty, the problem is
// complete. The CUDA ones throw unsupported in a build without CUDA.
#pragma once

#include "host/linear/linear_policy.hpp"
#include "wide/linear.hpp"

namespace wide {

/// Whether all members' tiles go to the threads at once, or member after member.
enum class CpuOrder : uint8_t { all_members, member_after_member };
void run_linear_cpu(const Context& context, const LinearProblem& problem,
                    const LinearArguments& arguments, CpuOrder order);

/// The number of blocks of one member's outputs, and one of them, as run_linear_cpu's tasks.
/// `x_rows`: the addresses of the block's rows of x, where these are not a stride apart.
int64_t linear_cpu_blocks(const LinearProblem& problem);
void run_linear_cpu_block(const LinearProblem& problem, const LinearArguments& arguments,
                          int64_t member, int64_t block, const void* const* x_rows = nullptr);

/// `strategy` is one with a kernel of ours, `tiles` are its linear_tiles(); `execution` has
/// linear_planes_bytes().
void run_linear_kernel(const DeviceInfo& device, LinearStrategy strategy, const LinearTiles& tiles,
                       const LinearProblem& problem, const LinearArguments& arguments,
                       const Execution& execution);

/// Decodes the weights to the front of execution.workspace, `weight_bytes` of it, and multiplies by
/// the kernel of `tiles`, which has the rest.
void run_linear_decoded(const DeviceInfo& device, const LinearTiles& tiles, int64_t weight_bytes,
                        const LinearProblem& problem, const LinearArguments& arguments,
                        const Execution& execution);

/// A launch of ours per member: sequential where cuBLAS's GEMMs do not multiply the dtype. `tiles`
/// are those of one member.
void run_linear_members(const DeviceInfo& device, const LinearTiles& tiles,
                        const LinearProblem& problem, const LinearArguments& arguments,
                        const Execution& execution);

/// `strategy` is sequential, cublas_batched or cublas_grouped, `workspace` its linear_workspace(),
/// which `execution` has.
void run_linear_cublas(const DeviceInfo& device, LinearStrategy strategy,
                       const LinearWorkspace& workspace, const LinearProblem& problem,
                       const LinearArguments& arguments, const Execution& execution);

}  // namespace wide
