// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Workloads whose rows are routed to members. How unevenly is one axis, `spread`; how many are
// nobody's is another, `dropped`. All rows are shuffled: where an operand lies by rows, a member's
// are scattered over it.
//
// Rows of nobody are gaps of the inputs, NaN that must reach nothing, and zeros in y: one output
// behind the members'.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "host/linear_values.hpp"
#include "host/plan_workload.hpp"

namespace wide::catalog {

/// Rows of each member, then those of nobody.
inline std::vector<int64_t> row_counts(const Case& point, const WorkloadOptions& options) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < point.integer("n"); ++i) {
    const int64_t id =
        options.member_ids.empty() ? i : options.member_ids.at(static_cast<size_t>(i));
    counts.push_back(
        draw_member_size(point.integer("batch"), point.integer("spread"), 1, "batch", id));
  }
  counts.push_back(std::accumulate(counts.begin(), counts.end(), int64_t{0}) *
                   point.integer("dropped") / 100);
  return counts;
}

inline AxisInfo dropped_axis() {
  return {"dropped", "rows of nobody, in percent of all members'", int64_t{0}, {}, 0};
}

/// A row's values and tolerances times its gate: one more rounding in fp32. Exact tolerances remain
/// so, as such fills' gates are powers of two.
inline void judge_gate(double gate, Dtype dtype, std::span<double> values,
                       std::span<double> tolerances) {
  for (size_t o = 0; o < values.size(); ++o) {
    values[o] *= gate;
    if (tolerances[o] == 0) continue;
    tolerances[o] =
        tolerances[o] * std::fabs(gate) + 0x1p-24 * std::fabs(values[o]) + min_subnormal(dtype);
  }
}

/// Which rows are whose.
struct ShuffledRows {
  /// `counts` as of row_counts().
  explicit ShuffledRows(const std::vector<int64_t>& counts) {
    constexpr uint64_t kSeed = 7;
    std::vector<size_t> owners;
    for (size_t i = 0; i < counts.size(); ++i) {
      first_rows.push_back(static_cast<int32_t>(owners.size()));
      owners.insert(owners.end(), static_cast<size_t>(counts[i]), i);
    }
    for (size_t left = owners.size(); left > 1; --left) {
      std::swap(owners[left - 1], owners[random_bits(kSeed, left) % left]);
    }
    of_member.resize(counts.size());
    for (size_t row = 0; row < owners.size(); ++row) {
      of_member[owners[row]].push_back(static_cast<int64_t>(row));
    }
    for (const auto& rows : of_member) order.insert(order.end(), rows.begin(), rows.end());
    of_nobody = std::move(of_member.back());
    of_member.pop_back();
  }

  std::vector<int32_t> first_rows, order;
  std::vector<std::vector<int64_t>> of_member;  ///< ascending
  std::vector<int64_t> of_nobody;               ///< likewise
};

/// The same numbers for all members: a part of a routing.
template <class T>
Operand::Description numbers_operand(std::string_view name, Dtype dtype, std::vector<T> numbers) {
  Operand::Description description;
  description.packing.name = name;
  description.dtype = dtype;
  description.member_shape = {static_cast<int64_t>(numbers.size())};
  description.is_shared = true;
  description.contents = [numbers = std::move(numbers)](int64_t, bool, std::span<std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  };
  return description;
}

template <auto kDescribe, auto kMakePlan>
class RoutedWorkload : public PlanWorkload<kDescribe, kMakePlan> {
 public:
  /// Of calls of one member each, none is for rows of nobody.
  MemberOutputs read_outputs(OutputOf which, Stream stream) final {
    MemberOutputs outputs = Base::read_outputs(which, stream);
    if (which == OutputOf::baseline && !rows_.of_nobody.empty()) {
      std::ranges::fill(outputs.members.back().bytes, std::byte{0});
    }
    return outputs;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const final {
    if (member < this->num_members()) return judge_row(member, row, values, tolerances);
    std::ranges::fill(values, 0);
    std::ranges::fill(tolerances, 0);
  }

 protected:
  using Base = PlanWorkload<kDescribe, kMakePlan>;

  RoutedWorkload(const Context& context, const typename Base::Problem& like,
                 const WorkloadOptions& options, const std::vector<int64_t>& counts)
      : Base(context, like, options), rows_(counts) {}

  int64_t num_routed_rows() const { return rows_.first_rows.back(); }

  /// Rows of all members, by rows or in routed order.
  Operand& add_rows(std::string_view name, Dtype dtype, int64_t features, bool is_by_rows,
                    const Distribution& distribution, std::optional<int64_t> padding = {}) {
    const int64_t stride = features + padding.value_or(this->options().row_padding);
    const auto place_of = [&](const std::vector<int64_t>& rows, int32_t first) {
      MemberPlace place{.shape = {static_cast<int64_t>(rows.size()), features},
                        .strides = {stride, 1}};
      if (is_by_rows) {
        place.rows = rows;
      } else {
        place.offset = first * stride;
      }
      return place;
    };
    std::vector<MemberPlace> places;
    for (size_t i = 0; i < rows_.of_member.size(); ++i) {
      places.push_back(place_of(rows_.of_member[i], rows_.first_rows[i]));
    }
    const bool is_output = distribution.kind == Distribution::Kind::none;
    if (is_output && !rows_.of_nobody.empty()) {
      places.push_back(place_of(rows_.of_nobody, rows_.first_rows.back()));
    }
    const int64_t rows = this->like().num_rows;
    return this->add_ragged_operand(name, dtype, std::move(places), distribution,
                                    rows == 0 ? 0 : (rows - 1) * stride + features);
  }

  /// reference_row() of a member.
  virtual void judge_row(int64_t member, int64_t row, std::span<double> values,
                         std::span<double> tolerances) const = 0;

  /// Before y, which is the last operand.
  void add_routing() {
    first_rows_ = &this->add_operand(numbers_operand("first_rows", Dtype::int32, rows_.first_rows));
    order_ = &this->add_operand(numbers_operand("order", Dtype::int32, rows_.order));
  }
  const Operand* first_rows() const { return first_rows_; }
  const Operand* order() const { return order_; }

  /// An operand's rows of all members, as a call takes them.
  TensorView rows_of(const Operand* operand, int64_t features) const {
    if (operand == nullptr) return TensorView();
    TensorView rows = operand->packed();
    rows.shape = Shape{this->like().num_rows, features};
    rows.strides = Strides{features + this->options().row_padding, 1};
    return rows;
  }

 private:
  ShuffledRows rows_;
  const Operand* first_rows_ = nullptr;
  const Operand* order_ = nullptr;
};

}  // namespace wide::catalog
