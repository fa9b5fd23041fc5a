// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A build without CUDA has no CUDA context, so none of this can be reached.
#include "bench/self_check/run.hpp"

namespace wide::bench {

void check_cuda_timing(SelfChecks&, const Context&, const Calibration&) {}
void check_blocker_time_out(SelfChecks&, const Context&, double) {}
std::function<void()> cuda_load(const Context&) {
  return [] {};
}

}  // namespace wide::bench
