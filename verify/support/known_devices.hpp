// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Devices as what chooses between strategies is told of them, at hand or not.
#pragma once

#include "wide/device.hpp"

namespace wide::test {

inline DeviceInfo gpu(const char* name, int compute_capability, int num_multiprocessors,
                      int64_t shared_bytes_per_block = 0) {
  DeviceInfo info;
  info.device = {DeviceType::cuda, 0};
  info.name = name;
  info.compute_capability = compute_capability;
  info.num_multiprocessors = num_multiprocessors;
  info.shared_bytes_per_block = shared_bytes_per_block;
  info.shared_bytes_per_multiprocessor = shared_bytes_per_block + 1024;  // the system's, a block
  return info;
}

/// Shared memory by the "CUDA C++ Programming Guide", technical specifications per compute
/// capability.
inline const DeviceInfo kH200 = gpu("NVIDIA H200", 90, 132, 227 * 1024);
inline const DeviceInfo kA100 = gpu("NVIDIA A100", 80, 108, 163 * 1024);
inline const DeviceInfo kT4 = gpu("Tesla T4", 75, 40);

}  // namespace wide::test
