// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/settled.hpp"

#include <cmath>
#include <cstdint>
#include <map>

#include "bench/statistics/moments.hpp"
#include "bench/statistics/order.hpp"

namespace wide::bench {

namespace {

constexpr double kBin = 1e-3;
constexpr double kSettled = 0.02;
constexpr size_t kFewest = 20;  // the entropy of fewer samples is bounded by their number

}  // namespace

double relative_noise_pct(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const Moments m = moments(samples);
  return m.mean > 0 ? 100 * std::sqrt(m.variance) / m.mean : 0;
}

double sample_entropy(std::span<const double> samples, double bin) {
  if (!(bin > 0)) return 0;
  std::map<int64_t, int64_t> counts;
  for (const double sample : samples) ++counts[std::llround(sample / bin)];
  double entropy = 0;
  for (const auto& [place, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(samples.size());
    entropy -= share * std::log2(share);
  }
  return entropy;
}

bool is_entropy_settled(std::span<const double> samples) {
  if (samples.size() < kFewest) return false;
  const double bin = kBin * median(samples);
  const double all = sample_entropy(samples, bin);
  const double half = sample_entropy(samples.first(samples.size() / 2), bin);
  return std::fabs(all - half) <= kSettled * std::fmax(all, 1);
}

}  // namespace wide::bench
