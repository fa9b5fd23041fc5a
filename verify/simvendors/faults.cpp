// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simvendors/faults.hpp"

#include <atomic>
#include <cstdint>

namespace wide::simvendors {

namespace {

struct Faults {
  std::atomic<int64_t> calls_left{0};  ///< until the one that fails; 0: none does
  std::atomic<const char*> failed{""};
};

Faults& faults() {
  static Faults all;
  return all;
}

}  // namespace

bool fails(const char* call) {
  Faults& f = faults();
  if (f.calls_left.load() <= 0 || f.calls_left.fetch_sub(1) != 1) return false;
  f.failed = call;
  return true;
}

}  // namespace wide::simvendors

extern "C" {

/// The k-th call of cuBLAS's or cuDNN's from now on fails; 0: none does.
void wide_simvendors_fail_at(int64_t k) {
  wide::simvendors::faults().failed = "";
  wide::simvendors::faults().calls_left = k;
}
/// Its name; empty where there was none.
const char* wide_simvendors_failed_call() {
  return wide::simvendors::faults().failed;
}

}  // extern "C"
