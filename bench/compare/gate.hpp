// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether one cell, a strategy of a case in a regime, has changed between two builds. The unit is
// the run: samples of one run do not show how runs differ, so pooling them raises false alarms.
// Pure arithmetic, so that its error rates can be shown on synthetic sweeps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench/document/metrics.hpp"
#include "bench/statistics/intervals.hpp"

namespace wide::bench {

enum class Verdict : uint8_t { same, faster, slower, ambiguous, added, missing, invalid };
enum class Severity : uint8_t { none, mild, moderate, severe, improvement };

/// The number of runs per side from which an interval over runs decides. Five, because with four no
/// rank test reaches 1 %.
inline constexpr size_t kMinRuns = 5;
/// The number of runs per side from which they show how runs differ.
inline constexpr size_t kMinRunsOfFloor = 3;

/// A metric in the runs of one side. `best` and `q3` stand for the samples' minimum and third
/// quartile of time, carried over to the metric.
struct Side {
  std::vector<double> runs;  ///< at the median of samples
  std::vector<double> best, q3;
  std::vector<double> sm_mhz{};  ///< of each run; empty if a run does not know it
};

/// How the interval over runs is computed: Welch's, or by a seeded bootstrap.
enum class IntervalMethod : uint8_t { welch, bootstrap };

/// Changes within this count as none, unless specified otherwise.
inline constexpr double kThreshold_pct = 1.5;

struct GateOptions {
  Better better = Better::lower;
  double threshold_pct = kThreshold_pct;
  std::optional<double> noise_floor_pct{};  ///< none: how runs differ is not known
  double min_effect_pct = 0;
  IntervalMethod interval = IntervalMethod::welch;
  std::optional<double> p{};  ///< under no change, from change_p_values(); none: not tested
  double alpha = 0.01;        ///< upper bound for p
};

struct Judgement {
  Verdict verdict = Verdict::ambiguous;
  Severity severity = Severity::none;
  double change_pct = 0;                       ///< of the metric, candidate against base
  std::optional<double> ci_lo_pct, ci_hi_pct;  ///< 95 %; none below kMinRuns
  /// Change of time times the SM clock: what would remain if both sides ran at one clock.
  std::optional<double> cycles_change_pct;
  std::string_view reason;  ///< why this verdict, in a word or two
};

/// From kMinRuns on either side: FASTER or SLOWER where the interval of the mean log ratio lies
/// beyond the threshold, the change exceeds the noise floor and the least effect, and chance alone
/// would make such a change with p below alpha; SAME where the interval lies within the threshold,
/// else AMBIGUOUS. Below: FASTER or SLOWER where the ranges [best, q3] of the sides are disjoint by
/// 0.5 % and the change exceeds threshold, floor and least effect; nothing is ever the SAME, and
/// without a floor nothing is FASTER or SLOWER: what samples of one run agree on, the next run may
/// deny. Where the sides' clocks differ by more than 1 %, FASTER and SLOWER must hold in cycles,
/// too.
/// All values must be finite and positive.
Judgement judge(const Side& base, const Side& candidate, const GateOptions& options);

/// noise_floor_pct() of the median cell; none if no cell has kMinRunsOfFloor on both sides.
std::optional<double> noise_floor_pct(std::span<const Side> base, std::span<const Side> candidate);

/// p of each cell's change under the hypothesis of none: Student's test of the log ratio, whose
/// variance is moderated by those of all cells (statistics/moderated.hpp), so that a sweep of many
/// cells with few runs neither takes chance in a noisy cell for a change nor overlooks a change in
/// a quiet one. `adjusts`: by Benjamini and Hochberg, over all of them. None below kMinRuns, and
/// where nothing varies.
std::vector<std::optional<double>> change_p_values(std::span<const Side> base,
                                                   std::span<const Side> candidate, bool adjusts);

std::string_view to_string(Verdict verdict);
std::string_view to_string(Severity severity);

}  // namespace wide::bench
