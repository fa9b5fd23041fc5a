// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cases, axis values and names: checked on entry, so that all other code sees legal cases
// only.
#include <algorithm>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "wide/catalog.hpp"

namespace wide::catalog {

namespace {

const Case::Entry& find_entry(const Case& point, std::string_view axis) {
  for (const Case::Entry& entry : point.entries()) {
    if (entry.name == axis) return entry;
  }
  throw_invalid_argument(point.op() + ": there is no axis \"" + std::string(axis) + "\"");
}

void require_legal(const PrimitiveSpec& spec, const AxisInfo& axis, const AxisValue& value) {
  const std::string place = std::string(spec.name) + ": axis " + std::string(axis.name);
  if (axis.words.empty()) {
    const auto* integer = std::get_if<int64_t>(&value);
    WIDE_REQUIRE(integer != nullptr,
                 place + " is \"" + to_string(value) + "\", expected an integer");
    WIDE_REQUIRE(*integer >= axis.min,
                 place + " is " + to_string(value) + ", expected >= " + std::to_string(axis.min));
    return;
  }
  const std::string word = to_string(value);
  if (std::find(axis.words.begin(), axis.words.end(), word) == axis.words.end()) {
    throw_invalid_argument(std::string(spec.name) + ": " +
                           unknown_name_message(axis.name, word, axis.words));
  }
}

}  // namespace

std::string to_string(const AxisValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  return std::get<std::string>(value);
}

std::string_view to_string(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::sequential:
      return "sequential";
    case StrategyKind::vendor:
      return "vendor";
    case StrategyKind::hand_written:
      return "hand_written";
  }
  return "?";
}

int64_t Case::integer(std::string_view axis) const {
  const Entry& entry = find_entry(*this, axis);
  const auto* integer = std::get_if<int64_t>(&entry.value);
  WIDE_REQUIRE(integer != nullptr, op_ + ": axis " + entry.name + " is \"" +
                                       catalog::to_string(entry.value) + "\", expected an integer");
  return *integer;
}

const std::string& Case::word(std::string_view axis) const {
  const Entry& entry = find_entry(*this, axis);
  const auto* word = std::get_if<std::string>(&entry.value);
  WIDE_REQUIRE(word != nullptr, op_ + ": axis " + entry.name + " is " +
                                    catalog::to_string(entry.value) + ", expected a word");
  return *word;
}

Dtype Case::dtype() const {
  const std::string& name = word("dtype");
  const auto dtype = parse_dtype(name);
  WIDE_REQUIRE(dtype.has_value(), op_ + ": dtype is \"" + name + "\"");
  return *dtype;
}

std::string Case::to_string() const {
  std::string text;
  for (const Entry& entry : entries_) {
    if (entry.is_default) continue;
    text += (text.empty() ? "" : " ") + entry.name + "=" + catalog::to_string(entry.value);
  }
  return text;
}

const Sweep& find_sweep(const PrimitiveSpec& spec, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Sweep& sweep : spec.sweeps) {
    if (sweep.name == name) return sweep;
    names.push_back(sweep.name);
  }
  throw_invalid_argument(std::string(spec.name) + ": " +
                         unknown_name_message("preset", name, names));
}

Case make_case(const PrimitiveSpec& spec,
               std::span<const std::pair<std::string, AxisValue>> values) {
  std::vector<std::string_view> names;
  for (const AxisInfo& axis : spec.axes) names.push_back(axis.name);
  for (const auto& [name, value] : values) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw_invalid_argument(std::string(spec.name) + ": " +
                             unknown_name_message("axis", name, names));
    }
  }
  std::vector<Case::Entry> entries;
  for (const AxisInfo& axis : spec.axes) {
    Case::Entry entry{std::string(axis.name), axis.default_value, true};
    for (const auto& [name, value] : values) {
      if (name == axis.name) entry = {name, value, false};
    }
    require_legal(spec, axis, entry.value);
    entries.push_back(std::move(entry));
  }
  return Case(std::string(spec.name), std::move(entries));
}

std::string unknown_name_message(std::string_view what, std::string_view name,
                                 std::span<const std::string_view> known) {
  return "unknown " + std::string(what) + " \"" + std::string(name) + "\"" +
         expected_name(name, known);
}

}  // namespace wide::catalog
