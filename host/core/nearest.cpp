// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Edit distance with swapped neighbours (optimal string alignment): "linaer" is one slip away.
// A name in other capitals is meant, "batch-size" may be "batch".
#include "host/core/nearest.hpp"

#include <algorithm>
#include <utility>

namespace wide {

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> cost((a.size() + 1) * width);
  const auto at = [&](size_t i, size_t j) -> size_t& { return cost[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

std::string lower(std::string_view text) {
  std::string letters(text);
  for (char& c : letters) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return letters;
}

}  // namespace

std::vector<std::string> nearest_of(std::string_view name,
                                    std::span<const std::string_view> names) {
  std::vector<std::pair<size_t, std::string_view>> candidates;
  for (const std::string_view known : names) {
    if (known != name && lower(known) == lower(name)) return {std::string(known)};
    const size_t distance = edit_distance(name, known);
    const size_t longer = std::max(name.size(), known.size());
    const bool contains = !name.empty() && known.find(name) != std::string_view::npos;
    const bool goes_on = name.starts_with(known) && 2 * known.size() >= name.size();
    if (contains || goes_on) {
      candidates.emplace_back(known.starts_with(name) ? 0 : 1, known);
    } else if (distance <= (longer + 2) / 3) {
      candidates.emplace_back(distance, known);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (const auto& [distance, known] : candidates) {
    if (nearest.size() < 3) nearest.emplace_back(known);
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> names,
                         std::string (*shown)(std::string_view)) {
  std::string list;
  for (const std::string& near : nearest_of(name, names))
    list += (list.empty() ? "" : ", ") + (shown != nullptr ? shown(near) : near);
  return list.empty() ? "" : ", did you mean " + list + "?";
}

std::string expected_name(std::string_view name, std::span<const std::string_view> names) {
  const std::string nearest = did_you_mean(name, names);
  if (!nearest.empty()) return nearest;
  std::string list;
  for (const std::string_view known : names) {
    list += (list.empty() ? "" : ", ") + std::string(known);
  }
  return ", expected one of " + list;
}

}  // namespace wide
