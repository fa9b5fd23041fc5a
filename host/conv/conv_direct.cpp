// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What conv_direct cannot run.

#include "host/conv/conv_params.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/core/strategy_choice.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/conv/conv_direct_tile.hpp"

namespace wide {

std::string conv_direct_unsupported_reason(const ConvProblem& problem, const DeviceInfo& device) {
  const std::string device_reason = kernel_device_reason(device);
  if (!device_reason.empty()) return device_reason;
  constexpr int64_t kMaxTaps = 1024;
  if (problem.kernel.height > kMaxTaps || problem.kernel.width > kMaxTaps ||
      problem.kernel.height * problem.kernel.width > kMaxTaps) {
    return "it takes at most " + std::to_string(kMaxTaps) + " taps, the kernel has " +
           std::to_string(problem.kernel.height) + " x " + std::to_string(problem.kernel.width);
  }
  const kernels::ConvParams params = conv_params(with_rows_as_planes(problem));
  const kernels::DirectTile tile = kernels::direct_tile(params, problem.dtype == Dtype::fp32);
  const int64_t bytes = tile.shared_bytes();
  if (bytes > device.shared_bytes_per_block) {
    return "a tile's halo takes " + std::to_string(bytes) + " bytes of shared memory, a block of " +
           device.name + " has " + std::to_string(device.shared_bytes_per_block);
  }
  return tile.blocks_of_member(params) > kernels::kMaxGridBlocks / problem.num_members
             ? "the output has more than 2^31 - 1 tiles"
             : "";
}

}  // namespace wide
