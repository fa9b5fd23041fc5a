// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the device says it is: an H200 or an A100, in the numbers that code asks for.
#pragma once

namespace wide::simcuda {

struct DeviceModel {
  const char* name;
  int major, minor;
  int multiprocessors;
  int threads_of_multiprocessor, blocks_of_multiprocessor;
  int shared_bytes_opt_in;  ///< of a block
  int shared_bytes_of_multiprocessor;
  int l2_bytes;
  int clock_khz, memory_clock_khz, memory_bus_bits;
};

constexpr int kMaxPitch = 0x7fffffff;  ///< bytes from row to row of a copy or fill

/// "simulated sm_90a" (90), "simulated sm_80" (80), and with 99 KiB of shared memory for a block
/// "simulated sm_89" (89) and "simulated sm_120" (120), which run PTX for 8.0.
const DeviceModel& device_model(int architecture);

}  // namespace wide::simcuda
