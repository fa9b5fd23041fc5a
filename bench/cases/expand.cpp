// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/expand.hpp"

#include <algorithm>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr double kMaxPoints = 1e6;

const catalog::AxisInfo& find_axis(const catalog::PrimitiveSpec& spec, const std::string& name) {
  std::vector<std::string_view> names;
  for (const catalog::AxisInfo& axis : spec.axes) {
    if (axis.name == name) return axis;
    names.push_back(axis.name);
  }
  throw Error(ErrorCode::invalid_argument,
              std::string(spec.name) + ": " + catalog::unknown_name_message("axis", name, names));
}

std::vector<catalog::Axis> with_overrides(const catalog::PrimitiveSpec& spec,
                                          const catalog::Sweep& sweep,
                                          std::span<const AxisOverride> overrides) {
  std::vector<catalog::Axis> axes = sweep.axes;
  for (const AxisOverride& change : overrides) {
    auto values = parse_values(find_axis(spec, change.name), change.spec, change.powers);
    const auto same = std::find_if(axes.begin(), axes.end(),
                                   [&](const auto& a) { return a.name == change.name; });
    if (same != axes.end()) {
      same->values = std::move(values);
    } else {
      axes.push_back({change.name, std::move(values)});
    }
  }
  return axes;
}

}  // namespace

Expansion expand(const catalog::PrimitiveSpec& spec, const catalog::Sweep& sweep,
                 std::span<const AxisOverride> overrides) {
  const std::vector<catalog::Axis> axes = with_overrides(spec, sweep, overrides);
  double points = 1;
  for (const catalog::Axis& axis : axes) points *= static_cast<double>(axis.values.size());
  if (points > kMaxPoints) {
    throw Error(ErrorCode::invalid_argument, std::string(spec.name) + ": the axes make " +
                                                 std::to_string(static_cast<int64_t>(points)) +
                                                 " cases, expected at most 1000000");
  }
  Expansion result;
  std::vector<size_t> index(axes.size());
  for (;;) {
    std::vector<std::pair<std::string, catalog::AxisValue>> values;
    for (size_t a = 0; a < axes.size(); ++a)
      values.emplace_back(axes[a].name, axes[a].values[index[a]]);
    catalog::Case point = catalog::make_case(spec, values);
    const std::string reason = spec.impossible_reason(point);
    if (reason.empty()) {
      result.cases.push_back(std::move(point));
    } else {
      ++result.impossible[reason];
    }
    size_t a = axes.size();
    while (a > 0 && ++index[a - 1] == axes[a - 1].values.size()) index[--a] = 0;
    if (a == 0) return result;
  }
}

}  // namespace wide::bench
