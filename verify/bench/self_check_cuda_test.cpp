// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of a GPU on one: on the simulated GPU those that need no time, on a device all.
#include <catch2/catch_test_macros.hpp>

#include "bench/process/simulation.hpp"
#include "bench/self_check/chase.hpp"
#include "bench/self_check/report.hpp"
#include "bench/self_check/run.hpp"
#include "bench/timer/flush.hpp"
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

TEST_CASE("a flush reads every word, and writes nothing") {
  const Context context = test::require_cuda();
  const OwnedStream stream(context);
  constexpr int64_t kWords = 4 * 256 * 3 + 4;  // more than a block each, and a part of one
  const auto found_in = [&](int64_t at) {
    std::vector<int32_t> words(kWords);
    if (at >= 0) words[static_cast<size_t>(at)] = 5;
    Tensor data(context, Dtype::int32, {kWords}), found(context, Dtype::int32, {1});
    copy(ConstTensorView(words.data(), Dtype::int32, {kWords}, Device{}), data, stream.get());
    fill_bytes(found, 0x77, stream.get());
    WIDE_CHECK_CUDA(launch_read(data.data(), data.bytes(), static_cast<uint32_t*>(found.data()),
                                static_cast<cudaStream_t>(stream.get().native())));
    Tensor host(Context::cpu(), Dtype::int32, {1});
    copy(found, host, stream.get());
    context.synchronize(stream.get());
    return *static_cast<const int32_t*>(host.data());
  };
  CHECK(found_in(-1) == 0x77777777);
  for (const int64_t at : {0, 1, 2, 3, 1023, 1024, 3071, 3072, 3075}) CHECK(found_in(at) == 5);
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
