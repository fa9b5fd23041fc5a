// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Samplers of warm calls on a GPU's own clock, and the streams of the baseline `streams`.
#include <cstdio>
#include <iterator>
#include <vector>

#include "bench/timer/device_timing.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

class StreamSampler final : public Sampler {
 public:
  StreamSampler(Stream stream, const Call& call) : events_(stream), call_(call) {
    call_();
    double once = events_.time_ns(call_);
    constexpr int kTries = 8;
    if (once * kTries < kMinStreamSampleNs) {
      once = events_.time_ns([&] {
        for (int i = 0; i < kTries; ++i) call_();
      }) / kTries;
    }
    iters_ = iters_for(once, kMinStreamSampleNs);
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

class GraphSampler final : public Sampler {
 public:
  GraphSampler(Stream stream, const Call& call, double timer_quantum_ns) : events_(stream) {
    iters_ = iters_for(few_captured_ns(events_, stream, call), graph_sample_ns(timer_quantum_ns));
    graph_ = std::make_unique<CapturedGraph>(stream, call, iters_);
    expected_s_ = wall_seconds(*this);
  }
  double sample_ns() override { return replay_ns(events_, *graph_) / static_cast<double>(iters_); }
  int64_t iters_per_sample() const override { return iters_; }
  int64_t calls_run_per_sample() const override { return kReplays * iters_; }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return "graph"; }

 private:
  EventPair events_;
  std::unique_ptr<CapturedGraph> graph_;
  int64_t iters_ = 1;
  double expected_s_ = 0;
};

/// As nvidia-smi and CUDA_VISIBLE_DEVICES format it.
std::string uuid_text(const char (&bytes)[16]) {
  std::string text = "GPU";
  char digits[3];
  for (size_t i = 0; i < std::size(bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += "-";
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(bytes[i]));
    text += digits;
  }
  return text;
}

}  // namespace

ActiveDevice::ActiveDevice(const Context& context) {
  if (context.device().type != DeviceType::cuda) return;
  WIDE_CHECK_CUDA(cudaGetDevice(&previous_));
  WIDE_CHECK_CUDA(cudaSetDevice(context.device().ordinal));
}

ActiveDevice::~ActiveDevice() {
  if (previous_ >= 0) (void)cudaSetDevice(previous_);
}

RunDevice run_device(const Context& context) {
  if (context.device().type != DeviceType::cuda) return {context.info(), "", ""};
  cudaDeviceProp properties{};
  WIDE_CHECK_CUDA(cudaGetDeviceProperties(&properties, context.device().ordinal));
  return {context.info(), uuid_text(properties.uuid.bytes), pci_bus_id(context)};
}

std::string pci_bus_id(const Context& context) {
  char id[32] = "";
  WIDE_CHECK_CUDA(cudaDeviceGetPCIBusId(id, sizeof(id), context.device().ordinal));
  return id;
}

Call captured_call(const Context& context, Stream stream, const Call& call) {
  const ActiveDevice active(context);
  const auto graph = std::make_shared<CapturedGraph>(stream, call, 1);
  return [graph] { graph->launch(); };
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
