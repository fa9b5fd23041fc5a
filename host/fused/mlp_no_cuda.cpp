// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for mlp_cuda.cpp where there is no CUDA.
#include "host/core/check.hpp"
#include "host/fused/mlp_run.hpp"
#include "host/fused/routed_mlp_run.hpp"

namespace wide {

void run_mlp_fused(const DeviceInfo&, const MlpProblem&, const kernels::MlpFusedNet&,
                   const kernels::MlpFusedShape&, const MlpArguments&, Stream) {
  no_cuda("mlp");
}
void run_routed_mlp_fused(const DeviceInfo&, const RoutedMlpProblem&, const kernels::MlpFusedNet&,
                          const RoutedMlpShape&, const RoutedMlpArguments&, Stream) {
  no_cuda("routed_mlp");
}

}  // namespace wide
