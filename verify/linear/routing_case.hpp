// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routings as tests of primitives on routed rows have them, and what such tests have in common.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "verify/linear/placed_storage.hpp"
#include "verify/support/dice.hpp"

namespace wide::test {

struct Routing {
  std::vector<int64_t> first_rows, order;
  int64_t num_rows() const { return static_cast<int64_t>(order.size()); }
};

/// By plain loops over the members; rows whose id is no member's are of none.
inline Routing routing_of(const std::vector<int64_t>& ids, int64_t num_members) {
  Routing routing;
  for (int64_t member = 0; member <= num_members; ++member) {
    routing.first_rows.push_back(routing.num_rows());
    for (size_t row = 0; row < ids.size(); ++row) {
      const bool is_of_none = ids[row] < 0 || ids[row] >= num_members;
      if ((is_of_none ? num_members : ids[row]) == member) {
        routing.order.push_back(static_cast<int64_t>(row));
      }
    }
  }
  return routing;
}

/// So many rows of each member, and of none, shuffled.
inline Routing routing_of_counts(const std::vector<int64_t>& counts, int64_t of_none = 0,
                                 uint64_t seed = 3) {
  std::vector<int64_t> ids(static_cast<size_t>(of_none), -1);
  for (size_t i = 0; i < counts.size(); ++i) {
    ids.insert(ids.end(), static_cast<size_t>(counts[i]), static_cast<int64_t>(i));
  }
  Dice dice(seed);
  for (size_t left = ids.size(); left > 1; --left) {
    const auto other = static_cast<size_t>(dice.between(0, static_cast<int64_t>(left) - 1));
    std::swap(ids[left - 1], ids[other]);
  }
  return routing_of(ids, static_cast<int64_t>(counts.size()));
}

/// Of the same sizes, and of no ids: rows and members that there are not, rows named twice, first
/// rows out of order. Where several members claim a place in routed order, no row is there: two
/// blocks would write it, a race that a simulated GPU reports.
inline std::vector<Routing> wrong_routings(const Routing& right) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t rows = right.num_rows();
  std::vector<Routing> wrong;
  for (const int64_t number : {int64_t{-1}, rows, kLeast, kMost}) {
    wrong.push_back(right);
    for (size_t i = 0; i < right.order.size(); i += 2) wrong.back().order[i] = number;
  }
  for (const int64_t number : {kLeast, int64_t{-1}, rows, rows + 1, kMost}) {
    wrong.push_back(right);
    for (int64_t& first : wrong.back().first_rows) first = number;
    for (const size_t step : {size_t{2}, size_t{3}}) {
      wrong.push_back(right);
      wrong.back().order.assign(right.order.size(), -1);
      for (size_t i = 0; i < right.first_rows.size(); i += step) {
        wrong.back().first_rows[i] = number;
      }
    }
  }
  wrong.push_back(right);
  wrong.back().order.assign(right.order.size(), -1);
  for (int64_t& first : wrong.back().first_rows) first = rows - first;
  return wrong;
}

/// Counts for so many members, most of which have no row and one of which has many.
inline std::vector<int64_t> counts_of_many(int64_t members) {
  Dice dice(static_cast<uint64_t>(members));
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < members; ++i) counts.push_back(std::max<int64_t>(dice.between(-3, 2), 0));
  counts[static_cast<size_t>(dice.between(0, members - 1))] = 100;
  return counts;
}

/// One member and many; members, and batches, without a row.
inline std::vector<Routing> few_and_many() {
  std::vector<int64_t> counts(1025, 1);
  counts[7] = 40, counts[1024] = 0;
  return {routing_of_counts({40}),    routing_of_counts({1}),
          routing_of_counts({0}, 40), routing_of_counts({0, 50, 0, 0}),
          routing_of_counts({0, 0}),  routing_of_counts(counts, 3)};
}

/// Every third row is member 1's; of the others, `other` tells whose.
struct EveryThird {
  static constexpr int64_t kRows = 60;

  static Routing routing(const std::function<int64_t(int64_t row)>& other) {
    std::vector<int64_t> ids;
    for (int64_t row = 0; row < kRows; ++row) ids.push_back(row % 3 == 0 ? 1 : other(row));
    return routing_of(ids, 4);
  }
  /// Of y [kRows, out], by rows.
  static std::vector<std::byte> rows(const std::vector<std::byte>& y, int64_t row_bytes) {
    std::vector<std::byte> own;
    for (std::ptrdiff_t row = 0; row < kRows; row += 3) {
      own.insert(own.end(), y.begin() + row * row_bytes, y.begin() + (row + 1) * row_bytes);
    }
    return own;
  }
};

/// A routing in memory.
class PlacedRouting {
 public:
  PlacedRouting(TestDevice& bench, const Routing& routing, int64_t misalign)
      : bench_(bench),
        first_rows_(bench, Dtype::int32, static_cast<int64_t>(routing.first_rows.size()), misalign),
        order_(bench, Dtype::int32, routing.num_rows(), misalign) {
    route(routing);
  }

  /// Another one of the same sizes.
  void route(const Routing& routing) {
    routing_ = routing;
    fill(first_rows_, routing.first_rows);
    fill(order_, routing.order);
  }

  TensorView first_rows() { return first_rows_.view(); }
  TensorView order() { return order_.view(); }
  void require_unchanged() const {
    first_rows_.require_unchanged(bench_);
    order_.require_unchanged(bench_);
  }

  /// Calls f(member, row, its place in routed order) for all rows; member kOfNone for those of
  /// none.
  template <class F>
  void for_each_row(const F& f) const {
    const auto members = static_cast<int64_t>(routing_.first_rows.size()) - 1;
    for (int64_t member = 0, j = routing_.first_rows[0]; j < routing_.num_rows(); ++j) {
      while (member < members && j >= routing_.first_rows[static_cast<size_t>(member) + 1])
        ++member;
      f(member == members ? kOfNone : member, routing_.order[static_cast<size_t>(j)], j);
    }
  }
  static constexpr int64_t kOfNone = -1;

 private:
  void fill(PlacedStorage& storage, const std::vector<int64_t>& numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      storage.put(static_cast<int64_t>(i), static_cast<double>(numbers[i]));
    }
    storage.upload(bench_);
  }

  TestDevice& bench_;
  Routing routing_;
  PlacedStorage first_rows_, order_;
};

/// Small integers of x, and gates.
inline double routed_x_value(int64_t row, int64_t feature) {
  return static_cast<double>((row * 7 + row / 5 + feature * 3) % 5) - 2;
}
inline double gate_value(int64_t row) {
  return row % 3 == 0 ? 0.5 : row % 3 == 1 ? -2 : 1;
}

/// Whatever y [rows, features] has besides its elements is as it was placed.
inline void check_gaps(const TestDevice& bench, const PlacedStorage& y, int64_t rows,
                       int64_t features, int64_t row_stride) {
  std::vector<std::byte> gaps = y.download(bench);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t o = 0; o < features; ++o) y.restore(gaps, row * row_stride + o);
  }
  CHECK(gaps == y.contents());
}

/// Calls with routings that are wrong write nothing but y.
template <class Plan, class Placed>
void check_wrong_routings(TestDevice& bench, const Plan& plan, Placed& placed,
                          const Routing& right) {
  for (const Routing& wrong : wrong_routings(right)) {
    placed.route(wrong);
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    placed.check_inputs();
    placed.check_gaps();
  }
}

}  // namespace wide::test
