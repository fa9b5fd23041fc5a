// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The searches of `wbench tune`, on candidates whose times are made up.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <set>

#include "bench/tune/tune_search.hpp"

namespace wide::bench {
namespace {

/// Candidates whose true times are 100 ns and, the others, 3 % and more above it, in an order by
/// lot, with 2 % of noise and one sample in twenty that something has delayed.
class MadeUp {
 public:
  MadeUp(size_t count, uint64_t seed) : random_(seed), times_(count) {
    for (size_t i = 0; i < count; ++i) times_[i] = 100 * (1 + 0.03 * static_cast<double>(i));
    std::shuffle(times_.begin(), times_.end(), random_);
  }
  size_t best() const {
    return static_cast<size_t>(std::min_element(times_.begin(), times_.end()) - times_.begin());
  }
  MeasureCandidates measure() {
    return [this](std::span<const size_t> candidates, int64_t samples) {
      std::vector<std::vector<double>> all;
      for (const size_t candidate : candidates) {
        auto& taken = all.emplace_back();
        for (int64_t i = 0; i < samples; ++i) {
          const double delay = uniform_(random_) < 0.05 ? 1.3 : 1;
          taken.push_back(times_[candidate] * delay * (1 + 0.02 * normal_(random_)));
        }
        if (failing == candidate && samples > 4) taken.clear();
      }
      return all;
    };
  }
  size_t failing = 1000;

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<double> times_;
};

TEST_CASE("halving finds the best of candidates at less than half of what all cost") {
  int found = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    MadeUp world(32, seed);
    const SearchResult result = search_by_halving(32, SearchLimits(), world.measure());
    CHECK(result.num_measured == 32);
    CHECK(result.ranking.size() == 32);
    CHECK(result.samples_taken < 32 * 64 / 2);  // the last two have 64 each
    found += result.ranking[0] == world.best();
  }
  CHECK(found >= 95);
}

TEST_CASE("a candidate that fails late is not ranked, and a search that is over ends") {
  MadeUp world(8, 3);
  world.failing = world.best();
  const SearchResult failed = search_by_halving(8, SearchLimits(), world.measure());
  CHECK(failed.num_measured == 8 - 1);
  CHECK(std::count(failed.ranking.begin(), failed.ranking.end(), world.best()) == 0);
  SearchLimits over;
  over.is_over = [] { return true; };
  CHECK(search_by_halving(8, over, world.measure()).samples_taken == 8 * 4);
  CHECK(search_by_halving(0, over, world.measure()).ranking.empty());
  const auto none = [](std::span<const size_t> candidates, int64_t) {
    return std::vector<std::vector<double>>(candidates.size());
  };
  CHECK(search_by_halving(8, SearchLimits(), none).ranking.empty());
  CHECK(search_at_random(8, SearchLimits(), none).ranking.empty());
}

TEST_CASE("a random search measures what its budget allows, by its seed") {
  MadeUp world(16, 5);
  SearchLimits limits;
  const SearchResult all = search_at_random(16, limits, world.measure());
  CHECK((all.num_measured == 16 && all.samples_taken == 16 * 32));
  CHECK(all.ranking[0] == world.best());
  int asked = 0;
  limits.is_over = [&] { return ++asked > 4; };
  const SearchResult some = search_at_random(16, limits, world.measure());
  CHECK((some.num_measured == 5 && some.ranking.size() == 5));
  asked = 0;
  CHECK(search_at_random(16, limits, world.measure()).ranking.size() == 5);
  limits.is_over = [] { return true; };
  const auto first = search_at_random(16, limits, world.measure()).ranking;
  CHECK(first == search_at_random(16, limits, world.measure()).ranking);
  std::set<size_t> firsts;
  for (limits.seed = 1; limits.seed <= 20; ++limits.seed)
    firsts.insert(search_at_random(16, limits, world.measure()).ranking.at(0));
  CHECK(firsts.size() > 5);
}

}  // namespace
}  // namespace wide::bench
