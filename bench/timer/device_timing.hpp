// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Events and captured graphs, which all samplers of a GPU are made of. For CUDA-only files.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "bench/timer/sampler.hpp"
#include "host/core/capture_cuda.hpp"
#include "host/core/cuda_check.hpp"

namespace wide::bench {

inline cudaStream_t native(Stream stream) {
  return static_cast<cudaStream_t>(stream.native());
}

class EventPair {
 public:
  explicit EventPair(Stream stream) : stream_(native(stream)) {
    WIDE_CHECK_CUDA(cudaEventCreate(&start_));
    WIDE_CHECK_CUDA(cudaEventCreate(&stop_));
  }
  ~EventPair() {
    (void)cudaEventDestroy(start_);
    (void)cudaEventDestroy(stop_);
  }
  EventPair(const EventPair&) = delete;

  /// Puts the work of `enqueue` between the events; nothing waits.
  template <class F>
  void enclose(const F& enqueue) {
    WIDE_CHECK_CUDA(cudaEventRecord(start_, stream_));
    enqueue();
    WIDE_CHECK_CUDA(cudaEventRecord(stop_, stream_));
  }
  /// Waits for the second event.
  double elapsed_ns() const {
    WIDE_CHECK_CUDA(cudaEventSynchronize(stop_));
    float ms = 0;
    WIDE_CHECK_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
    return static_cast<double>(ms) * 1e6;
  }
  template <class F>
  double time_ns(const F& enqueue) {
    enclose(enqueue);
    return elapsed_ns();
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

template <class Handle>
using Owned = OwnedGraph<Handle>;

/// What `call` enqueues on `stream`, `iters` times over. Throws what the capture throws, and leaves
/// the stream as it was.
Owned<cudaGraph_t> capture(Stream stream, const Call& call, int64_t iters);

/// An instantiated graph of `iters` captured calls.
class CapturedGraph {
 public:
  CapturedGraph(Stream stream, const Call& call, int64_t iters);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  void launch() const { WIDE_CHECK_CUDA(cudaGraphLaunch(exec_.get(), stream_)); }

 private:
  cudaStream_t stream_;
  Owned<cudaGraphExec_t> exec_;
};

/// Time of a replay behind one that is not timed, during which the host launches it. An idle stream
/// would stamp the first event at once, and the launch, several microseconds, would be in the time.
double replay_ns(EventPair& events, const CapturedGraph& graph);
inline constexpr int64_t kReplays = 2;  ///< of replay_ns()

/// Time of one of a few captured calls: how many make a sample is chosen by it.
double few_captured_ns(EventPair& events, Stream stream, const Call& call);

/// Calls that last `sample_ns` together; not more than a queue or a graph holds well.
int64_t iters_for(double once_ns, double sample_ns);

/// Seconds that a sample of a new sampler takes the host: of the second one, as the first pays for
/// what is loaded and uploaded late.
double wall_seconds(Sampler& sampler);

}  // namespace wide::bench
