// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The samplers on their own: what they call and how often, what a capture replays, what a failed
// one leaves behind; the lanes of the baseline `streams`; the calibration.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cmath>
#include <set>
#include <stdexcept>
#include <thread>

#include "bench/machine/calibrate.hpp"
#include "bench/timer/sampler.hpp"
#include "verify/support/devices.hpp"
#include "wide/convert.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {
namespace {

using Catch::Approx;
using Clock = std::chrono::steady_clock;

TEST_CASE("the host sampler repeats short calls and times them as one") {
  int64_t calls = 0;
  const auto sampler = make_host_sampler([&] { ++calls; });
  CHECK(sampler->timer() == "host");
  CHECK(sampler->iters_per_sample() > 1000);
  calls = 0;
  const double time_ns = sampler->sample_ns();
  CHECK(calls == sampler->iters_per_sample());
  CHECK(time_ns > 0);
  CHECK(time_ns < 1000);
}

TEST_CASE("the host sampler makes a long call once") {
  int64_t calls = 0;
  const auto sampler = make_host_sampler([&] {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  CHECK(calls == 1);
  CHECK(sampler->iters_per_sample() == 1);
  CHECK(sampler->expected_sample_s() >= 0.005);
  CHECK(sampler->sample_ns() >= 5e6);
  CHECK(calls == 2);
}

TEST_CASE("the calibration of the CPU is quick and of this world") {
  const auto start = Clock::now();
  const Calibration c = calibrate(Context::cpu());
  CHECK(std::chrono::duration<double>(Clock::now() - start).count() < 2);
  CHECK(c.mem_bw_bytes_per_s > 1e8);
  CHECK(c.mem_bw_bytes_per_s < 1e13);
  REQUIRE(c.flops_per_s.size() == 3);
  CHECK(c.flops_per_s[0].first == "fp32");
  CHECK(c.flops_per_s[0].second > 1e9);  // per core 4 lanes x 2 flops x > 0.1 GHz
  CHECK(c.flops_per_s[0].second < 1e15);
  CHECK(c.empty_launch_ns > 0);
  CHECK(c.empty_launch_ns < 1e6);
  CHECK(c.timer_quantum_ns > 0);
  CHECK(c.timer_floor_ns >= c.timer_quantum_ns);
}

#if defined(__x86_64__) && !defined(__clang__)
/// A product of many factors, each of which waits for the one before.
[[gnu::optimize("O2")]] uint64_t power(uint64_t base, int64_t exponent) {
  uint64_t product = 1;
  for (int64_t i = 0; i < exponent; ++i) product *= base;
  return product;
}

double best_cycles_per_s() {
  constexpr int64_t kFactors = 1 << 20, kCyclesEach = 3;  // of all x86-64 processors since 2008
  double best = 0;
  for (uint64_t run = 1; run < 100; ++run) {
    const auto start = Clock::now();
    CHECK(power(2 * run + 1, kFactors) % 2 == 1);
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(kFactors * kCyclesEach) / taken);
  }
  return best;
}

TEST_CASE("the calibration of the CPU counts only what is computed") {
  // No processor multiplies and adds more than two vectors in a cycle.
  const double per_cycle = 2 * 2 * (__builtin_cpu_supports("avx512f") ? 16 : 8);
  const double before = best_cycles_per_s();
  const Calibration c = calibrate(Context::cpu({.num_threads = 1}));
  CHECK(c.flops_per_s[0].second < 1.25 * per_cycle * std::max(before, best_cycles_per_s()));
}
#endif

TEST_CASE("a floor is the larger of two parts plus a launch") {
  Calibration c;
  c.mem_bw_bytes_per_s = 1e9;
  c.flops_per_s = {{"fp32", 1e10}, {"fp16", 2e10}};
  c.empty_launch_ns = 7;
  const catalog::Cost cost{3000, 60, 40};
  CHECK(floor_of(c, cost, Dtype::fp32).total_ns() == Approx(307));  // flops: 300, bytes: 100
  CHECK(floor_of(c, cost, Dtype::fp16).total_ns() == Approx(157));
  CHECK(floor_of(c, cost, Dtype::int32).total_ns() == Approx(107));  // no flop ceiling: bytes alone
  CHECK(floor_of({}, cost, Dtype::fp32).total_ns() == 0);
  CHECK(floor_of(c, cost, Dtype::fp32, true).total_ns() == Approx(307));  // tf32: not measured
  c.flops_per_s.emplace_back(kTf32, 1.5e10);
  CHECK(floor_of(c, cost, Dtype::fp32, true).total_ns() == Approx(207));
  CHECK(floor_of(c, cost, Dtype::fp32).total_ns() == Approx(307));
  CHECK(floor_of(c, cost, Dtype::fp16, true).total_ns() == Approx(157));
}

TEST_CASE("copies and products are measured with random values, to the last element") {
  constexpr int64_t kPeriod = 1 << 20, kCount = 2 * kPeriod + 1000;
  const Context context = Context::cpu();
  Tensor tensor(context, Dtype::fp32, {kCount});
  fill_bytes(tensor, 0x5a, Stream::cpu());
  fill_uniform(context, tensor, 3, Stream::cpu());
  const std::vector<std::byte> once = uniform_operand(Dtype::fp32, kPeriod, 3);
  const auto* filled = static_cast<const float*>(tensor.data());
  int64_t different = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double expected = load_element(once.data(), Dtype::fp32, i % kPeriod);
    different += static_cast<double>(filled[i]) == expected ? 0 : 1;
  }
  CHECK(different == 0);
  CHECK(std::set<float>(filled, filled + 1000).size() > 900);
}

TEST_CASE("products are measured with values of [-1, 1], whatever the dtype") {
  constexpr int64_t kCount = 4096;
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8_e4m3}) {
    INFO(dtype_name(dtype));
    const std::vector<std::byte> values = uniform_operand(dtype, kCount, 1);
    double sum = 0, squares = 0, outside = 0;
    std::set<double> different;
    for (int64_t i = 0; i < kCount; ++i) {
      const double value = load_element(values.data(), dtype, i);
      outside += std::fabs(value) <= 1 ? 0 : 1;
      sum += value;
      squares += value * value;
      different.insert(value);
    }
    CHECK(outside == 0);
    CHECK(std::fabs(sum / kCount) < 0.05);
    CHECK(squares / kCount == Approx(1.0 / 3).epsilon(0.05));
    CHECK(different.size() > 60);  // fp8 has hardly more
    CHECK(values != uniform_operand(dtype, kCount, 2));
  }
}

TEST_CASE(
    "a ceiling is what a device does when its clock has risen, in a bounded number of samples") {
  struct MadeUp final : Sampler {
    double sample_ns() override {
      if (count++ == 0) start = Clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      return Clock::now() - start < std::chrono::milliseconds(150) ? 2000 : 1000;
    }
    int64_t iters_per_sample() const override { return 1; }
    double expected_sample_s() const override { return 1e-6; }
    std::string_view timer() const override { return "event"; }
    int64_t wait_ms = 0, count = 0;
    Clock::time_point start;
  } sampler;
  sampler.wait_ms = 5;
  CHECK(best_sample_ns(sampler) == 1000);
  sampler.wait_ms = sampler.count = 0;
  CHECK(best_sample_ns(sampler, 100) == 2000);
  CHECK(sampler.count == 100);
  sampler.wait_ms = 25;
  sampler.count = 0;
  (void)best_sample_ns(sampler);
  CHECK(sampler.count == 11);
}

TEST_CASE("a captured call's time is free of the graph's launch") {
  CHECK(captured_call_ns(6000 + 4 * 700, 4, 6000 + 20 * 700, 20) == Approx(700));
  CHECK(captured_call_ns(8000, 4, 7900, 20) == Approx(200));  // noise
}

/// One tensor of bytes on the device, and what it holds.
struct Bytes {
  Bytes(const Context& context_, int64_t count)
      : context(context_), stream(context_), tensor(context_, Dtype::int32, {count}) {}
  void fill(uint8_t byte) { fill_bytes(tensor, byte, stream.get()); }
  int32_t first() const {
    const Context cpu = Context::cpu();
    Tensor host(cpu, Dtype::int32, tensor.shape());
    copy(tensor, host, stream.get());
    context.synchronize(stream.get());
    return *static_cast<const int32_t*>(host.data());
  }
  Context context;
  OwnedStream stream;
  Tensor tensor;
};

TEST_CASE("the stream sampler launches calls between two events") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Bytes bytes(context, 1024);
  int64_t calls = 0;
  const auto sampler = make_stream_sampler(context, bytes.stream.get(), [&] {
    ++calls;
    bytes.fill(1);
  });
  CHECK(sampler->timer() == "event");
  calls = 0;
  CHECK(sampler->sample_ns() > 0);
  CHECK(calls == sampler->iters_per_sample());
  CHECK(bytes.first() == 0x01010101);
}

TEST_CASE("the graph sampler replays what it captured") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Bytes bytes(context, 1024);
  int64_t calls = 0;
  const auto sampler = make_graph_sampler(
      context, bytes.stream.get(),
      [&] {
        ++calls;
        bytes.fill(2);
      },
      32);
  CHECK(sampler->timer() == "graph");
  CHECK(sampler->iters_per_sample() >= 1);
  CHECK(sampler->calls_run_per_sample() == 2 * sampler->iters_per_sample());  // one is not timed
  bytes.fill(7);
  calls = 0;
  CHECK(sampler->sample_ns() > 0);
  CHECK(calls == 0);
  CHECK(bytes.first() == 0x02020202);
}

TEST_CASE("a capture that fails leaves the stream usable") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  Bytes bytes(context, 1024);
  const Stream stream = bytes.stream.get();
  CHECK_THROWS_AS(make_graph_sampler(
                      context, stream, [] { throw std::runtime_error("planned"); }, 32),
                  std::runtime_error);
  bytes.fill(3);
  CHECK(bytes.first() == 0x03030303);
  // Waiting for a stream that is being captured is forbidden.
  CHECK_THROWS(make_graph_sampler(
      context, stream, [&] { context.synchronize(stream); }, 32));
  bytes.fill(4);
  CHECK(bytes.first() == 0x04040404);
}

TEST_CASE("lanes fork from the timed stream and join it") {
  const Context context = test::require_cuda();
  const ActiveDevice active(context);
  const OwnedStream stream(context);
  constexpr int64_t kMembers = 5, kLanes = 3, kElements = 256;
  Tensor tensor(context, Dtype::int32, {kMembers, kElements});
  const StreamLanes lanes(context, stream.get(), kLanes, 512);
  std::set<void*> streams, workspaces;
  catalog::PreparedMembers members;
  members.run = [&](int64_t i, const Execution& execution) {
    streams.insert(execution.stream.native());
    workspaces.insert(execution.workspace.data);
    CHECK(execution.workspace.bytes >= 512);
    CHECK(execution.handles != nullptr);
    fill_bytes(tensor.view().narrow(0, i, 1), static_cast<uint8_t>(i + 1), execution.stream);
  };
  // Before and after on the main stream: only events can keep this in order.
  fill_bytes(tensor, 0x77, stream.get());
  lanes.run(members, kMembers);
  const Context cpu = Context::cpu();
  Tensor host(cpu, Dtype::int32, tensor.shape());
  copy(tensor, host, stream.get());
  context.synchronize(stream.get());
  for (int64_t i = 0; i < kMembers; ++i) {
    const int32_t got = static_cast<const int32_t*>(host.data())[(i + 1) * kElements - 1];
    CHECK(got == 0x01010101 * static_cast<int32_t>(i + 1));
  }
  CHECK(streams.size() == kLanes);
  CHECK(workspaces.size() == kLanes);
  CHECK_FALSE(streams.contains(stream.get().native()));
}

}  // namespace
}  // namespace wide::bench
