// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How recurrent layers' kernels are started. Arguments are checked and not empty, the problem is
// complete.
#pragma once

#include "kernels/recurrent/recurrent_params.hpp"
#include "wide/recurrent.hpp"

namespace wide {

/// A step's cells, on the CPU and on CUDA. Addresses are of the first member included.
void run_recurrent_cell_cpu(const Context& context, const kernels::RecurrentCellParams& step);
/// Throws unsupported in a build without CUDA.
void run_recurrent_cell_cuda(const DeviceInfo& device, const kernels::RecurrentCellParams& step,
                             Stream stream);

/// All steps after x's products, whose sums lie at `input_gates`. Throws unsupported in a build
/// without CUDA.
void run_recurrent_fused(const DeviceInfo& device, const RecurrentProblem& problem,
                         const RecurrentArguments& arguments, const void* input_gates,
                         Stream stream);

}  // namespace wide
