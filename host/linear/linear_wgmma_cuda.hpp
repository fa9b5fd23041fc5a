// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How wgmma is started: with the tensor maps of its operands.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/linear/linear_params.hpp"
#include "kernels/linear/linear_wgmma_tile.hpp"
#include "wide/device.hpp"
#include "wide/linear.hpp"
#include "wide/strides.hpp"

namespace wide {

/// An operand {features, rows, members}, in boxes of one member; one member if all share it.
struct LinearRowsMap {
  const void* data;
  Dtype dtype;
  int64_t features, rows, members;
  RowStrides strides;
  int64_t box_features, box_rows;
};
void encode_linear_rows(const LinearRowsMap& map, CUtensorMap& encoded);

/// False where an address is not a multiple of 16 bytes, or there is nothing to multiply.
bool has_linear_maps(const LinearProblem& problem, const LinearArguments& arguments);

void run_linear_wgmma(const DeviceInfo& device, kernels::LinearWgmmaTile tile,
                      const LinearProblem& problem, const kernels::LinearParams& params,
                      const LinearArguments& arguments, cudaStream_t stream);

}  // namespace wide
