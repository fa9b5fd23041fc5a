// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Devices as what chooses between strategies is told of them, at hand or not.
#pragma once

#include "wide/device.hpp"

namespace wide::test {

inline DeviceInfo gpu(const char* name, int compute_capability, int num_multiprocessors) {
  DeviceInfo info;
  info.device = {DeviceType::cuda, 0};
  info.name = name;
  info.compute_capability = compute_capability;
  info.num_multiprocessors = num_multiprocessors;
  return info;
}

inline const DeviceInfo kH200 = gpu("NVIDIA H200", 90, 132);
inline const DeviceInfo kA100 = gpu("NVIDIA A100", 80, 108);
inline const DeviceInfo kT4 = gpu("Tesla T4", 75, 40);

}  // namespace wide::test
