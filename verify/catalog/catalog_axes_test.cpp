// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An axis that is taken and then ignored measures another case than the one it names.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "verify/support/cases.hpp"

namespace wide::test {

namespace {

using catalog::AxisInfo;
using catalog::AxisValue;
using catalog::Case;
using catalog::PrimitiveSpec;

/// What tells one piece of work from another without running it.
auto work_of(const PrimitiveSpec& spec, const Case& point) {
  const auto workload = spec.make_workload(Context::cpu(), point, {});
  const catalog::Cost cost = workload->cost();
  return std::tuple(cost.flops, cost.bytes_read, cost.bytes_written, workload->footprint_bytes(),
                    workload->num_outputs(), workload->rows(0), workload->row_length(0));
}

Case with(const PrimitiveSpec& spec, const Case& point, const std::string& axis, int64_t value) {
  Values values;
  for (const Case::Entry& entry : point.entries()) {
    values.emplace_back(entry.name, entry.name == axis ? AxisValue(value) : entry.value);
  }
  return catalog::make_case(spec, values);
}

/// Axes of values, and heads, which divide work that stays the same.
bool is_no_size(std::string_view axis) {
  return axis == "offset" || axis == "spread" || axis == "soft_cap" || axis == "heads";
}

/// Whether any legal value of the axis nearby is other work.
bool changes_work(const PrimitiveSpec& spec, const Case& point, const AxisInfo& axis) {
  const std::string name(axis.name);
  const int64_t value = point.integer(name);
  for (const int64_t other : {value + 1, value + 2, 2 * value, 3 * value, value / 2, value - 1}) {
    if (other < axis.min || other == value) continue;
    const Case changed = with(spec, point, name, other);
    if (!spec.impossible_reason(changed).empty()) continue;
    if (work_of(spec, changed) != work_of(spec, point)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every axis of numbers is part of the work") {
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    // What is left at 0 is that of another axis; some axes count beside certain words alone.
    std::vector<Case> points{catalog::make_case(*spec, {})};
    for (const Values& words : word_combinations(*spec)) {
      points.push_back(odd_case(*spec, 3, 3, words));
      if (!spec->impossible_reason(points.back()).empty()) points.pop_back();
    }
    for (const AxisInfo& axis : spec->axes) {
      if (!axis.words.empty() || is_no_size(axis.name)) continue;
      INFO(spec->name << " --" << axis.name);
      CHECK(std::any_of(points.begin(), points.end(),
                        [&](const Case& point) { return changes_work(*spec, point, axis); }));
    }
  }
}

}  // namespace wide::test
