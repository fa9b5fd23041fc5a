// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A text table that fits a width. If it is too wide, it is narrowed in this order: long texts of
// columns that have a cap, columns of low importance, long forms of cells, other optional columns,
// and finally texts of any column. Numbers are never cut.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace wide::bench {

enum class Tone : uint8_t { plain, good, bad, dim };

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
  std::string brief{};  ///< shown instead where `text` makes the table too wide; empty: `text`
};

struct Column {
  /// Below kBriefAt: dropped before cells become brief; kNeverDropped: never dropped.
  static constexpr int kBriefAt = 5, kNeverDropped = 9;
  std::string title;
  bool is_number = true;  ///< aligned right, never cut
  int keep = 0;           ///< columns with a smaller number are dropped first
  int cap = 0;            ///< a text column is first narrowed down to this width; 0: it is not
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool is_empty() const { return rows_.empty(); }
  /// The titles of columns with outcomes of a row, without those that identify it.
  std::vector<std::string> measures() const;
  /// Leaves out the measures that are not among these, and never drops those that are; returns
  /// whether there are any.
  bool choose(const std::vector<std::string>& measures);
  /// Every line has at most `width` columns, and the last no newline. Columns without
  /// any value are left out.
  std::string render(int width, bool has_color) const;
  /// The same columns as a Markdown table, nothing cut.
  std::string markdown() const;

 private:
  std::string line(const std::vector<Cell>& cells, const std::vector<int>& widths, bool is_brief,
                   bool has_color) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Width of `text` in columns of a terminal; UTF-8 is counted by code points.
int display_width(const std::string& text);

/// Replaces control characters, newlines included, by spaces.
std::string printable(const std::string& text);

/// The same for a cell of Markdown.
std::string escaped_markdown(const std::string& text);

/// Makes a text printable and at most `width` columns wide; a text that is cut ends in "..".
std::string fit(const std::string& text, int width);

/// Keeps every line within `width` by breaking at spaces; continuation lines are indented. A line
/// that is a wbench command stays whole.
std::string wrap(const std::string& text, int width);

/// "  NAME: TEXT" for those texts that a rendered table shows cut, each once.
std::string cut_texts(const std::string& rendered,
                      const std::vector<std::pair<std::string, std::string>>& texts, int width);

/// A listing: the first row is the header, the last column is wrapped, nothing is cut or dropped.
std::string listing_text(const std::vector<std::vector<std::string>>& rows, int width);

}  // namespace wide::bench
