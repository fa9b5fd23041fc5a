// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An engine's own call that failed leaves its error in the runtime until somebody asks. That is
// none of ours: no launch of ours may be taken for it.
#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>

#include "verify/catalog/fault_scenarios.hpp"
#include "verify/support/simulation.hpp"

namespace wide::test {

TEST_CASE("an error that the caller left behind is not a launch's") {
  require_simulation();
  for (const Scenario& scenario : scenarios()) {
    INFO(scenario.name);
    const Bytes expected = scenario.run();
    REQUIRE(cudaSetDevice(1 << 20) != cudaSuccess);
    REQUIRE(cudaPeekAtLastError() != cudaSuccess);
    Bytes result;
    CHECK_NOTHROW(result = scenario.run());
    CHECK(result == expected);
    (void)cudaGetLastError();
  }
}

}  // namespace wide::test
