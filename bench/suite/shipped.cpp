// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/suite/suite.hpp"

namespace wide::bench {

std::vector<ShippedSuite> shipped_suites() {
  return {
#include "wide_shipped_suites.inc"
  };
}

}  // namespace wide::bench
