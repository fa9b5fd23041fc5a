// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/doubts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

namespace wide::bench {

namespace {

double pct_of_median(const Measurement& m, double time_ns) {
  return m.stats.median_ns > 0 ? 100 * time_ns / m.stats.median_ns : 0;
}

double half_interval_pct(const Measurement& m) {
  return pct_of_median(m, (m.stats.ci_hi_ns - m.stats.ci_lo_ns) / 2);
}

/// From the first round to the last.
double drift_pct(const Measurement& m) {
  return m.stats.trend_pct_per_s.value_or(0) * m.walltime_s;
}

double throttled_share(const Measurement& m) {
  const auto all = static_cast<double>(m.stats.n + m.discarded_throttle);
  return all > 0 ? static_cast<double>(m.kept_throttle + m.discarded_throttle) / all : 0;
}

double severe_share(const Measurement& m) {
  const Outliers& o = m.stats.outliers;
  return m.stats.n > 0
             ? static_cast<double>(o.severe_low + o.severe_high) / static_cast<double>(m.stats.n)
             : 0;
}

/// Of samples on a clock's few steps even the next one is an outlier, which does not matter.
bool has_heavy_tail(const Measurement& m) {
  return pct_of_median(m, m.stats.p95_ns) > kHeavyTail_pct ||
         (severe_share(m) > kSevereShare &&
          pct_of_median(m, m.stats.p95_ns - m.stats.p5_ns) > kUnsteadyRounds_pct);
}

/// "0.52", "310": without an exponent where there are more.
std::string two_digits(double value) {
  return std::fabs(value) < 10 ? fmt::format("{:.2g}", value) : fmt::format("{:.0f}", value);
}

bool is_multimodal(const Measurement& m) {
  constexpr double kApart_pct = 1;  // closer modes do not matter
  return m.stats.dip && m.stats.dip->modes() > 1 &&
         pct_of_median(m, m.stats.p95_ns - m.stats.p5_ns) > kApart_pct;
}

/// Whether the mean clocks of the samples' thirds differ as little as windows do between which a
/// clock has settled. Single readings may: under a power cap they always do.
bool is_steady(const std::vector<double>& sm_mhz, double tol_pct) {
  const auto third = static_cast<std::ptrdiff_t>(sm_mhz.size() / 3);
  if (third == 0) return false;
  std::array<double, 3> means{};
  for (std::ptrdiff_t i = 0; i < 3; ++i) {
    const auto begin = sm_mhz.begin() + i * third;
    const auto end = i < 2 ? begin + third : sm_mhz.end();
    means[static_cast<size_t>(i)] =
        std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
  }
  const auto [least, most] = std::minmax_element(means.begin(), means.end());
  return *most - *least <= tol_pct / 100 * *most;
}

}  // namespace

std::vector<std::string> doubts_of(const Measurement& m, const RunConfig& config) {
  const Statistics& s = m.stats;
  const std::set<int64_t> rounds(m.samples_round.begin(), m.samples_round.end());
  std::vector<std::string> doubts;
  const auto doubt = [&](bool holds, const char* name) {
    if (holds) doubts.emplace_back(name);
  };
  doubt(s.n < kReliableSamples, "few_samples");
  doubt(static_cast<int64_t>(rounds.size()) < kReliableRounds, "few_rounds");
  doubt(m.below_resolution, "below_resolution");
  doubt(half_interval_pct(m) > kWidestInterval_pct, "wide_interval");
  doubt(s.between_round_cv_pct.value_or(0) > kUnsteadyRounds_pct, "unsteady_rounds");
  doubt(s.trend_p.value_or(1) < kDrift_p && std::fabs(drift_pct(m)) > kDrift_pct, "drift");
  doubt(is_multimodal(m), "multimodal");
  doubt(has_heavy_tail(m), "heavy_tail");
  doubt(throttled_share(m) > kMaxDiscarded, "throttled");
  doubt(m.stop_reason == "timeout", "timed_out");
  const bool has_settled =
      !m.clocks || m.clocks->sm_mhz_stable || is_steady(m.samples_sm_mhz, config.clock_tol_pct);
  doubt(!has_settled, "unsettled_clock");
  const bool is_known_warm = m.clocks && has_settled;
  doubt(!is_known_warm && m.warmup_s && *m.warmup_s < kLeastWarmUp * config.warmup_s,
        "short_warmup");
  return doubts;
}

std::string doubt_text(const Measurement& m, const std::string& doubt) {
  const Statistics& s = m.stats;
  if (doubt == "few_samples") return fmt::format("{}: {} of {}", doubt, s.n, kReliableSamples);
  if (doubt == "few_rounds") return fmt::format("{}: below {}", doubt, kReliableRounds);
  if (doubt == "wide_interval")
    return fmt::format("{}: +-{}% of the median", doubt, two_digits(half_interval_pct(m)));
  if (doubt == "unsteady_rounds" && s.between_round_cv_pct)
    return fmt::format("{}: {}% apart", doubt, two_digits(*s.between_round_cv_pct));
  if (doubt == "drift" && s.trend_p)
    return fmt::format("{}: {}{}% in all, p {:.1g}", doubt, drift_pct(m) > 0 ? "+" : "",
                       two_digits(drift_pct(m)), *s.trend_p);
  if (doubt == "multimodal" && s.dip)
    return fmt::format("{}: dip {:.2g}, p {:.1g}", doubt, s.dip->statistic, s.dip->p);
  if (doubt == "heavy_tail") {
    return fmt::format("{}: p95 {:.3g} times the median, {:.0f}% severe outliers", doubt,
                       pct_of_median(m, s.p95_ns) / 100, 100 * severe_share(m));
  }
  if (doubt == "throttled")
    return fmt::format("{}: {:.0f}% of the samples", doubt, 100 * throttled_share(m));
  if (doubt == "timed_out") {
    return fmt::format("{}: +-{}% of the median after {:.3g} s", doubt,
                       two_digits(half_interval_pct(m)), m.walltime_s);
  }
  if (doubt == "unsettled_clock" && m.clocks) {
    return fmt::format("{}: {:.0f} MHz, {:.0f} at least", doubt, m.clocks->sm_mhz_median,
                       m.clocks->sm_mhz_min);
  }
  if (doubt == "short_warmup" && m.warmup_s)
    return fmt::format("{}: {} s", doubt, two_digits(*m.warmup_s));
  return doubt;
}

double trusted_zeros(std::string_view op) {
  constexpr double kElementwise = 0.65;
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    if (spec->name == op) return spec->trusted_zeros;
  }
  return kElementwise;
}

bool is_mistrusted(const VerifyOutcome& verify, double trusted_zeros) {
  const auto compared = static_cast<double>(verify.elements_compared);
  return verify.zeros && compared > 0 &&
         static_cast<double>(*verify.zeros) > trusted_zeros * compared;
}

bool is_mistrusted(const CaseResult& c) {
  const double trusted = trusted_zeros(c.point.op());
  return std::any_of(c.strategies.begin(), c.strategies.end(),
                     [&](const RunnerResult& r) { return is_mistrusted(r.verify, trusted); });
}

bool is_doubtful(const CaseResult& c) {
  for (const auto* runners : {&c.strategies, &c.baselines}) {
    for (const RunnerResult& r : *runners) {
      for (const Measurement& m : r.measurements) {
        if (is_doubtful(m)) return true;
      }
    }
  }
  return false;
}

}  // namespace wide::bench
