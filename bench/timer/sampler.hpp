// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A call prepared for timing in one regime. All one-time work (choosing how many
// calls make a sample, capturing a graph, creating events) is done when a sampler is made; a sample
// is only the calls between two time stamps.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/timer/cold.hpp"
#include "wide/catalog.hpp"
#include "wide/context.hpp"

namespace wide::bench {

/// Enqueues one call on the stream it was made for.
using Call = std::function<void()>;

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Time of one call in nanoseconds: that of `iters_per_sample` calls, divided by their number.
  virtual double sample_ns() = 0;
  virtual int64_t iters_per_sample() const = 0;
  /// The calls that sample_ns() runs, including untimed ones: a sample's energy is divided by it. 0
  /// if something else draws most of the energy, or that is unknown.
  virtual int64_t calls_run_per_sample() const { return iters_per_sample(); }
  /// What a reader of its times should know; usually empty.
  virtual std::string note() const { return ""; }
  /// Wall clock seconds that a sample will take, estimated when the sampler was made.
  virtual double expected_sample_s() const = 0;
  virtual std::string_view timer() const = 0;  ///< "host", "event" or "graph"
  /// Copies of the operands that calls take in turn.
  virtual int64_t buffers_rotated() const { return 1; }
};

/// Makes the context's device current in the calling thread during its lifetime, as events and
/// launches require; no effect on the CPU.
class ActiveDevice {
 public:
  explicit ActiveDevice(const Context& context);
  ~ActiveDevice();
  ActiveDevice(const ActiveDevice&) = delete;

 private:
  [[maybe_unused]] int previous_ = -1;  ///< none: nothing to restore; always so without CUDA
};

/// The context's device as stored in results.
RunDevice run_device(const Context& context);

/// "0000:3b:00.0", as NVML knows the context's device; empty on the CPU.
std::string pci_bus_id(const Context& context);

/// Between cudaProfilerStart and cudaProfilerStop during its lifetime; no effect on the CPU.
class ProfilerRange {
 public:
  explicit ProfilerRange(const Context& context);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;

 private:
  [[maybe_unused]] bool is_cuda_;
};

/// Wall clock around synchronous calls.
std::unique_ptr<Sampler> make_host_sampler(const Call& call);

/// CUDA events around calls that the host launches on `stream`: launch cost included. The host does
/// not synchronise between the events.
std::unique_ptr<Sampler> make_stream_sampler(const Context& context, Stream stream,
                                             const Call& call);

/// The minimum duration of a sample of warm calls, ours and a peer's. By events: long compared with
/// their resolution (documented as 0.5 us) and short enough for many samples.
inline constexpr double kMinSampleNs = 200'000;
/// Events around calls on an idle stream contain the first one's launch, some microseconds: less
/// than half a percent of this, however many calls a sample takes.
inline constexpr double kMinStreamSampleNs = 1e6;
/// By the host's clock: reading it costs tens of nanoseconds, below 0.1 % of a sample.
inline constexpr double kMinHostSampleNs = 100'000;
/// For a graph, also 1000 steps of the event clock.
inline double graph_sample_ns(double timer_quantum_ns) {
  return std::max(kMinSampleNs, 1000 * timer_quantum_ns);
}

/// Time of one captured call from graphs of few and of more calls, so short that both times include
/// the host's launch. Never 0 despite noise: at most nine tenths of the time may be the launch.
inline double captured_call_ns(double few_ns, int64_t few, double more_ns, int64_t more) {
  const double each_ns = (more_ns - few_ns) / static_cast<double>(more - few);
  return std::max(each_ns, 0.1 * few_ns / static_cast<double>(few));
}

/// Replay of a graph that holds K captured calls, K such that a replay lasts 200 us and 1000 times
/// `timer_quantum_ns`, or 1024. An untimed replay precedes it, so that the time does not include
/// the host's launch. Throws what the capture throws.
std::unique_ptr<Sampler> make_graph_sampler(const Context& context, Stream stream, const Call& call,
                                            double timer_quantum_ns);

/// Cold calls, one of `calls` for each copy of the operands: behind a flush, a single one or a
/// graph of calls on different copies; without, a graph of calls that take copies in turn. What
/// follows a flush is enqueued while the stream is blocked; a single call with more `launches` than
/// may wait there is captured, too. Throws what the capture throws, and unsupported if copies that
/// are not behind a flush do not cover the L2.
std::unique_ptr<Sampler> make_cold_sampler(const Context& context, Stream stream,
                                           const std::vector<Call>& calls, const ColdRule& rule,
                                           double timer_quantum_ns, int64_t launches);

/// Captures a call in a CUDA graph; returns a call that replays it.
Call captured_call(const Context& context, Stream stream, const Call& call);

/// Host time to enqueue a call with this many launches, on a stream that is blocked meanwhile
/// unless there are too many.
std::unique_ptr<Sampler> make_enqueue_sampler(const Context& context, Stream stream,
                                              const Call& call, int64_t launches);

/// The device's time to flush the L2.
double flush_ns(const Context& context, Stream stream, const ColdRule& rule);

/// What a call launches. Kernels are listed if they are few and the runtime knows them all.
struct CallLaunches {
  int64_t count = 0;
  std::vector<KernelUse> kernels;
};
inline constexpr int64_t kMaxKernelsListed = 16;
/// Captures one call. Throws what the capture throws.
CallLaunches launches_of(const Context& context, Stream stream, const Call& call);

/// One baseline call over several streams: forks from `main`, hands members to lanes in turn,
/// joins. Each lane has its own stream, workspace and vendor handles.
class StreamLanes {
 public:
  StreamLanes(const Context& context, Stream main, int64_t num_lanes, int64_t workspace_bytes);
  ~StreamLanes();
  StreamLanes(const StreamLanes&) = delete;
  void run(const catalog::PreparedMembers& members, int64_t num_members) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wide::bench
