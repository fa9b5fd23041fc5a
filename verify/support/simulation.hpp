// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated CUDA runtime's controls, looked up at run time: a test program is the same on a
// device, where there are none, and in the simulation.
#pragma once

#include <cstdint>
#include <string>

namespace wide::test {

/// Of the simulated runtime in front of this process. Every call but is_present() needs it.
class Simulation {
 public:
  static bool is_present();
  /// The k-th counted runtime call from now on fails with that cudaError_t; 0: none does.
  static void fail_at(int64_t k, int error, bool is_sticky);
  static int64_t num_calls();
  static std::string failed_call();
  /// As a new process finds the device: no memory, no sticky error.
  static void reset_device();
  static std::string findings();  ///< one a line; waits for all work
  static void clear_findings();
  static std::string leaks();  ///< live allocations, streams, events, graphs; one a line
};

/// Skips the test without the simulation.
void require_simulation();

}  // namespace wide::test
