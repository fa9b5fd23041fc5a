// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a case's measurements say about its fastest strategy, and what of it is kept. Pure, so that
// it is tested on results that are made up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/result.hpp"
#include "wide/catalog.hpp"
#include "wide/tuning.hpp"

namespace wide::bench {

/// Everything to measure of a primitive on such a device: its strategies, by each policy where a
/// policy can be asked for; of `named` ones only, unless that is empty.
std::vector<std::string> tune_candidates(const catalog::PrimitiveSpec& spec, DeviceType device,
                                         const std::vector<std::string>& named);

/// Of "op/strategy:policy", "strategy:policy" and "strategy", those that are this op's, without the
/// op. Throws invalid_argument for one that is none of the ops'.
std::vector<std::string> space_of(const std::string& list, const catalog::PrimitiveSpec& spec,
                                  const std::vector<const catalog::PrimitiveSpec*>& ops);

/// A runner's times in the regime that decides: the first of graph, stream, cold and cpu that it
/// has; empty where it was not timed, or is not right.
std::vector<double> deciding_samples(const RunnerResult& runner);

struct Timed {
  std::string name;
  double time_ns = 0;  ///< median
};

/// What was found of the candidates that were right before and after they were timed.
struct TunedCase {
  /// The smallest median of those that are "faster" than "auto"; of all, where none is.
  Timed winner;
  std::string strategy, policy;  ///< the winner's
  int64_t num_candidates = 0;
  Regime regime = Regime::cpu;
  std::optional<Timed> runner_up;  ///< the smallest median of the others
  std::optional<Timed> automatic;  ///< what "auto" takes without a cache, by its strategy's name
  std::string automatic_policy;
  std::optional<Timed> vendor;  ///< the fastest that is the vendor's, or loops over its calls
  /// The winner against "auto", as runs compare a strategy with a baseline: the verdict is
  /// "not_comparable" where "auto" was not right, or is below the timer's resolution.
  Speedup vs_auto;

  bool is_autos_own() const;  ///< the winner is what "auto" takes
  /// The smallest of many medians is always somebody's: a winner is worth keeping where its verdict
  /// is "faster", and it is not "auto" itself under another name.
  bool beats_auto() const { return vs_auto.verdict == "faster" && !is_autos_own(); }
};

/// In the first of the regimes graph, stream and cpu that a candidate was timed in; none where no
/// candidate was. "auto" among the strategies is no candidate of its own. `seed` is the interval's.
std::optional<TunedCase> tuned_case(const CaseResult& result, const catalog::PrimitiveSpec& spec,
                                    uint64_t seed = 1);

/// `found` by what its winner and "auto" were measured as once more: the best of many flatters
/// itself, and what is measured for it alone does not. The other candidates stay as they were.
TunedCase confirmed(TunedCase found, const TunedCase& again);

/// What a cache keeps: the winner where it beats "auto", else what "auto" takes. None where "auto"
/// has no time: nothing is known to be faster then, and nothing to stand.
std::optional<TuningEntry> kept_entry(const TunedCase& tuned, const std::string& kernel_hash);

/// The same in words: "small_m:m8n64"; "auto (same choice)" or, with the verdict, "auto: same"
/// where that stands; "-" for nothing.
std::string kept_text(const TunedCase& tuned);

}  // namespace wide::bench
