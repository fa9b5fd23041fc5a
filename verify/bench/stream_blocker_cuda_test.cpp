// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A blocked stream waits for the host, and not for ever; what a sample of a graph replays, what a
// captured call is said to launch, and by what a ceiling is measured.
#include "bench/timer/stream_blocker.hpp"

#include <catch2/catch_test_macros.hpp>

#include "bench/machine/calibrate.hpp"
#include "bench/timer/device_timing.hpp"
#include "bench/timer/empty_kernel.hpp"
#include "bench/timer/held_stream.hpp"
#include "bench/timer/sampler.hpp"
#include "host/core/cuda_check.hpp"
#include "verify/support/devices.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

TEST_CASE("a blocked stream that nobody releases ends by itself, and says so") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  const OwnedStream stream(context);
  StreamBlocker blocker(context, stream.get(), 1e-6);
  blocker.unblock();
  blocker.require_in_time();
  blocker.block();
  context.synchronize(stream.get());  // nobody has released it
  CHECK_THROWS_AS(blocker.require_in_time(), Error);
}

TEST_CASE("what a held stream is given begins when all of it is there") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  const OwnedStream stream(context);
  HeldStream held(context, stream.get(), 2);
  int64_t made = 0;
  const Call count = [&] {
    WIDE_CHECK_CUDA(cudaLaunchHostFunc(
        native(stream.get()), [](void* number) { ++*static_cast<int64_t*>(number); }, &made));
  };
  held.run([&] {
    count();
    count();
    if (!is_simulated()) CHECK(cudaStreamQuery(native(stream.get())) == cudaErrorNotReady);
  });
  CHECK(made == 2);  // it has waited
  CHECK_THROWS_AS(held.run([] { throw Error(ErrorCode::cuda, "planned"); }), Error);
  held.run(count);
  CHECK(made == 3);
}

TEST_CASE("a captured call knows its kernels") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  const OwnedStream stream(context);
  const auto native = static_cast<cudaStream_t>(stream.get().native());
  const Call twice = [&] {
    for (int i = 0; i < 2; ++i) WIDE_CHECK_CUDA(launch_empty_kernel(native));
  };
  const CallLaunches launches = launches_of(context, stream.get(), twice);
  CHECK(launches.count == 2);
  REQUIRE(launches.kernels.size() == 2);
  const KernelUse& kernel = launches.kernels[1];
  CHECK(kernel.name.find("empty_kernel") != std::string::npos);
  CHECK(kernel.grid == std::vector<int64_t>{1, 1, 1});
  CHECK(kernel.block == std::vector<int64_t>{1, 1, 1});
  CHECK(kernel.blocks_per_sm >= 16);
  CHECK(kernel.occupancy_pct > 0);
  CHECK(kernel.occupancy_pct <= 100);
  const Call many = [&] {
    for (int64_t i = 0; i <= kMaxKernelsListed; ++i) WIDE_CHECK_CUDA(launch_empty_kernel(native));
  };
  const CallLaunches counted = launches_of(context, stream.get(), many);
  CHECK(counted.count == kMaxKernelsListed + 1);
  CHECK(counted.kernels.empty());
}

TEST_CASE("a graph's sample is a replay behind another one") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  const OwnedStream stream(context);
  int64_t made = 0;
  const Call count = [&] {
    WIDE_CHECK_CUDA(cudaLaunchHostFunc(
        native(stream.get()), [](void* number) { ++*static_cast<int64_t*>(number); }, &made));
  };
  const auto replays = [&](Sampler& sampler) {
    made = 0;
    (void)sampler.sample_ns();
    return static_cast<double>(made) / static_cast<double>(sampler.iters_per_sample());
  };
  CHECK(replays(*make_graph_sampler(context, stream.get(), count, 0)) == 2);
  CHECK(replays(*make_cold_sampler(context, stream.get(), {count, count},
                                   {Cache::rotate, 2, 4096, 4096}, 0, 1)) == 2);
}

TEST_CASE("a ceiling is of graphs, and of the stream where a call cannot be captured") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  const OwnedStream stream(context);
  int64_t captured = 0, launched = 0;
  bool refuses = false;
  const Call call = [&] {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    WIDE_CHECK_CUDA(cudaStreamIsCapturing(native(stream.get()), &status));
    ++(status == cudaStreamCaptureStatusNone ? launched : captured);
    if (refuses && status != cudaStreamCaptureStatusNone)
      throw Error(ErrorCode::unsupported, "planned");
    WIDE_CHECK_CUDA(launch_empty_kernel(native(stream.get())));
  };
  CHECK(best_captured_ns(context, stream.get(), call) > 0);
  CHECK((launched == 1 && captured > 0));
  refuses = true;
  captured = launched = 0;
  CHECK(best_captured_ns(context, stream.get(), call) > 0);
  CHECK((captured == 1 && launched > 10));
}

}  // namespace
}  // namespace wide::bench
