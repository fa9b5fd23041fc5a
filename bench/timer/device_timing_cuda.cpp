// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/timer/device_timing.hpp"

#include <cuda_profiler_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/timer/seconds.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kMaxDeviceIters = 1024;  // queue depth of launches, and nodes of a graph per call

}  // namespace

ProfilerRange::ProfilerRange(const Context& context)
    : is_cuda_(context.device().type == DeviceType::cuda) {
  if (is_cuda_) WIDE_CHECK_CUDA(cudaProfilerStart());
}

ProfilerRange::~ProfilerRange() {
  if (is_cuda_) (void)cudaProfilerStop();
}

Owned<cudaGraph_t> capture(Stream stream, const Call& call, int64_t iters) {
  return capture_graph(native(stream), [&] {
    for (int64_t i = 0; i < iters; ++i) call();
  });
}

CapturedGraph::CapturedGraph(Stream stream, const Call& call, int64_t iters)
    : stream_(native(stream)) {
  const Owned<cudaGraph_t> graph = capture(stream, call, iters);
  exec_ = instantiate_graph(graph.get());
  WIDE_CHECK_CUDA(cudaGraphUpload(exec_.get(), stream_));
}

CapturedGraph::~CapturedGraph() {
  (void)cudaStreamSynchronize(stream_);
}

double replay_ns(EventPair& events, const CapturedGraph& graph) {
  graph.launch();
  return events.time_ns([&] { graph.launch(); });
}

double few_captured_ns(EventPair& events, Stream stream, const Call& call) {
  constexpr int64_t kFew = 4, kMore = 20;
  const double few_ns = replay_ns(events, CapturedGraph(stream, call, kFew));
  if (few_ns >= kMinSampleNs) return few_ns / kFew;
  // Too short to hide a launch, which both times include.
  const double more_ns = replay_ns(events, CapturedGraph(stream, call, kMore));
  return captured_call_ns(few_ns, kFew, more_ns, kMore);
}

int64_t iters_for(double once_ns, double sample_ns) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(sample_ns / std::max(once_ns, 1.0))), 1,
                             kMaxDeviceIters);
}

double wall_seconds(Sampler& sampler) {
  (void)sampler.sample_ns();
  const auto start = std::chrono::steady_clock::now();
  (void)sampler.sample_ns();
  return seconds_since(start);
}

}  // namespace wide::bench
