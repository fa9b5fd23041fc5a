// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Samplers of cold calls, and of what a call costs the host. They are enqueued while the stream is
// held: a cold call with more launches than a queue may hold as a graph, so that it is held like
// what it is compared with.
#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/timer/device_timing.hpp"
#include "bench/timer/flush.hpp"
#include "bench/timer/held_stream.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

/// Enough to time, few enough to wait in a queue.
constexpr int64_t kEnqueuedLaunches = 50;

/// Lines that a kernel has made persistent survive whatever else is read, so they are reset before
/// a cold call, and none may be set aside any more (llm.c #851, nvbench #459). Not every device has
/// them, nor a slice of one by MIG ("CUDA C++ Programming Guide", L2 Set-Aside for Persisting
/// Accesses), and there neither call needs to be known.
class PersistingLines {
 public:
  explicit PersistingLines(const Context& context) {
    int most_bytes = 0;
    WIDE_CHECK_CUDA(cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxPersistingL2CacheSize,
                                           context.device().ordinal));
    exist_ = most_bytes > 0;
    if (exist_) WIDE_CHECK_CUDA(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
  }
  void reset() const {
    if (exist_) WIDE_CHECK_CUDA(cudaCtxResetPersistingL2Cache());
  }

 private:
  bool exist_ = false;
};

/// Reads more than the L2 holds. To overwrite as much would leave it full of lines that are still
/// to be written, which the timed call would wait for, though no floor contains them.
class L2Flush {
 public:
  L2Flush(const Context& context, Stream stream, double bytes)
      : stream_(stream),
        persisting_(context),
        buffer_(context, Dtype::int32,
                {4 * std::max<int64_t>(1, static_cast<int64_t>(bytes) / 16)}),
        found_(context, Dtype::int32, {1}) {
    fill_bytes(buffer_, 0, stream_);
    enqueue();  // loads the kernel, which must not happen behind a blocker
    context.synchronize(stream_);
  }
  void reset_persisting() const { persisting_.reset(); }
  void enqueue() {
    WIDE_CHECK_CUDA(launch_read(buffer_.data(), buffer_.bytes(),
                                static_cast<uint32_t*>(found_.data()), native(stream_)));
  }

 private:
  Stream stream_;
  PersistingLines persisting_;
  Tensor buffer_, found_;
};

/// Makes the calls one after another, from the first on, and begins again behind the last.
Call in_turn(const std::vector<Call>& calls) {
  return [&calls, next = size_t{0}]() mutable {
    calls[next]();
    next = (next + 1) % calls.size();
  };
}

class FlushSampler final : public Sampler {
 public:
  FlushSampler(const Context& context, Stream stream, const std::vector<Call>& calls,
               const ColdRule& rule, double timer_quantum_ns, int64_t launches)
      : events_(stream),
        held_(context, stream, 1),
        flush_(context, stream, rule.covered_bytes()),
        call_(calls.front()) {
    for (const Call& call : calls) call();  // not behind a blocker: they may load their kernels
    context.synchronize(stream);
    const auto copies = static_cast<int64_t>(calls.size());
    if (copies > 1) {
      const double once = few_captured_ns(events_, stream, in_turn(calls));
      iters_ = flushed_calls(once, graph_sample_ns(timer_quantum_ns), copies);
    }
    if (copies > 1 || launches > kMaxBlockedLaunches) {
      graph_ = std::make_unique<CapturedGraph>(stream, in_turn(calls), iters_);
      call_ = [this] { graph_->launch(); };
    }
    expected_s_ = wall_seconds(*this);
  }
  double sample_ns() override {
    flush_.reset_persisting();
    held_.run([&] {
      flush_.enqueue();
      events_.enclose(call_);
    });
    return events_.elapsed_ns() / static_cast<double>(iters_);
  }
  int64_t iters_per_sample() const override { return iters_; }
  int64_t calls_run_per_sample() const override { return 0; }  // the flush draws more than calls
  int64_t buffers_rotated() const override { return iters_; }
  std::string note() const override {
    return graph_ && iters_ == 1
               ? "a call is a captured graph: more launches than may wait in a stream"
               : "";
  }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return iters_ == 1 ? "event" : "graph"; }

 private:
  EventPair events_;
  HeldStream held_;
  L2Flush flush_;
  Call call_;
  std::unique_ptr<CapturedGraph> graph_;  ///< of several calls, or of one with many launches
  int64_t iters_ = 1;
  double expected_s_ = 0;
};

class RotatingSampler final : public Sampler {
 public:
  RotatingSampler(const Context& context, Stream stream, const std::vector<Call>& calls,
                  const ColdRule& rule, double timer_quantum_ns)
      : events_(stream), persisting_(context), copies_(static_cast<int64_t>(calls.size())) {
    for (const Call& call : calls) call();  // their first calls may load and upload
    const double once = few_captured_ns(events_, stream, in_turn(calls));
    iters_ = rotated_calls(iters_for(once, graph_sample_ns(timer_quantum_ns)), copies_);
    if (!covers_l2(rule, copies_, iters_)) {
      throw Error(ErrorCode::unsupported, std::to_string(copies_) + " copies in " +
                                              std::to_string(iters_) +
                                              " calls do not cover the L2");
    }
    graph_ = std::make_unique<CapturedGraph>(stream, in_turn(calls), iters_);
    expected_s_ = wall_seconds(*this);
  }
  double sample_ns() override {
    persisting_.reset();
    return replay_ns(events_, *graph_) / static_cast<double>(iters_);
  }
  int64_t iters_per_sample() const override { return iters_; }
  int64_t calls_run_per_sample() const override { return kReplays * iters_; }
  int64_t buffers_rotated() const override { return copies_; }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return "graph"; }

 private:
  EventPair events_;
  PersistingLines persisting_;
  std::unique_ptr<CapturedGraph> graph_;
  int64_t copies_, iters_ = 1;
  double expected_s_ = 0;
};

class EnqueueSampler final : public Sampler {
 public:
  EnqueueSampler(const Context& context, Stream stream, const Call& call, int64_t launches)
      : held_(context, stream, launches),
        call_(call),
        iters_(std::max<int64_t>(1, kEnqueuedLaunches / std::max<int64_t>(1, launches))) {
    call_();
    context.synchronize(stream);
    expected_s_ = wall_seconds(*this);
  }
  double sample_ns() override {
    using Clock = std::chrono::steady_clock;
    double taken_ns = 0;
    held_.run([&] {
      const auto start = Clock::now();
      for (int64_t i = 0; i < iters_; ++i) call_();
      taken_ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    });
    return taken_ns / static_cast<double>(iters_);
  }
  int64_t iters_per_sample() const override { return iters_; }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return "host"; }

 private:
  HeldStream held_;
  Call call_;
  int64_t iters_;
  double expected_s_ = 0;
};

}  // namespace

std::unique_ptr<Sampler> make_cold_sampler(const Context& context, Stream stream,
                                           const std::vector<Call>& calls, const ColdRule& rule,
                                           double timer_quantum_ns, int64_t launches) {
  if (rule.cache == Cache::rotate)
    return std::make_unique<RotatingSampler>(context, stream, calls, rule, timer_quantum_ns);
  return std::make_unique<FlushSampler>(context, stream, calls, rule, timer_quantum_ns, launches);
}

std::unique_ptr<Sampler> make_enqueue_sampler(const Context& context, Stream stream,
                                              const Call& call, int64_t launches) {
  return std::make_unique<EnqueueSampler>(context, stream, call, launches);
}

double flush_ns(const Context& context, Stream stream, const ColdRule& rule) {
  L2Flush flush(context, stream, rule.covered_bytes());
  EventPair events(stream);
  flush.enqueue();
  return events.time_ns([&] { flush.enqueue(); });
}

}  // namespace wide::bench
