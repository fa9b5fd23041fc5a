// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Encoding tensor maps is host arithmetic: it is done at every call, and nothing is allocated or
// uploaded; the maps are passed as kernel parameters.
#include "host/linear/linear_wgmma_cuda.hpp"

#include "host/core/cuda_check.hpp"
#include "host/core/tensor_map.hpp"
#include "host/linear/linear_strategy.hpp"
#include "kernels/linear/linear_wgmma.hpp"

namespace wide {

void encode_linear_rows(const LinearRowsMap& map, CUtensorMap& encoded) {
  const int64_t vector = 16 / dtype_bytes(map.dtype);
  // A stride that nothing steps along must be valid all the same.
  const int64_t packed = (map.features + vector - 1) / vector * vector;
  const int64_t row = map.rows > 1 ? map.strides.row : packed;
  const int64_t members = map.strides.member == 0 ? 1 : map.members;
  const int64_t member = members > 1 ? map.strides.member : row;
  encode_tile_map({.data = map.data,
                   .dtype = map.dtype,
                   .rank = 3,
                   .extent = {map.features, map.rows, members},
                   .stride = {1, row, member},
                   .box = {map.box_features, map.box_rows, 1},
                   .swizzle = TileSwizzle::bytes_128},
                  encoded);
}

bool has_linear_maps(const LinearProblem& problem, const LinearArguments& arguments) {
  return problem.in_features > 0 && is_on_16_bytes(arguments.x.data) &&
         is_on_16_bytes(arguments.weight.data);
}

void run_linear_wgmma(const DeviceInfo& device, kernels::LinearWgmmaTile tile,
                      const LinearProblem& problem, const kernels::LinearParams& params,
                      const LinearArguments& arguments, cudaStream_t stream) {
  const int64_t in = problem.in_features, out = problem.out_features;
  const int64_t members = problem.num_members, batch = problem.batch;
  const int64_t box_k = kernels::kWgmmaTileBytes / dtype_bytes(problem.dtype);
  kernels::LinearWgmmaParams wgmma{};
  wgmma.linear = params;
  wgmma.num_multiprocessors = device.num_multiprocessors;
  encode_linear_rows(
      {arguments.x.data, problem.dtype, in, batch, members, problem.x, box_k, block_m(tile)},
      wgmma.x);
  encode_linear_rows({arguments.weight.data, problem.dtype, in, out, members, problem.weight, box_k,
                      block_weight_rows(tile)},
                     wgmma.weight);
  wgmma.stores_boxes = linear_stores_boxes(problem) && is_on_16_bytes(arguments.y.data);
  if (wgmma.stores_boxes) {
    encode_linear_rows({arguments.y.data, *problem.y_dtype, out, batch, members, problem.y,
                        kernels::kWgmmaStoreN, kernels::kWgmmaStoreM},
                       wgmma.y);
  }
  WIDE_CHECK_CUDA(
      kernels::launch_linear_wgmma(wgmma, problem.dtype, *problem.y_dtype, tile, stream));
}

}  // namespace wide
