// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a case's measurements say about its fastest strategy, and what is stored of it. Pure, so
// that it is tested on synthetic results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/document/result.hpp"
#include "wide/catalog.hpp"
#include "wide/tuning.hpp"

namespace wide::bench {

/// Everything to measure of a primitive on this type of device: its strategies, with each policy
/// that can be requested; if `named` is not empty, only those.
std::vector<std::string> tune_candidates(const catalog::PrimitiveSpec& spec, DeviceType device,
                                         const std::vector<std::string>& named);

/// From "op/strategy:policy", "strategy:policy" and "strategy", those of this op, without the
/// op. Throws invalid_argument for one that belongs to none of the ops.
std::vector<std::string> space_of(const std::string& list, const catalog::PrimitiveSpec& spec,
                                  const std::vector<const catalog::PrimitiveSpec*>& ops);

/// A runner's times in the regime that decides: the first of graph, stream, cold and cpu that it
/// has; empty if it was not timed, or is wrong.
std::vector<double> deciding_samples(const RunnerResult& runner);

struct Timed {
  std::string name;
  double time_ns = 0;  ///< median
};

/// What was found about the candidates that were right before and after timing.
struct TunedCase {
  /// The smallest median of those that are "faster" than "auto"; if none is, of all.
  Timed winner;
  std::string strategy, policy;  ///< the winner's
  int64_t num_candidates = 0;
  Regime regime = Regime::cpu;
  std::optional<Timed> runner_up;  ///< the smallest median of the others
  std::optional<Timed> automatic;  ///< what "auto" chooses without a cache, by its strategy's name
  std::string automatic_policy;
  std::optional<Timed> vendor;  ///< the fastest that is the vendor's, or loops over its calls
  /// The winner against "auto", as runs compare a strategy with a baseline: the verdict is
  /// "not_comparable" if "auto" was wrong, or is below the timer's resolution.
  Speedup vs_auto;

  bool is_autos_own() const;  ///< the winner is what "auto" chooses
  /// One of many medians is always the smallest, if only by chance: a winner is stored only if its
  /// verdict is "faster", and it is not "auto" itself under another name.
  bool beats_auto() const { return vs_auto.verdict == "faster" && !is_autos_own(); }
};

/// In the first of the regimes graph, stream and cpu in which a candidate was timed; none if no
/// candidate was. "auto" among the strategies is not a candidate. `seed` is the interval's.
std::optional<TunedCase> tuned_case(const CaseResult& result, const catalog::PrimitiveSpec& spec,
                                    uint64_t seed = 1);

/// `found` with the winner and "auto" as measured again: the best of many is biased, but a
/// separate measurement of it is not. The other candidates stay as they were.
TunedCase confirmed(TunedCase found, const TunedCase& again);

/// What is stored in a cache: the winner if it beats "auto", else the choice of "auto". None if
/// "auto" has no time: then nothing is known to be faster, and there is nothing to fall back to.
std::optional<TuningEntry> kept_entry(const TunedCase& tuned, const std::string& kernel_hash);

/// The same in words: "small_m:m8n64"; "auto (same choice)" or, with the verdict, "auto: same"
/// if auto's choice is stored; "-" for nothing.
std::string kept_text(const TunedCase& tuned);

}  // namespace wide::bench
