// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Axis by axis; nothing here knows a primitive.
#include "verify/support/cases.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "verify/support/devices.hpp"

namespace wide::test {

namespace {

using catalog::AxisInfo;
using catalog::AxisValue;
using catalog::Case;
using catalog::PrimitiveSpec;

bool is_possible(const PrimitiveSpec& spec, const Case& point) {
  return spec.impossible_reason(point).empty();
}

std::vector<Values> times(const std::vector<Values>& points, const std::string& axis,
                          const std::vector<AxisValue>& values) {
  std::vector<Values> product;
  for (const Values& point : points) {
    for (const AxisValue& value : values) {
      product.push_back(point);
      product.back().emplace_back(axis, value);
    }
  }
  return product;
}

std::vector<AxisValue> words_of(const AxisInfo& axis) {
  std::vector<AxisValue> words;
  for (const std::string_view word : axis.words) words.emplace_back(std::string(word));
  return words;
}

int64_t odd_size(const std::vector<int64_t>& sizes, int64_t size) {
  const size_t wanted = size <= 5 ? 0 : size <= 19 ? 1 : 2;
  return sizes.at(std::min(wanted, sizes.size() - 1));
}

/// Every word once, and once with the last dtype: some words go with 16 bits only.
std::vector<Values> single_words(const PrimitiveSpec& spec) {
  std::vector<Values> combinations{{}};
  const auto dtype = std::find_if(spec.axes.begin(), spec.axes.end(),
                                  [](const AxisInfo& axis) { return axis.name == "dtype"; });
  for (const AxisInfo& axis : spec.axes) {
    for (const AxisValue& word : words_of(axis)) {
      if (word == axis.default_value) continue;
      combinations.push_back({{std::string(axis.name), word}});
      if (dtype == spec.axes.end() || axis.name == "dtype") continue;
      combinations.push_back(combinations.back());
      combinations.back().emplace_back("dtype", std::string(dtype->words.back()));
    }
  }
  return combinations;
}

std::vector<Values> all_words(const PrimitiveSpec& spec) {
  std::vector<Values> combinations{{}};
  for (const AxisInfo& axis : spec.axes) {
    if (axis.words.empty()) continue;
    combinations = times(combinations, std::string(axis.name), words_of(axis));
  }
  return combinations;
}

int64_t num_combinations(const PrimitiveSpec& spec) {
  int64_t product = 1;
  for (const AxisInfo& axis : spec.axes) {
    product *= std::max<int64_t>(1, static_cast<int64_t>(axis.words.size()));
  }
  return product;
}

/// More words than these are tried in pairs.
constexpr int64_t kMaxCombinations = 400;

/// Small, and different for every axis, so that no two extents are mixed up unseen: the axis's own
/// size where it has one, else the `index`-th of a few primes.
AxisValue shrink(const PrimitiveSpec& spec, const std::string& name, const AxisValue& value,
                 size_t index) {
  constexpr std::array<int64_t, 5> kSizes{3, 5, 17, 7, 13};
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer == nullptr || *integer <= 5) return value;
  const auto axis = std::find_if(spec.axes.begin(), spec.axes.end(),
                                 [&](const AxisInfo& info) { return info.name == name; });
  if (axis == spec.axes.end() || axis->odd_sizes.empty()) return kSizes[index % kSizes.size()];
  return odd_size(axis->odd_sizes, 7);
}

}  // namespace

std::vector<const PrimitiveSpec*> primitives_to_test() {
  const char* name = std::getenv("WIDE_TEST_PRIMITIVE");
  if (name != nullptr) return {&catalog::find_primitive(name)};
  return {catalog::primitives().begin(), catalog::primitives().end()};
}

std::string plan_name(const PrimitiveSpec& spec) {
  return spec.tuning_key(catalog::make_case(spec, {})).primitive;
}

std::vector<std::string> strategies_of(const PrimitiveSpec& spec, DeviceType device) {
  std::vector<std::string> names{"auto"};
  for (const auto& strategy : spec.strategies) {
    if (strategy.device == device) names.emplace_back(strategy.name);
  }
  return names;
}

std::vector<Case> ci_cases(const PrimitiveSpec& spec) {
  std::vector<Values> points{{}};
  for (const catalog::Axis& axis : catalog::find_sweep(spec, "ci").axes) {
    points = times(points, axis.name, axis.values);
  }
  for (const AxisInfo& axis : spec.axes) {
    if (axis.name == "dtype") points = times(points, "dtype", words_of(axis));
  }
  std::vector<Case> cases;
  for (Values& point : points) {
    if (wants_small_cases()) {
      for (size_t a = 0; a < point.size(); ++a) {
        point[a].second = shrink(spec, point[a].first, point[a].second, a);
      }
    }
    Case made = catalog::make_case(spec, point);
    const bool is_known = std::find(cases.begin(), cases.end(), made) != cases.end();
    if (!is_known && is_possible(spec, made)) cases.push_back(std::move(made));
  }
  return cases;
}

Case odd_case(const PrimitiveSpec& spec, int64_t num_members, int64_t size, const Values& words) {
  constexpr std::array<int64_t, 12> kPrimes{3, 5, 7, 11, 13, 17, 19, 67, 71, 73, 79, 83};
  const auto first = std::lower_bound(kPrimes.begin(), kPrimes.end(), size) - kPrimes.begin();
  Values values = words;
  size_t next = static_cast<size_t>(first);
  for (const AxisInfo& axis : spec.axes) {
    if (!axis.words.empty()) continue;
    const int64_t prime = kPrimes.at(next % kPrimes.size());
    next += axis.name != "n" && axis.odd_sizes.empty() ? 1 : 0;
    const int64_t value = axis.name == "n"         ? num_members
                          : axis.odd_sizes.empty() ? prime
                                                   : odd_size(axis.odd_sizes, size);
    values.emplace_back(std::string(axis.name), value);
  }
  return catalog::make_case(spec, values);
}

Case vector_case(const PrimitiveSpec& spec, int64_t num_members, int64_t size,
                 const Values& words) {
  constexpr std::array<std::string_view, 7> kFeatures{"in",       "out",      "d",     "dim",
                                                      "channels", "head_dim", "hidden"};
  const Case odd = odd_case(spec, num_members, size, words);
  Values values;
  for (const Case::Entry& entry : odd.entries()) {
    const bool is_feature = std::count(kFeatures.begin(), kFeatures.end(), entry.name) > 0;
    const auto* extent = std::get_if<int64_t>(&entry.value);
    if (entry.name == "groups") {
      values.emplace_back(entry.name, int64_t{1});
      continue;
    }
    values.emplace_back(entry.name, is_feature && extent != nullptr
                                        ? AxisValue((*extent + kVectorElements - 1) /
                                                    kVectorElements * kVectorElements)
                                        : entry.value);
  }
  return catalog::make_case(spec, values);
}

bool affords_large_cases(const PrimitiveSpec& spec) {
  const auto sizes = std::count_if(spec.axes.begin(), spec.axes.end(), [](const AxisInfo& axis) {
    return axis.words.empty() && axis.name != "n";
  });
  return !wants_small_cases() && sizes <= 4;
}

std::vector<Values> word_combinations(const PrimitiveSpec& spec) {
  std::vector<Values> combinations = wants_small_cases() ? single_words(spec)
                                     : num_combinations(spec) > kMaxCombinations ? word_pairs(spec)
                                                                                 : all_words(spec);
  std::erase_if(combinations, [&](const Values& words) {
    return !is_possible(spec, odd_case(spec, 3, 3, words));
  });
  return combinations;
}

std::vector<Values> word_pairs(const PrimitiveSpec& spec) {
  std::vector<AxisInfo> axes;
  std::copy_if(spec.axes.begin(), spec.axes.end(), std::back_inserter(axes),
               [](const AxisInfo& axis) { return !axis.words.empty() && axis.name != "dtype"; });
  std::vector<Values> pairs;
  for (size_t a = 0; a < axes.size(); ++a) {
    for (size_t b = a + 1; b < axes.size(); ++b) {
      const std::string first(axes[a].name), second(axes[b].name);
      const auto both = times(times({{}}, first, words_of(axes[a])), second, words_of(axes[b]));
      pairs.insert(pairs.end(), both.begin(), both.end());
    }
  }
  for (const AxisInfo& axis : spec.axes) {
    if (axis.name == "dtype") pairs = times(pairs, "dtype", words_of(axis));
  }
  return pairs;
}

std::vector<Case> edge_cases(const PrimitiveSpec& spec) {
  std::vector<Case> cases;
  for (const AxisInfo& edge : spec.axes) {
    if (!edge.words.empty()) continue;
    Values values;
    const Case odd = odd_case(spec, 3, 3);
    for (const Case::Entry& entry : odd.entries()) {
      values.emplace_back(entry.name, entry.name == edge.name ? AxisValue(edge.min) : entry.value);
    }
    cases.push_back(catalog::make_case(spec, values));
    if (!is_possible(spec, cases.back())) cases.pop_back();
  }
  return cases;
}

std::string describe(const PrimitiveSpec& spec, const Case& point) {
  std::string text = "wbench run --op " + std::string(spec.name);
  for (const Case::Entry& entry : point.entries()) {
    text += " --axis " + entry.name + "=" + catalog::to_string(entry.value);
  }
  return text;
}

}  // namespace wide::test
