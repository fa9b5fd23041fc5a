// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A skip is reported with the runtime's own reason; it never counts as a pass.
#include "verify/support/devices.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

namespace wide::test {

namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string(value) == "1";
}

/// Nothing to run on is no pass where a GPU is required, be it a simulated one.
void require_required(const std::string& reason) {
  for (const char* name : {"WIDE_REQUIRE_GPU", "WIDE_REQUIRE_SIMULATION"}) {
    if (is_set(name)) FAIL(name << "=1, but " << reason);
  }
}

}  // namespace

std::vector<Context> devices_at_hand() {
  std::vector<Context> devices;
  // The same program runs without a simulation, too, and there is one CPU.
  if (!is_set("WIDE_REQUIRE_SIMULATION")) {
    devices.push_back(Context::cpu({.num_threads = 2, .allocator = {}}));
  }
  const CudaAvailability cuda = query_cuda();
  if (cuda.num_devices > 0) {
    devices.push_back(Context::cuda(0));
  } else {
    require_required(cuda.reason);
  }
  return devices;
}

Context require_cuda() {
  const CudaAvailability cuda = query_cuda();
  if (cuda.num_devices == 0) {
    require_required(cuda.reason);
    SKIP("no CUDA device: " << cuda.reason);
  }
  return Context::cuda(0);
}

bool wants_small_cases() {
  return is_set("WIDE_TEST_SMALL");
}

}  // namespace wide::test
