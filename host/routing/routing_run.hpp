// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What routing's plan calls after the operands were validated.
#pragma once

#include <string>

#include "host/core/wide_strategy.hpp"
#include "wide/routing.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// Why `wide` cannot be launched on a CUDA device: its blocks have counters of all members in
/// shared memory. `sequential` has those of one.
LaunchRefusal routing_launches(const RoutingProblem& problem, const DeviceInfo& device);

/// Bytes of counts that the following ones need.
int64_t routing_cpu_count_bytes(const RoutingProblem& problem, WideStrategy strategy);

void run_routing_cpu(const Context& context, const RoutingProblem& problem, WideStrategy strategy,
                     const RoutingArguments& arguments, void* counts);
void run_routing_cuda(const Context& context, const RoutingProblem& problem, WideStrategy strategy,
                      const RoutingArguments& arguments, void* counts, Stream stream);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const RoutingProblem& complete);
TuningKey tuning_key(const RoutingProblem& problem);

}  // namespace wide
