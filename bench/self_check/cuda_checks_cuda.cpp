// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "bench/machine/calibrate.hpp"
#include "bench/machine/peaks.hpp"
#include "bench/self_check/chase.hpp"
#include "bench/self_check/run.hpp"
#include "bench/statistics/order.hpp"
#include "bench/timer/device_timing.hpp"
#include "bench/timer/empty_kernel.hpp"
#include "bench/timer/flush.hpp"
#include "bench/timer/stream_blocker.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

double median_of(Sampler& sampler, int samples) {
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) times.push_back(sampler.sample_ns());
  return median(times);
}

ColdRule rule_of(const Context& context, Cache cache, int64_t footprint_bytes) {
  return {cache, 2, context.info().last_level_cache_bytes, footprint_bytes};
}

/// Compares graphs of 128 and of 1024 launches.
double graph_growth(Stream stream) {
  constexpr int64_t kFew = 128, kMany = 1024;
  EventPair events(stream);
  const auto time_ns = [&](int64_t launches) {
    const CapturedGraph graph(
        stream, [&] { WIDE_CHECK_CUDA(launch_empty_kernel(native(stream))); }, launches);
    graph.launch();
    std::vector<double> times;
    for (int i = 0; i < 20; ++i) times.push_back(events.time_ns([&] { graph.launch(); }));
    return median(times);
  };
  return growth(time_ns(kFew), kFew, time_ns(kMany), kMany);
}

/// Compares one replay with the increment from one to two. About as long as a sample, so that the
/// host's share is no smaller.
double replay_disagreement_pct(Stream stream) {
  constexpr int64_t kLaunches = 256;
  EventPair events(stream);
  const CapturedGraph graph(
      stream, [&] { WIDE_CHECK_CUDA(launch_empty_kernel(native(stream))); }, kLaunches);
  std::vector<double> one, two;
  for (int i = 0; i < 50; ++i) {
    one.push_back(replay_ns(events, graph));
    graph.launch();
    two.push_back(events.time_ns([&] {
      graph.launch();
      graph.launch();
    }));
  }
  return disagreement_pct(median(two) - median(one), median(one));
}

struct Hold {
  double event_ns = 0, host_ns = 0;
  bool ended_early = false;
};

/// Blocks a stream for 100 ms, measured by the device's clock and by the host's.
Hold hold_stream(const Context& context, Stream stream) {
  StreamBlocker blocker(context, stream);
  EventPair events(stream);
  blocker.block();  // its first launch may load it
  blocker.unblock();
  context.synchronize(stream);
  Hold hold;
  const auto start = Clock::now();
  events.enclose([&] { blocker.block(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  hold.ended_early = cudaStreamQuery(native(stream)) != cudaErrorNotReady;
  hold.host_ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  blocker.unblock();
  hold.event_ns = events.elapsed_ns();
  blocker.require_in_time();
  return hold;
}

/// A random cycle through all lines of several copies of a buffer; each call follows one copy, an
/// eighth of it by each of eight chasers: one alone would take seconds for copies that fill an L2.
class Chase {
 public:
  Chase(const Context& context, Stream stream, int64_t copies)
      : stream_(stream), ends_(context, Dtype::int32, {kChasers}) {
    std::vector<uint32_t> order(kLines), words(kLines * kChaseStep / 4);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (uint32_t i = 0; i < kChasers; ++i)  // each begins where another one ends
      std::iter_swap(order.begin() + i * kSteps, std::find(order.begin(), order.end(), i));
    for (size_t i = 0; i < order.size(); ++i)
      words[order[i] * kChaseStep / 4] = order[(i + 1) % order.size()];
    const ConstTensorView links(words.data(), Dtype::int32, {kBytes / 4}, Device{});
    for (int64_t i = 0; i < copies; ++i) {
      buffers_.emplace_back(context, Dtype::int32, Shape{kBytes / 4});
      copy(links, buffers_.back(), stream);
    }
    context.synchronize(stream);
  }
  std::vector<Call> calls() {
    std::vector<Call> calls;
    for (const Tensor& buffer : buffers_) {
      calls.emplace_back([this, links = buffer.data()] {
        WIDE_CHECK_CUDA(launch_chase(links, kSteps, kChasers, static_cast<uint32_t*>(ends_.data()),
                                     native(stream_)));
      });
    }
    return calls;
  }
  /// Small enough to stay in an L2, and large enough that few copies fill it.
  static constexpr int64_t kBytes = 1 << 20, kLines = kBytes / kChaseStep;
  static constexpr int kChasers = 8;
  static constexpr int64_t kSteps = kLines / kChasers;

 private:
  Stream stream_;
  Tensor ends_;
  std::vector<Tensor> buffers_;
};

/// The ratio of a cold chase to a warm one. Behind a flush there are too few copies to evict one
/// another, so that the flush alone makes them cold.
double cold_over_warm(const Context& context, Stream stream, Cache cache) {
  const ColdRule rule = rule_of(context, cache, Chase::kBytes);
  Chase chase(context, stream, cache == Cache::flush ? 2 : copies_of(rule));
  const std::vector<Call> calls = chase.calls();
  const double warm = median_of(*make_stream_sampler(context, stream, calls.front()), 20);
  const double cold = median_of(*make_cold_sampler(context, stream, calls, rule, 0, 1),
                                cache == Cache::flush ? 20 : 3);
  return cold / warm;
}

/// The time to read as much as the L2 holds after a memset of twice that, over the one after a
/// flush: what is left to be written back costs the call that comes next.
double dirty_over_clean(const Context& context, Stream stream) {
  const ColdRule rule = rule_of(context, Cache::flush, 0);
  Tensor data(context, Dtype::int32, {rule.l2_bytes / 16 * 4}), found(context, Dtype::int32, {1});
  Tensor written(context, Dtype::uint8, {static_cast<int64_t>(rule.covered_bytes())});
  fill_bytes(data, 0, stream);
  const Call read = [&] {
    WIDE_CHECK_CUDA(launch_read(data.data(), data.bytes(), static_cast<uint32_t*>(found.data()),
                                native(stream)));
  };
  const double clean = median_of(*make_cold_sampler(context, stream, {read}, rule, 0, 1), 20);
  EventPair events(stream);
  std::vector<double> dirty;
  for (uint8_t i = 0; i < 20; ++i) {
    fill_bytes(written, i, stream);  // takes longer than to enqueue what follows
    dirty.push_back(events.time_ns(read));
  }
  return median(dirty) / clean;
}

}  // namespace

void check_cuda_timing(SelfChecks& checks, const Context& context, const Calibration& c) {
  const OwnedStream owned(context);
  const Stream stream = owned.get();
  checks.measure("l2_size", [&] {
    return static_cast<double>(context.info().last_level_cache_bytes) / (1 << 20);
  });
  const Peaks peaks = peaks_of(hardware_of(context), Dtype::bf16);
  checks.measure("memory_ceiling",
                 [&] { return 100 * c.mem_bw_bytes_per_s / peaks.mem_bw_bytes_per_s; });
  checks.measure("product_ceiling",
                 [&] { return 100 * flops_rate(c, Dtype::bf16, false) / peaks.flops_per_s; });
  checks.measure("event_quantum", [&] { return c.timer_quantum_ns; });
  checks.measure("event_floor", [&] { return c.timer_floor_ns; });
  checks.measure("empty_kernel", [&] { return c.empty_launch_ns; });
  checks.measure("host_launch", [&] { return c.host_launch_ns; });
  checks.measure("graph_launch", [&] { return c.graph_launch_ns; });
  checks.measure("graph_growth", [&] { return graph_growth(stream); });
  checks.measure("graph_replay", [&] { return replay_disagreement_pct(stream); });
  Hold hold;
  checks.measure("event_clock", [&] {
    hold = hold_stream(context, stream);
    return disagreement_pct(hold.event_ns, hold.host_ns);
  });
  if (hold.event_ns > 0) {
    checks.measure("blocker_holds", [&] { return hold.ended_early ? 1.0 : 0.0; });
  } else {
    checks.skip("blocker_holds", "no stream could be held: see event_clock");
  }
  checks.measure("cold_flush", [&] { return cold_over_warm(context, stream, Cache::flush); });
  checks.measure("cold_dirty", [&] { return dirty_over_clean(context, stream); });
  checks.measure("cold_rotate", [&] { return cold_over_warm(context, stream, Cache::rotate); });
}

void check_blocker_time_out(SelfChecks& checks, const Context& context, double timeout_s) {
  checks.measure("blocker_times_out", [&] {
    const OwnedStream stream(context);
    StreamBlocker blocker(context, stream.get(), timeout_s);
    blocker.block();
    context.synchronize(stream.get());  // not released
    try {
      blocker.require_in_time();
    } catch (const Error&) {
      return 1.0;
    }
    return 0.0;
  });
}

std::function<void()> cuda_load(const Context& context) {
  // A copy of 256 MiB takes a tenth of a millisecond at the best known rate.
  struct Load {
    explicit Load(const Context& c)
        : context(c),
          stream(c),
          source(c, Dtype::fp8_e4m3, {1 << 28}),
          destination(c, Dtype::fp8_e4m3, {1 << 28}) {}
    Context context;
    OwnedStream stream;
    Tensor source, destination;
  };
  return [load = std::make_shared<Load>(context)] {
    for (int i = 0; i < 8; ++i) copy(load->source, load->destination, load->stream.get());
    load->context.synchronize(load->stream.get());
  };
}

}  // namespace wide::bench
