// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/timer/sampler.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxHostIters = 1 << 16;

double time_calls(const Call& call, int64_t iters) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < iters; ++i) call();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

class HostSampler final : public Sampler {
 public:
  explicit HostSampler(const Call& call) : call_(call) {
    double once = time_calls(call_, 1);
    // A call that is long enough is not repeated: the first may cost seconds. A short call's first
    // time is that of cold code and memory, so the number of calls is doubled until it suffices.
    while (once * static_cast<double>(iters_) < kMinHostSampleNs && iters_ < kMaxHostIters) {
      const double missing = kMinHostSampleNs / std::max(1.0, once);
      iters_ =
          std::clamp<int64_t>(static_cast<int64_t>(std::ceil(missing)), iters_ * 2, kMaxHostIters);
      once = time_calls(call_, iters_) / static_cast<double>(iters_);
    }
    expected_s_ = once * static_cast<double>(iters_) * 1e-9;
  }
  double sample_ns() override { return time_calls(call_, iters_) / static_cast<double>(iters_); }
  int64_t iters_per_sample() const override { return iters_; }
  double expected_sample_s() const override { return expected_s_; }
  std::string_view timer() const override { return "host"; }

 private:
  Call call_;
  int64_t iters_ = 1;
  double expected_s_ = 0;
};

}  // namespace

std::unique_ptr<Sampler> make_host_sampler(const Call& call) {
  return std::make_unique<HostSampler>(call);
}

}  // namespace wide::bench
