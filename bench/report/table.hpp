// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A text table that fits a width. What is too wide gives way in this order: long texts of columns
// that have a cap, columns of little importance, long forms of cells, the other columns that may
// go, and at last texts of any column. Numbers are never cut.
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
  std::string brief{};  ///< what is shown where `text` makes the table too wide; empty: `text`
};

struct Column {
  /// Below kBriefAt: dropped before cells become brief; kNeverDropped: stays.
  static constexpr int kBriefAt = 5, kNeverDropped = 9;
  std::string title;
  bool is_number = true;  ///< aligned right, never cut
  int keep = 0;           ///< columns with a smaller number are dropped first
  int cap = 0;            ///< a text column yields down to this width first; 0: it does not
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool is_empty() const { return rows_.empty(); }
  /// Of the columns that say how a row came out; those that say what it is are left out.
  std::vector<std::string> measures() const;
  /// Leaves out the measures that are not among these, and never drops those that are; whether
  /// there are any.
  bool choose(const std::vector<std::string>& measures);
  /// Every line at most `width` columns, without a newline at the end of the last. Columns without
  /// any value are left out.
  std::string render(int width, bool has_color) const;
  /// The same columns as a table of Markdown, nothing cut.
  std::string markdown() const;

 private:
  std::string line(const std::vector<Cell>& cells, const std::vector<int>& widths, bool is_brief,
                   bool has_color) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Columns that `text` takes on a terminal, UTF-8 counted by code points.
int display_width(const std::string& text);

/// Control characters, newlines too, become spaces.
std::string printable(const std::string& text);

/// The same for a cell of Markdown.
std::string escaped_markdown(const std::string& text);

/// Printable and at most `width` columns; what does not fit ends in "..".
std::string fit(const std::string& text, int width);

/// Keeps every line within `width` by breaking at spaces; what continues is indented. A line that
/// is a command of wbench stays whole.
std::string wrap(const std::string& text, int width);

/// "  NAME: TEXT" for those texts that a rendered table does not have whole, each once.
std::string cut_texts(const std::string& rendered,
                      const std::vector<std::pair<std::string, std::string>>& texts, int width);

/// A listing: the first row is the header, the last column is wrapped, nothing is cut or dropped.
std::string listing_text(const std::vector<std::vector<std::string>>& rows, int width);

}  // namespace wide::bench
