// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/table.hpp"

#include <algorithm>

namespace wide::bench {

namespace {

constexpr int kGap = 2;
constexpr int kNeverDropped = 9;

const char* escape_of(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "\033[32m";
    case Tone::bad:
      return "\033[31m";
    case Tone::dim:
      return "\033[2m";
    case Tone::plain:
      break;
  }
  return "";
}

std::string fit(const std::string& text, int width) {
  if (display_width(text) <= width) return text;
  return width <= 2 ? text.substr(0, static_cast<size_t>(width))
                    : text.substr(0, static_cast<size_t>(width - 2)) + "..";
}

}  // namespace

int display_width(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Table::render(int width, bool has_color) const {
  std::vector<int> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int widest = display_width(columns_[c].title);
    bool is_used = false;
    for (const auto& row : rows_) {
      widest = std::max(widest, display_width(row[c].text));
      is_used = is_used || !row[c].text.empty();
    }
    widths.push_back(is_used ? widest : 0);  // a column without a value says nothing
  }
  const auto total = [&] {
    int sum = 0;
    for (const int w : widths) sum += w == 0 ? 0 : w + kGap;
    return sum - kGap;
  };
  while (total() > width) {
    size_t victim = columns_.size();
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0 || columns_[c].keep >= kNeverDropped) continue;
      if (victim == columns_.size() || columns_[c].keep < columns_[victim].keep) victim = c;
    }
    if (victim == columns_.size()) break;
    widths[victim] = 0;
  }
  size_t last = 0;
  for (size_t c = 0; c < columns_.size(); ++c) last = widths[c] > 0 ? c : last;
  if (total() > width) widths[last] = std::max(4, widths[last] - (total() - width));

  std::string text;
  const auto line = [&](const auto& cell_of) {
    std::string out;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      const Cell cell = cell_of(c);
      const std::string shown = fit(cell.text, widths[c]);
      const std::string pad(static_cast<size_t>(widths[c] - display_width(shown)), ' ');
      const bool is_colored = has_color && cell.tone != Tone::plain;
      const std::string body = is_colored ? escape_of(cell.tone) + shown + "\033[0m" : shown;
      if (!out.empty()) out += std::string(kGap, ' ');
      out += columns_[c].is_right ? pad + body : c == last ? body : body + pad;
    }
    text += (text.empty() ? "" : "\n") + out;
  };
  line([&](size_t c) { return Cell{columns_[c].title, Tone::dim}; });
  for (const auto& row : rows_) line([&](size_t c) { return row[c]; });
  return text;
}

}  // namespace wide::bench
