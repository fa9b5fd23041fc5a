// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/tune/tune_search.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "bench/statistics/intervals.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kResamples = 400;  // enough for a ranking; winners are measured again

/// What is known of each candidate so far.
class Ranking {
 public:
  Ranking(size_t num_candidates, const SearchLimits& limits, const MeasureCandidates& measure)
      : limits_(limits), measure_(measure), times_(num_candidates), bounds_(num_candidates) {}

  /// Leaves in `candidates` those that did not fail, best first.
  void measure(std::vector<size_t>& candidates, int64_t samples) {
    const auto taken = measure_(candidates, samples);
    std::vector<size_t> fit;
    for (size_t i = 0; i < candidates.size() && i < taken.size(); ++i) {
      std::vector<double>& times = times_[candidates[i]];
      if (taken[i].empty()) {  // it may fail after a round that it passed
        times.clear();
        continue;
      }
      samples_taken_ += static_cast<int64_t>(taken[i].size());
      times.insert(times.end(), taken[i].begin(), taken[i].end());
      bounds_[candidates[i]] = bootstrap_median(times, limits_.seed, kResamples).hi;
      fit.push_back(candidates[i]);
    }
    candidates = std::move(fit);
    sort(candidates);
  }

  void sort(std::vector<size_t>& candidates) const {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](size_t a, size_t b) { return bounds_[a] < bounds_[b]; });
  }

  /// `best` first, then the others.
  SearchResult result(const std::vector<size_t>& best) const {
    SearchResult r{best, 0, samples_taken_};
    std::vector<size_t> others;
    for (size_t i = 0; i < times_.size(); ++i) {
      if (times_[i].empty()) continue;
      ++r.num_measured;
      if (std::find(best.begin(), best.end(), i) == best.end()) others.push_back(i);
    }
    sort(others);
    r.ranking.insert(r.ranking.end(), others.begin(), others.end());
    return r;
  }

 private:
  const SearchLimits& limits_;
  const MeasureCandidates& measure_;
  std::vector<std::vector<double>> times_;
  std::vector<double> bounds_;
  int64_t samples_taken_ = 0;
};

std::vector<size_t> numbered(size_t count) {
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

}  // namespace

SearchResult search_by_halving(size_t num_candidates, const SearchLimits& limits,
                               const MeasureCandidates& measure) {
  Ranking ranking(num_candidates, limits, measure);
  std::vector<size_t> alive = numbered(num_candidates);
  for (int64_t have = 0; !alive.empty() && (have == 0 || !limits.is_over());) {
    const int64_t more = have == 0 ? limits.first_samples : have;
    ranking.measure(alive, more);
    have += more;
    if (alive.size() <= 2) break;
    alive.resize((alive.size() + 1) / 2);
  }
  return ranking.result(alive);
}

SearchResult search_at_random(size_t num_candidates, const SearchLimits& limits,
                              const MeasureCandidates& measure) {
  Ranking ranking(num_candidates, limits, measure);
  std::vector<size_t> order = numbered(num_candidates);
  std::mt19937_64 random(limits.seed);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<size_t> best;
  for (size_t i = 0; i < order.size() && (i == 0 || !limits.is_over()); ++i) {
    std::vector<size_t> one{order[i]};
    ranking.measure(one, limits.samples);
    best.insert(best.end(), one.begin(), one.end());
  }
  ranking.sort(best);
  return ranking.result(best);
}

}  // namespace wide::bench
