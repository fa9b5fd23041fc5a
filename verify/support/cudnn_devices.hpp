// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Devices in cuDNN's words, for plans that are made without one.
#pragma once

#include "host/cudnn/cudnn_plan.hpp"

namespace wide::test {

inline CudnnDevice cudnn_device(const char* name, int capability, int multiprocessors,
                                int shared_bytes, int l2_bytes) {
  return {0,
          std::string(R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)") +
              R"("regsPerBlock":65536,"warpSize":32,"maxSharedMemoryPerBlock":49152,)" +
              R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)" +
              R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,)" +
              R"("pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)" +
              R"("totalGlobalMem":85899345920,"smClockRateKHz":1500000,)" +
              R"("memClockRateKHz":2000000,"cudaDeviceId":0,"driverVer":13000,"deviceName":")" +
              name + "\",\"deviceVer\":" + std::to_string(10 * capability) +
              ",\"multiProcessorCount\":" + std::to_string(multiprocessors) +
              ",\"maxSharedMemoryPerBlockOptin\":" + std::to_string(shared_bytes) +
              ",\"l2CacheSize\":" + std::to_string(l2_bytes) + "}"};
}

inline const CudnnDevice kCudnnH200 = cudnn_device("NVIDIA H200", 90, 132, 232448, 62914560);
inline const CudnnDevice kCudnnA100 = cudnn_device("NVIDIA A100", 80, 108, 166912, 41943040);

/// Skips the test where there is no cuDNN to ask; else lets it compile engines at run time.
void require_cudnn_planning();

}  // namespace wide::test
