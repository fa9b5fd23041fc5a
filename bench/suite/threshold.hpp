// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What an entry of a suite must reach. The interval decides, as in `compare`: a threshold is missed
// if all of it lies beyond the bound, and undecided if the bound lies within, or if it is
// from fewer rounds than a verdict needs (kMinPairs of statistics.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/document/result.hpp"

namespace wide::bench {

struct Threshold {
  std::string metric;                ///< of `wbench list metrics`, as results spell it
  std::optional<double> min, max;    ///< exactly one of them
  std::optional<Baseline> baseline;  ///< for speedup_ratio
  std::optional<Regime> regime;      ///< none: every one that was measured
  std::string strategy;              ///< empty: the best of every case and regime
};

inline constexpr std::string_view kSpeedup = "speedup_ratio";

enum class Reach : uint8_t { met, missed, undecided };

/// Over all cases and regimes of a result.
struct ThresholdOutcome {
  Reach reach = Reach::undecided;  ///< the worst; undecided if no case had a value to compare
  int64_t met = 0, missed = 0, undecided = 0;  ///< cases, by regime
  std::string worst;  ///< "fused, n=4 batch=8, graph: 1.2 [1.1, 1.3]"; empty if all are met
};

ThresholdOutcome hold(const Threshold& threshold, const RunResult& result);

/// "speedup_ratio vs loop >= 3 (fused)".
std::string to_string(const Threshold& threshold);
std::string_view to_string(Reach reach);

}  // namespace wide::bench
