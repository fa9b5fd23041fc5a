// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the fused kernel is started on routed rows. Arguments are checked and not empty, the problem
// is complete.
#pragma once

#include "host/fused/routed_mlp_strategy.hpp"

namespace wide {

/// Throws unsupported in a build without CUDA.
void run_routed_mlp_fused(const DeviceInfo& device, const RoutedMlpProblem& problem,
                          const kernels::MlpFusedNet& net, const RoutedMlpShape& shape,
                          const RoutedMlpArguments& arguments, Stream stream);

}  // namespace wide
