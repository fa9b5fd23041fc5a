// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/table.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace wide::bench {

namespace {

constexpr int kGap = 2;
constexpr int kMinTextWidth = 6;  // a text that is cut keeps at least this width
constexpr int kIndent = 4;

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

const std::string& shown(const Cell& cell, bool is_brief) {
  return is_brief && !cell.brief.empty() ? cell.brief : cell.text;
}

/// Control characters of a file must not reach the terminal.
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

int total_width(const std::vector<int>& widths) {
  int sum = -kGap;
  for (const int width : widths) sum += width == 0 ? 0 : width + kGap;
  return std::max(0, sum);
}

/// Chooses what is shown of a table, and how wide.
class Layout {
 public:
  Layout(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows, int width)
      : columns_(columns), rows_(rows), width_(width), is_gone_(columns.size()) {
    is_capped_ = measure();
    if (is_capped_) drop_columns();
    shrink_texts();
    give_back();
  }
  /// 0: not shown.
  const std::vector<int>& widths() const { return widths_; }
  bool is_brief() const { return is_brief_; }

 private:
  /// Sets the widths that the cells need; returns whether they exceed the limit.
  bool measure() {
    widths_.assign(columns_.size(), 0);
    for (size_t c = 0; c < columns_.size(); ++c) {
      bool is_used = false;
      int widest = display_width(columns_[c].title);
      for (const auto& row : rows_) {
        widest = std::max(widest, display_width(shown(row[c], is_brief_)));
        is_used = is_used || !row[c].text.empty();
      }
      if (is_used && !is_gone_[c]) widths_[c] = widest;
    }
    natural_ = widths_;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (is_capped_ && columns_[c].cap > 0) widths_[c] = std::min(widths_[c], columns_[c].cap);
    }
    return total_width(widths_) > width_;
  }

  void drop_columns() {
    std::vector<size_t> order(columns_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return columns_[a].keep < columns_[b].keep; });
    bool is_wide = measure();
    for (const size_t c : order) {
      if (is_wide && !is_brief_ && columns_[c].keep >= Column::kBriefAt) {
        is_brief_ = true;
        is_wide = measure();
      }
      if (!is_wide || columns_[c].keep >= Column::kNeverDropped) break;
      is_gone_[c] = true;
      is_wide = measure();
    }
    std::reverse(order.begin(), order.end());
    for (const size_t c : order) {  // brief cells, or a later drop, may have made room
      if (!is_gone_[c] || is_wide) continue;
      is_gone_[c] = false;
      if (measure()) is_gone_[c] = true;
    }
    (void)measure();
  }

  void shrink_texts() {
    while (total_width(widths_) > width_) {
      int* widest = nullptr;
      for (size_t c = 0; c < columns_.size(); ++c) {
        const bool can_shrink = !columns_[c].is_number && widths_[c] > kMinTextWidth;
        if (can_shrink && (widest == nullptr || widths_[c] > *widest)) widest = &widths_[c];
      }
      if (widest == nullptr) return;
      --*widest;
    }
  }

  /// Gives remaining width back to texts that were cut.
  void give_back() {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const int room = width_ - total_width(widths_);
      if (room > 0) widths_[c] = std::min(natural_[c], widths_[c] + room);
    }
  }

  const std::vector<Column>& columns_;
  const std::vector<std::vector<Cell>>& rows_;
  int width_;
  std::vector<int> widths_, natural_;
  std::vector<bool> is_gone_;
  bool is_capped_ = false, is_brief_ = false;
};

/// Byte offset of code point number `count`.
size_t offset_of(const std::string& text, int count) {
  size_t offset = 0;
  for (; offset < text.size(); ++offset) {
    if ((text[offset] & 0xc0) != 0x80 && count-- == 0) break;
  }
  return offset;
}

/// Bytes of `line` before a break such that at most `width` columns are shown.
size_t break_at(const std::string& line, int width, size_t least) {
  const size_t end = offset_of(line, width);
  const size_t space = line.rfind(' ', end);
  return space == std::string::npos || space <= least ? end : space;
}

/// To be pasted into a shell, where a break would end it or change a quoted word.
bool is_command(const std::string& line) {
  const size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line.compare(first, 7, "wbench ") == 0;
}

}  // namespace

int display_width(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string printable(const std::string& text) {
  std::string clean = text;
  for (char& c : clean) {
    if (is_control(c)) c = ' ';
  }
  return clean;
}

std::string fit(const std::string& text, int width) {
  const std::string clean = printable(text);
  if (display_width(clean) <= width) return clean;
  if (width <= 2) return clean.substr(0, offset_of(clean, width));
  return clean.substr(0, offset_of(clean, width - 2)) + "..";
}

std::string wrap(const std::string& text, int width) {
  std::string out, line;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != '\n') {
      line += is_control(text[i]) ? ' ' : text[i];
      continue;
    }
    while (!is_command(line) && display_width(line) > width) {
      const size_t cut = break_at(line, width, kIndent);
      out += line.substr(0, cut) + "\n";
      line = std::string(kIndent, ' ') + line.substr(line[cut] == ' ' ? cut + 1 : cut);
    }
    out += line + (i < text.size() ? "\n" : "");
    line.clear();
  }
  return out;
}

std::string Table::line(const std::vector<Cell>& cells, const std::vector<int>& widths,
                        bool is_brief, bool has_color) const {
  std::string out;
  size_t trailing = 0;  // padding before the line's end is left out
  bool is_first = true;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (widths[c] == 0) continue;
    const std::string text = fit(shown(cells[c], is_brief), widths[c]);
    const std::string pad(static_cast<size_t>(widths[c] - display_width(text)), ' ');
    const bool is_colored = has_color && cells[c].tone != Tone::plain && !text.empty();
    const std::string body = is_colored ? escape_of(cells[c].tone) + text + "\033[0m" : text;
    out += (is_first ? "" : std::string(kGap, ' ')) + (columns_[c].is_number ? pad : "") + body;
    if (!text.empty()) trailing = out.size();
    if (!columns_[c].is_number) out += pad;
    is_first = false;
  }
  out.resize(trailing);
  return out;
}

std::vector<std::string> Table::measures() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) {
    const bool says_what = !column.is_number && column.keep == Column::kNeverDropped;
    if (!says_what && column.title != "regime") titles.push_back(column.title);
  }
  return titles;
}

bool Table::choose(const std::vector<std::string>& measures) {
  bool has_any = false;
  for (const std::string& title : this->measures()) {
    const auto at = std::find_if(columns_.begin(), columns_.end(),
                                 [&](const Column& column) { return column.title == title; });
    if (std::find(measures.begin(), measures.end(), title) != measures.end()) {
      at->keep = Column::kNeverDropped;
      has_any = true;
      continue;
    }
    for (std::vector<Cell>& row : rows_) row.erase(row.begin() + (at - columns_.begin()));
    columns_.erase(at);
  }
  return has_any;
}

std::string Table::render(int width, bool has_color) const {
  const Layout layout(columns_, rows_, width);
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({column.title, Tone::dim});
  std::string text = line(titles, layout.widths(), layout.is_brief(), has_color);
  for (const auto& row : rows_)
    text += "\n" + line(row, layout.widths(), layout.is_brief(), has_color);
  return text;
}

std::string escaped_markdown(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string Table::markdown() const {
  std::string titles, rules;
  std::vector<size_t> used;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const auto has_text = [&](const auto& row) { return !row[c].text.empty(); };
    if (std::none_of(rows_.begin(), rows_.end(), has_text)) continue;
    used.push_back(c);
    titles += "| " + columns_[c].title + " ";
    rules += columns_[c].is_number ? "|---:" : "|---";
  }
  std::string text = titles + "|\n" + rules + "|\n";
  for (const auto& row : rows_) {
    for (const size_t c : used) text += "| " + escaped_markdown(row[c].text) + " ";
    text += "|\n";
  }
  return text;
}

std::string cut_texts(const std::string& rendered,
                      const std::vector<std::pair<std::string, std::string>>& texts, int width) {
  std::string out;
  std::set<std::string> told;
  for (const auto& [name, text] : texts) {
    const std::string whole = printable(text), line = "  " + name + ": " + whole + "\n";
    const bool is_cut = rendered.find(whole) == std::string::npos;
    if (is_cut && told.insert(line).second) out += wrap(line, width);
  }
  return out;
}

std::string listing_text(const std::vector<std::vector<std::string>>& rows, int width) {
  const size_t last = rows.front().size() - 1;
  std::vector<int> widths(last);
  for (const auto& row : rows) {
    for (size_t c = 0; c < last; ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const int left = std::accumulate(widths.begin(), widths.end(), kGap * static_cast<int>(last));
  const int room = std::max(20, width - left);
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < last; ++c) {
      line +=
          row[c] + std::string(static_cast<size_t>(widths[c] - display_width(row[c]) + kGap), ' ');
    }
    std::string rest = row[last];
    while (display_width(rest) > room) {
      const size_t cut = break_at(rest, room, 0);
      text += line + rest.substr(0, cut) + "\n";
      rest.erase(0, rest[cut] == ' ' ? cut + 1 : cut);
      line = std::string(static_cast<size_t>(left), ' ');
    }
    text += line + rest + "\n";
  }
  return text;
}

}  // namespace wide::bench
