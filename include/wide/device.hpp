// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which devices there are, and what they can do. Nothing here needs a driver to be present.
#pragma once

#include <cstdint>
#include <string>

namespace wide {

enum class DeviceType : uint8_t { cpu, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  int ordinal = 0;
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

/// "cpu" or "cuda:0"
std::string to_string(const Device& device);

/// Facts of a device, read once when its Context is made. Plain data, so that strategy choice can
/// be tested for absent devices.
struct DeviceInfo {
  Device device;
  std::string name;                    ///< "NVIDIA H200", or the CPU's model name
  int compute_capability = 0;          ///< 90 for 9.0; 0 on the CPU
  int num_multiprocessors = 0;         ///< on the CPU: threads that the context uses
  int64_t last_level_cache_bytes = 0;  ///< L2 on CUDA, L3 on the CPU; 0 where unknown
  int64_t memory_bytes = 0;            ///< total
  int64_t shared_bytes_per_block = 0;  ///< after opting in; 0 on the CPU
  int64_t shared_bytes_per_multiprocessor = 0;
  int driver_version = 0;  ///< CUDA driver API version, 13000 for 13.0
  int runtime_version = 0;
};

/// The CUDA runtime's answer when asked for devices.
struct CudaAvailability {
  int num_devices = 0;
  std::string reason;  ///< empty where num_devices > 0, else why there is none
};

/// Never throws and leaves no error behind: a build without CUDA, a missing or too old driver and
/// an empty CUDA_VISIBLE_DEVICES are reported in the result.
CudaAvailability query_cuda();

}  // namespace wide
