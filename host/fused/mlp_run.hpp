// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the fused kernel is started. Arguments are checked and not empty, the problem is complete.
#pragma once

#include "kernels/fused/mlp_fused_shape.hpp"
#include "wide/mlp.hpp"

namespace wide {

/// Throws unsupported in a build without CUDA.
void run_mlp_fused(const DeviceInfo& device, const MlpProblem& problem,
                   const kernels::MlpFusedNet& net, const kernels::MlpFusedShape& shape,
                   const MlpArguments& arguments, Stream stream);

}  // namespace wide
