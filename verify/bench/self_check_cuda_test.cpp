// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of a GPU on one: on the simulated GPU those that need no time, on a device all.
#include <catch2/catch_test_macros.hpp>

#include "bench/cli/simulation.hpp"
#include "bench/self_check/chase.hpp"
#include "bench/self_check/report.hpp"
#include "bench/self_check/run.hpp"
#include "host/core/cuda_check.hpp"
#include "verify/support/devices.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {
namespace {

TEST_CASE("a chase follows the links, each a line further") {
  const Context context = test::require_cuda();
  const OwnedStream stream(context);
  constexpr int64_t kLines = 5, kWords = kChaseStep / 4;
  std::vector<int32_t> words(kLines * kWords, 99);
  constexpr int32_t kNext[] = {3, 4, 0, 1, 2};
  for (int64_t i = 0; i < kLines; ++i) words[static_cast<size_t>(i * kWords)] = kNext[i];
  Tensor links(context, Dtype::int32, {kLines * kWords}), ends(context, Dtype::int32, {2});
  copy(ConstTensorView(words.data(), Dtype::int32, links.shape(), Device{}), links, stream.get());
  const auto places_after = [&](int64_t steps) {
    WIDE_CHECK_CUDA(launch_chase(links.data(), steps, 2, static_cast<uint32_t*>(ends.data()),
                                 static_cast<cudaStream_t>(stream.get().native())));
    Tensor host(Context::cpu(), Dtype::int32, {2});
    copy(ends, host, stream.get());
    context.synchronize(stream.get());
    const auto* found = static_cast<const int32_t*>(host.data());
    return std::pair(found[0], found[1]);
  };
  CHECK(places_after(1) == std::pair(3, 4));
  CHECK(places_after(3) == std::pair(4, 0));
  CHECK(places_after(5) == std::pair(0, 1));
}

TEST_CASE("a stream that nobody releases is noticed, and without times nothing else is checked") {
  const Context context = test::require_cuda();
  if (!is_simulated()) {  // `wbench info --self-check` takes its time there
    SelfChecks checks(context.device());
    check_blocker_time_out(checks, context, 0.02);
    CHECK_FALSE(has_failed(checks.in_order()));
    return;
  }
  const std::vector<SelfCheck> checks = check_device(context);
  CHECK(checks.size() == skip_cuda("").size());
  for (const SelfCheck& check : checks) {
    INFO(check.name << ": " << check.text);
    CHECK(check.status ==
          (check.name == "blocker_times_out" ? CheckStatus::passed : CheckStatus::skipped));
  }
}

}  // namespace
}  // namespace wide::bench
