// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for recurrent_cuda.cpp where there is no CUDA.
#include "host/core/check.hpp"
#include "host/recurrent/recurrent_run.hpp"

namespace wide {

void run_recurrent_cell_cuda(const DeviceInfo&, const kernels::RecurrentCellParams&, Stream) {
  no_cuda("recurrent");
}
void run_recurrent_fused(const DeviceInfo&, const RecurrentProblem&, const RecurrentArguments&,
                         const void*, Stream) {
  no_cuda("recurrent");
}

}  // namespace wide
