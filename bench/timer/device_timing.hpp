// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Events and captured graphs, the building blocks of all GPU samplers. For CUDA-only files.
#pragma once

#include <cstdint>

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

  /// Puts the work of `enqueue` between the events without waiting.
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

/// Captures what `call` enqueues on `stream`, `iters` times. Throws what the capture throws, and
/// leaves the stream as it was.
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

/// Time of a replay that follows an untimed one, during which the host launches it. On an idle
/// stream the first event would be stamped at once, and the time would include that launch (us).
double replay_ns(EventPair& events, const CapturedGraph& graph);
inline constexpr int64_t kReplays = 2;  ///< made by replay_ns()

/// Time of one of a few captured calls, used to choose how many make a sample.
double few_captured_ns(EventPair& events, Stream stream, const Call& call);

/// The number of calls that last `sample_ns` together; not more than a queue or a graph holds well.
int64_t iters_for(double once_ns, double sample_ns);

/// Host seconds per sample of a new sampler: measured on the second one, as the first includes
/// late loading and uploading.
double wall_seconds(Sampler& sampler);

}  // namespace wide::bench
