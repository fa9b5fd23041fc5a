// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategies prefetch their weights into L2 before they wait for the kernel before, and how
// much of them: what the first loads ask for, of blocks that may be there by then.
#include <catch2/catch_test_macros.hpp>

#include "bench/cli/simulation.hpp"
#include "verify/support/session.hpp"
#include "verify/support/simulation.hpp"
#include "verify/support/traffic.hpp"
#include "wide/catalog.hpp"

namespace wide::test {
namespace {

using Axes = std::vector<std::pair<std::string, catalog::AxisValue>>;

int64_t prefetched_bytes(const char* op, const char* strategy, const Axes& axes,
                         int64_t misalign_elements = 0) {
  static Session session(Context::cuda(0));
  const catalog::PrimitiveSpec& spec = catalog::find_primitive(op);
  catalog::WorkloadOptions options;
  options.misalign_elements = misalign_elements;
  const auto workload =
      spec.make_workload(session.context(), catalog::make_case(spec, axes), options);
  INFO(op << " " << strategy);
  const std::string name = strategy;
  REQUIRE(workload->unsupported_reason(name.substr(0, name.find(':'))) == "");
  int64_t bytes = 0;
  for (const bench::LaunchCounters& launch : launches_of(session, *workload, strategy)) {
    bytes += bench::value_of(launch.values, "bulk_prefetch_bytes");
  }
  return bytes;
}

Axes linear_axes(int64_t n, int64_t batch, int64_t in, int64_t out, const char* dtype = "bf16") {
  return {{"n", n}, {"batch", batch}, {"in", in}, {"out", out}, {"dtype", std::string(dtype)}};
}

TEST_CASE("wgmma prefetches its ring's first round, across tiles") {
  require_simulation();
  // 140 tiles of two stages, for 132 blocks of eight: all of the weights.
  CHECK(prefetched_bytes("linear", "wgmma:m64n128", linear_axes(140, 8, 128, 128)) ==
        140 * 128 * 128 * 2);
  // Three tiles of ten stages; blocks have one each.
  CHECK(prefetched_bytes("linear", "wgmma:m64n128", linear_axes(3, 8, 640, 128)) ==
        3 * 128 * 8 * 128);
}

}  // namespace
}  // namespace wide::test
