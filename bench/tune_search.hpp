// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which candidates to measure, and how well, where measuring all of them well would take too long.
// Pure: what is measured comes from a callback, so that searches are tested on times that are made
// up. What a search ranks first is not believed: the caller measures it in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace wide::bench {

/// So many samples of each of these candidates, taken together, so that what drifts is the same for
/// all: times in ns, in the order of `candidates`; empty for one that failed.
using MeasureCandidates = std::function<std::vector<std::vector<double>>(
    std::span<const size_t> candidates, int64_t samples)>;

struct SearchLimits {
  uint64_t seed = 1;
  int64_t first_samples = 4;                             ///< halving: of each in the first round
  int64_t samples = 32;                                  ///< random: of each
  std::function<bool()> is_over = [] { return false; };  ///< nothing more may be measured
};

struct SearchResult {
  std::vector<size_t> ranking;  ///< of those that were measured, the best first
  int64_t num_measured = 0;     ///< candidates that had times
  int64_t samples_taken = 0;
};

/// All candidates with few samples, then the better half of them with as many again as they have,
/// and so on until two were measured against each other. Better is a smaller upper end of the
/// median's 95 % interval.
SearchResult search_by_halving(size_t num_candidates, const SearchLimits& limits,
                               const MeasureCandidates& measure);

/// Candidates one by one in an order by lot, the first one in any case.
SearchResult search_at_random(size_t num_candidates, const SearchLimits& limits,
                              const MeasureCandidates& measure);

}  // namespace wide::bench
