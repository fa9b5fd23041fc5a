// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The devices that tests run on: the CPU always, CUDA where there is one. Without one, GPU tests
// are skipped and say why; with WIDE_REQUIRE_GPU=1 that is a failure.
#pragma once

#include <vector>

#include "wide/context.hpp"

namespace wide::test {

/// Contexts of the CPU (two threads, so that threading is exercised) and of CUDA device 0.
std::vector<Context> devices_at_hand();

/// Skips the test case that calls it, or fails it under WIDE_REQUIRE_GPU=1, where there is no
/// device.
Context require_cuda();

/// WIDE_TEST_SMALL=1: the device is simulated, and large cases would take hours.
bool wants_small_cases();

}  // namespace wide::test
