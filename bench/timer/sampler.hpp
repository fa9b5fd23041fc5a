// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A call made ready for timing in one regime. Everything that costs time once (choosing how many
// calls make a sample, capturing a graph, creating events) happens when a sampler is made; a sample
// is nothing but the calls between two time stamps.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "wide/catalog.hpp"
#include "wide/context.hpp"

namespace wide::bench {

/// Enqueues one call on the stream it was made for.
using Call = std::function<void()>;

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Time of one call in nanoseconds: of `iters_per_sample` calls, divided by their number.
  virtual double sample_ns() = 0;
  virtual int64_t iters_per_sample() const = 0;
  /// Wall clock seconds that a sample will take, as seen when the sampler was made.
  virtual double expected_sample_s() const = 0;
  virtual std::string_view timer() const = 0;  ///< "host", "event" or "graph"
};

/// Makes the context's device the calling thread's current one while it lives, as events and
/// launches need it; nothing on the CPU.
class ActiveDevice {
 public:
  explicit ActiveDevice(const Context& context);
  ~ActiveDevice();
  ActiveDevice(const ActiveDevice&) = delete;

 private:
  int previous_ = -1;  ///< none to return to
};

/// Wall clock around calls that are finished when they return.
std::unique_ptr<Sampler> make_host_sampler(const Call& call);

/// CUDA events around calls that the host launches on `stream`: launch cost included. No host
/// synchronisation lies between the events.
std::unique_ptr<Sampler> make_stream_sampler(const Context& context, Stream stream,
                                             const Call& call);

/// Replay of a graph that holds K captured calls, K such that a replay lasts 200 us and 1000 times
/// `timer_quantum_ns`. Throws what the capture throws.
std::unique_ptr<Sampler> make_graph_sampler(const Context& context, Stream stream, const Call& call,
                                            double timer_quantum_ns);

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
