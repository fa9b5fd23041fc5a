// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/timer/sampler.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// Reading the clock costs tens of nanoseconds: below 0.1 % of a sample of this length.
constexpr double kMinSampleNs = 100'000;

double time_calls(const Call& call, int64_t iters) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < iters; ++i) call();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

class HostSampler final : public Sampler {
 public:
  explicit HostSampler(const Call& call) : call_(call) {
    call_();  // the first call touches cold code and memory
    const double once = std::max(1.0, std::min(time_calls(call_, 1), time_calls(call_, 1)));
    iters_ = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(kMinSampleNs / once)), 1, 1 << 16);
  }
  double sample_ns() override { return time_calls(call_, iters_) / static_cast<double>(iters_); }
  int64_t iters_per_sample() const override { return iters_; }
  std::string_view timer() const override { return "host"; }

 private:
  Call call_;
  int64_t iters_ = 1;
};

}  // namespace

std::unique_ptr<Sampler> make_host_sampler(const Call& call) {
  return std::make_unique<HostSampler>(call);
}

}  // namespace wide::bench
