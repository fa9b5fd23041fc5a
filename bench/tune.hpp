// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a case's measurements say about its fastest strategy. Pure, so that it is tested on results
// that are made up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/result.hpp"
#include "wide/catalog.hpp"

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

/// The fastest of the candidates that were right before and after they were timed.
struct TunedCase {
  Timed winner;
  std::string strategy, policy;  ///< the winner's
  int64_t num_candidates = 0;
  Regime regime = Regime::cpu;
  std::optional<Timed> runner_up;
  std::optional<Timed> automatic;  ///< what "auto" takes without a cache, by its strategy's name
  std::optional<Timed> vendor;     ///< the fastest that is the vendor's, or loops over its calls
};

/// In the first of the regimes graph, stream and cpu that a candidate was timed in; none where no
/// candidate was. "auto" among the strategies is no candidate of its own.
std::optional<TunedCase> tuned_case(const CaseResult& result, const catalog::PrimitiveSpec& spec);

}  // namespace wide::bench
