// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Workloads whose rows are routed to members. How unevenly is one axis, `spread`. Rows of all
// members are shuffled: where an operand lies by rows, a member's are scattered over it.
#pragma once

#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "host/linear/linear_values.hpp"
#include "host/plan_workload.hpp"

namespace wide::catalog {

/// Rows of each member.
inline std::vector<int64_t> row_counts(const Case& point, const WorkloadOptions& options) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < point.integer("n"); ++i) {
    const int64_t id =
        options.member_ids.empty() ? i : options.member_ids.at(static_cast<size_t>(i));
    counts.push_back(
        draw_member_size(point.integer("batch"), point.integer("spread"), 1, "batch", id));
  }
  return counts;
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
  explicit ShuffledRows(const std::vector<int64_t>& counts) : of_member(counts.size()) {
    constexpr uint64_t kSeed = 7;
    std::vector<size_t> owners;
    first_rows.push_back(0);
    for (size_t i = 0; i < counts.size(); ++i) {
      owners.insert(owners.end(), static_cast<size_t>(counts[i]), i);
      first_rows.push_back(static_cast<int32_t>(owners.size()));
    }
    for (size_t left = owners.size(); left > 1; --left) {
      std::swap(owners[left - 1], owners[random_bits(kSeed, left) % left]);
    }
    for (size_t row = 0; row < owners.size(); ++row) {
      of_member[owners[row]].push_back(static_cast<int64_t>(row));
    }
    for (const auto& rows : of_member) order.insert(order.end(), rows.begin(), rows.end());
  }

  std::vector<int32_t> first_rows, order;
  std::vector<std::vector<int64_t>> of_member;  ///< ascending
};

template <auto kDescribe, auto kMakePlan>
class RoutedWorkload : public PlanWorkload<kDescribe, kMakePlan> {
 protected:
  using Base = PlanWorkload<kDescribe, kMakePlan>;

  RoutedWorkload(const Context& context, const typename Base::Problem& like,
                 const WorkloadOptions& options, const std::vector<int64_t>& counts)
      : Base(context, like, options), rows_(counts) {}

  /// Rows of all members, by rows or in routed order.
  Operand& add_rows(std::string_view name, Dtype dtype, int64_t features, bool is_by_rows,
                    const Distribution& distribution, std::optional<int64_t> padding = {}) {
    const int64_t stride = features + padding.value_or(this->options().row_padding);
    std::vector<MemberPlace> places;
    for (size_t i = 0; i < rows_.of_member.size(); ++i) {
      const auto count = static_cast<int64_t>(rows_.of_member[i].size());
      MemberPlace& place = places.emplace_back();
      place = {.shape = {count, features}, .strides = {stride, 1}};
      if (is_by_rows) {
        place.rows = rows_.of_member[i];
      } else {
        place.offset = rows_.first_rows[i] * stride;
      }
    }
    return this->add_ragged_operand(name, dtype, std::move(places), distribution);
  }

  /// Before y, which is the last operand.
  void add_routing() {
    first_rows_ = &add_numbers("first_rows", rows_.first_rows);
    order_ = &add_numbers("order", rows_.order);
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
  /// A part of the routing.
  Operand& add_numbers(std::string_view name, const std::vector<int32_t>& numbers) {
    Operand::Description description;
    description.packing.name = name;
    description.dtype = Dtype::int32;
    description.member_shape = {static_cast<int64_t>(numbers.size())};
    description.is_shared = true;
    description.contents = [numbers](int64_t, bool, std::span<std::byte> bytes) {
      if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    };
    return this->add_operand(std::move(description));
  }

  ShuffledRows rows_;
  const Operand* first_rows_ = nullptr;
  const Operand* order_ = nullptr;
};

}  // namespace wide::catalog
