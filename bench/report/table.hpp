// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A text table that fits a width: columns of little importance give way first, then the widest cell
// of the last column is cut. Numbers are never cut.
#pragma once

#include <string>
#include <vector>

namespace wide::bench {

enum class Tone : uint8_t { plain, good, bad, dim };

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
};

struct Column {
  std::string title;
  bool is_right = true;  ///< numbers
  int keep = 0;          ///< columns with a smaller number are dropped first; 9 is never dropped
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  /// Every line at most `width` columns, without a newline at the end of the last.
  std::string render(int width, bool has_color) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Columns that `text` takes on a terminal, UTF-8 counted by code points.
int display_width(const std::string& text);

}  // namespace wide::bench
