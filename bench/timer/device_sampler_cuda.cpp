// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Samplers on a GPU's own clock, and the streams of the baseline `streams`.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <type_traits>
#include <vector>

#include "bench/timer/sampler.hpp"
#include "host/core/cuda_check.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

/// Long against the event clock's steps (0.5 us are promised) and short enough for many samples.
constexpr double kMinSampleNs = 200'000;
constexpr int64_t kMaxIters = 1024;  // queue depth of launches, and nodes of a graph per call

cudaStream_t native(Stream stream) {
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

  template <class F>
  double time_ns(const F& enqueue) {
    WIDE_CHECK_CUDA(cudaEventRecord(start_, stream_));
    enqueue();
    WIDE_CHECK_CUDA(cudaEventRecord(stop_, stream_));
    WIDE_CHECK_CUDA(cudaEventSynchronize(stop_));
    float ms = 0;
    WIDE_CHECK_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
    return static_cast<double>(ms) * 1e6;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

int64_t iters_for(double once_ns, double sample_ns) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(sample_ns / std::max(once_ns, 1.0))), 1,
                             kMaxIters);
}

/// Samples of a new sampler, the second one timed by the host: the first pays for what is loaded
/// and uploaded late.
double wall_seconds(Sampler& sampler) {
  (void)sampler.sample_ns();
  const auto start = std::chrono::steady_clock::now();
  (void)sampler.sample_ns();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class StreamSampler final : public Sampler {
 public:
  StreamSampler(Stream stream, const Call& call) : events_(stream), call_(call) {
    call_();
    double once = events_.time_ns(call_);
    constexpr int kTries = 8;
    if (once * kTries < kMinSampleNs) {
      once = events_.time_ns([&] {
        for (int i = 0; i < kTries; ++i) call_();
      }) / kTries;
    }
    iters_ = iters_for(once, kMinSampleNs);
    expected_s_ = wall_seconds(*this);
  }
  double sample_ns() override {
    return events_.time_ns([&] {
      for (int64_t i = 0; i < iters_; ++i) call_();
    }) / static_cast<double>(iters_);
  }
  int64_t iters_per_sample() const override { return iters_; }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return "event"; }

 private:
  EventPair events_;
  Call call_;
  int64_t iters_ = 1;
  double expected_s_ = 0;
};

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { (void)cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t exec) const { (void)cudaGraphExecDestroy(exec); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyGraph>;

/// Records what `call` enqueues, `iters` times over.
Owned<cudaGraph_t> capture(cudaStream_t stream, const Call& call, int64_t iters) {
  WIDE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    for (int64_t i = 0; i < iters; ++i) call();
  } catch (...) {
    // A stream left capturing would fail everything after.
    (void)cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    throw;
  }
  WIDE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  return Owned<cudaGraph_t>(graph);
}

/// An instantiated graph of `iters` captured calls.
class CapturedGraph {
 public:
  CapturedGraph(Stream stream, const Call& call, int64_t iters) : stream_(native(stream)) {
    const Owned<cudaGraph_t> graph = capture(stream_, call, iters);
    cudaGraphExec_t exec = nullptr;
    WIDE_CHECK_CUDA(cudaGraphInstantiate(&exec, graph.get(), 0));
    exec_.reset(exec);
    WIDE_CHECK_CUDA(cudaGraphUpload(exec, stream_));
  }
  ~CapturedGraph() { (void)cudaStreamSynchronize(stream_); }
  CapturedGraph(const CapturedGraph&) = delete;
  void launch() const { WIDE_CHECK_CUDA(cudaGraphLaunch(exec_.get(), stream_)); }

 private:
  cudaStream_t stream_;
  Owned<cudaGraphExec_t> exec_;
};

class GraphSampler final : public Sampler {
 public:
  GraphSampler(Stream stream, const Call& call, double timer_quantum_ns) : events_(stream) {
    constexpr int64_t kTries = 4;
    double once = 0;
    {
      const CapturedGraph few(stream, call, kTries);
      few.launch();
      once = events_.time_ns([&] { few.launch(); }) / kTries;
    }
    iters_ = iters_for(once, std::max(kMinSampleNs, 1000 * timer_quantum_ns));
    graph_ = std::make_unique<CapturedGraph>(stream, call, iters_);
    expected_s_ = wall_seconds(*this);
  }
  double sample_ns() override {
    return events_.time_ns([&] { graph_->launch(); }) / static_cast<double>(iters_);
  }
  int64_t iters_per_sample() const override { return iters_; }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return "graph"; }

 private:
  EventPair events_;
  std::unique_ptr<CapturedGraph> graph_;
  int64_t iters_ = 1;
  double expected_s_ = 0;
};

}  // namespace

ActiveDevice::ActiveDevice(const Context& context) {
  if (context.device().type != DeviceType::cuda) return;
  WIDE_CHECK_CUDA(cudaGetDevice(&previous_));
  WIDE_CHECK_CUDA(cudaSetDevice(context.device().ordinal));
}

ActiveDevice::~ActiveDevice() {
  if (previous_ >= 0) (void)cudaSetDevice(previous_);
}

std::unique_ptr<Sampler> make_stream_sampler(const Context&, Stream stream, const Call& call) {
  return std::make_unique<StreamSampler>(stream, call);
}

std::unique_ptr<Sampler> make_graph_sampler(const Context&, Stream stream, const Call& call,
                                            double timer_quantum_ns) {
  return std::make_unique<GraphSampler>(stream, call, timer_quantum_ns);
}

struct StreamLanes::State {
  struct Lane {
    Lane(const Context& context, int64_t workspace_bytes)
        : stream(context),
          workspace(context, Dtype::fp8_e4m3, {workspace_bytes}),
          handles(context),
          execution{stream.get(), {workspace.data(), workspace.bytes()}, &handles} {
      WIDE_CHECK_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    }
    ~Lane() { (void)cudaEventDestroy(done); }
    Lane(const Lane&) = delete;
    OwnedStream stream;
    Tensor workspace;
    VendorHandles handles;
    Execution execution;
    cudaEvent_t done = nullptr;
  };

  explicit State(Stream main_) : main(native(main_)) {
    WIDE_CHECK_CUDA(cudaEventCreateWithFlags(&start, cudaEventDisableTiming));
  }
  ~State() { (void)cudaEventDestroy(start); }

  cudaStream_t main;
  cudaEvent_t start = nullptr;
  std::vector<std::unique_ptr<Lane>> lanes;
};

StreamLanes::StreamLanes(const Context& context, Stream main, int64_t num_lanes,
                         int64_t workspace_bytes)
    : state_(std::make_unique<State>(main)) {
  for (int64_t i = 0; i < num_lanes; ++i) {
    state_->lanes.push_back(std::make_unique<State::Lane>(context, workspace_bytes));
  }
}

StreamLanes::~StreamLanes() = default;

void StreamLanes::run(const catalog::PreparedMembers& members, int64_t num_members) const {
  const State& s = *state_;
  WIDE_CHECK_CUDA(cudaEventRecord(s.start, s.main));
  for (const auto& lane : s.lanes) {
    WIDE_CHECK_CUDA(cudaStreamWaitEvent(native(lane->stream.get()), s.start, 0));
  }
  for (int64_t i = 0; i < num_members; ++i) {
    members.run(i, s.lanes[static_cast<size_t>(i) % s.lanes.size()]->execution);
  }
  for (const auto& lane : s.lanes) {
    WIDE_CHECK_CUDA(cudaEventRecord(lane->done, native(lane->stream.get())));
    WIDE_CHECK_CUDA(cudaStreamWaitEvent(s.main, lane->done, 0));
  }
}

}  // namespace wide::bench
