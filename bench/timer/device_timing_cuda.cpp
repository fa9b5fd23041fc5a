// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/timer/device_timing.hpp"

#include <cuda_profiler_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace wide::bench {

namespace {

constexpr int64_t kMaxIters = 1024;  // queue depth of launches, and nodes of a graph per call

}  // namespace

ProfilerRange::ProfilerRange(const Context& context)
    : is_cuda_(context.device().type == DeviceType::cuda) {
  if (is_cuda_) WIDE_CHECK_CUDA(cudaProfilerStart());
}

ProfilerRange::~ProfilerRange() {
  if (is_cuda_) (void)cudaProfilerStop();
}

Owned<cudaGraph_t> capture(Stream stream, const Call& call, int64_t iters) {
  WIDE_CHECK_CUDA(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    for (int64_t i = 0; i < iters; ++i) call();
  } catch (...) {
    // A stream left capturing would fail everything after.
    (void)cudaStreamEndCapture(native(stream), &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    throw;
  }
  WIDE_CHECK_CUDA(cudaStreamEndCapture(native(stream), &graph));
  return Owned<cudaGraph_t>(graph);
}

CapturedGraph::CapturedGraph(Stream stream, const Call& call, int64_t iters)
    : stream_(native(stream)) {
  const Owned<cudaGraph_t> graph = capture(stream, call, iters);
  cudaGraphExec_t exec = nullptr;
  WIDE_CHECK_CUDA(cudaGraphInstantiate(&exec, graph.get(), 0));
  exec_.reset(exec);
  WIDE_CHECK_CUDA(cudaGraphUpload(exec, stream_));
}

CapturedGraph::~CapturedGraph() {
  (void)cudaStreamSynchronize(stream_);
}

double few_captured_ns(EventPair& events, Stream stream, const Call& call) {
  constexpr int64_t kTries = 4;
  const CapturedGraph few(stream, call, kTries);
  few.launch();
  return events.time_ns([&] { few.launch(); }) / kTries;
}

int64_t iters_for(double once_ns, double sample_ns) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(sample_ns / std::max(once_ns, 1.0))), 1,
                             kMaxIters);
}

double graph_sample_ns(double timer_quantum_ns) {
  return std::max(kMinSampleNs, 1000 * timer_quantum_ns);
}

double wall_seconds(Sampler& sampler) {
  (void)sampler.sample_ns();
  const auto start = std::chrono::steady_clock::now();
  (void)sampler.sample_ns();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace wide::bench
