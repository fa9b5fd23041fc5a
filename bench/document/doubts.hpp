// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether a measurement is reliable: what speaks against its median, by name. Doubts cause no
// failure unless --strict is given; comparisons, tables and files report them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// The samples and rounds that a median needs, and the largest acceptable spread in percent of it.
inline constexpr int64_t kReliableSamples = 30, kReliableRounds = 10;
inline constexpr double kWidestInterval_pct = 1;  ///< half of it; no verdict is decided by less
inline constexpr double kUnsteadyRounds_pct = 5, kDrift_pct = 1, kDrift_p = 0.01;
/// The largest 95th percentile in percent of the median, and the largest share of severe outliers.
inline constexpr double kHeavyTail_pct = 200, kSevereShare = 0.05;

/// The least share of --warmup-time: with all of it, a hundred cases in a minute would leave it
/// a third of the time.
inline constexpr double kLeastWarmUp = 0.5;

/// A measurement with a larger share of discarded samples is invalid.
inline constexpr double kMaxDiscarded = 0.2;

/// For a measurement that has been evaluated, in a fixed order; empty: it is reliable.
///   few_samples      fewer than 30
///   few_rounds       fewer than 10
///   below_resolution a sample is shorter than five floors of the timer
///   wide_interval    half the median's 95 % interval is above 1 % of it
///   unsteady_rounds  the rounds' medians deviate by more than 5 %
///   drift            they rise or fall (Mann and Kendall, p below 0.01), by more than 1 % in all
///   multimodal       two modes or more (dip, p below 0.01), and the 5th and 95th percentiles are
///                    more than 1 % apart
///   heavy_tail       the 95th percentile is above twice the median, or more than a twentieth of
///                    the samples are severe outliers, and the 5th and 95th percentiles are more
///                    than 5 % apart: something else runs, and the median is of what it left
///   throttled        more than a fifth of the samples were throttled, discarded or not
///   timed_out        --timeout or a budget ended its case before --stop was satisfied
///   unsettled_clock  the clock is known but was not seen stable before the samples, so none of
///                    them was judged by it, nor while they were taken: the means of their thirds
///                    differ by more than --warmup-clock-tol. A case of little time has no 0.15 s
///                    to see it before
///   short_warmup     a budget or --timeout left less than half of --warmup-time to warm up, and no
///                    clock is known that has settled
std::vector<std::string> doubts_of(const Measurement& m, const RunConfig& config = RunConfig());

/// "multimodal: dip 0.083, p 0.001": a doubt with the numbers that caused it.
std::string doubt_text(const Measurement& m, const std::string& doubt);

/// The share of zeros among the values that a check expects above which its result is MISTRUSTED:
/// an all-zero output would pass it. The primitive's, PrimitiveSpec::trusted_zeros; for models and
/// unknown primitives what element-wise ones have. The tests' cases are many and small, and have a
/// bound of their own (verify/catalog/catalog_test.cpp).
double trusted_zeros(std::string_view op);
/// Whether a check that passed has proved little; unknown in results before 1.11.
bool is_mistrusted(const VerifyOutcome& verify, double trusted_zeros);
/// Whether that holds for any strategy's check of a case.
bool is_mistrusted(const CaseResult& c);

/// Whether a measurement is known to be unreliable; unknown in results before 1.6.
inline bool is_doubtful(const Measurement& m) {
  return m.stats.doubts && !m.stats.doubts->empty();
}
/// Whether that holds for any measurement of a case.
bool is_doubtful(const CaseResult& c);

}  // namespace wide::bench
