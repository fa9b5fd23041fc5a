// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the strategies of routed_linear are started. Arguments are checked and not empty, the problem
// is complete. The CUDA ones throw unsupported in a build without CUDA.
#pragma once

#include "host/linear/routed_linear_strategy.hpp"

namespace wide {

void run_routed_linear_cpu(const Context& context, RoutedLinearStrategy strategy,
                           const RoutedLinearProblem& problem,
                           const RoutedLinearArguments& arguments);

void run_routed_linear_cuda(const DeviceInfo& device, RoutedLinearStrategy strategy,
                            const RoutedLinearProblem& problem,
                            const RoutedLinearArguments& arguments, Stream stream);

}  // namespace wide
