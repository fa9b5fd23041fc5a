// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which candidates to measure, and how well, if measuring all of them well would take too long.
// Pure: measurements come from a callback, so that searches are tested on synthetic times.
// A search's ranking is not final: the caller measures the first ones in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace wide::bench {

/// Takes this many samples of each of these candidates, interleaved, so that drift is the same for
/// all: times in ns, in the order of `candidates`; empty for one that failed.
using MeasureCandidates = std::function<std::vector<std::vector<double>>(
    std::span<const size_t> candidates, int64_t samples)>;

struct SearchLimits {
  uint64_t seed = 1;
  int64_t first_samples = 4;                             ///< halving: of each in round one
  int64_t samples = 32;                                  ///< random: of each
  std::function<bool()> is_over = [] { return false; };  ///< nothing more may be measured
};

struct SearchResult {
  std::vector<size_t> ranking;  ///< of those that were measured, best first
  int64_t num_measured = 0;     ///< candidates that had times
  int64_t samples_taken = 0;
};

/// All candidates with few samples, then the better half of them with as many samples again, and so
/// on until two have been measured against each other. Better means a smaller upper end of the
/// median's 95 % interval.
SearchResult search_by_halving(size_t num_candidates, const SearchLimits& limits,
                               const MeasureCandidates& measure);

/// Candidates one by one in random order; at least one of them.
SearchResult search_at_random(size_t num_candidates, const SearchLimits& limits,
                              const MeasureCandidates& measure);

}  // namespace wide::bench
