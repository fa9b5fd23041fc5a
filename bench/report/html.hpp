// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// HTML in pieces. All text of a result goes through escape_html() or script_data(), whatever its
// source.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wide::bench {

/// Escapes text for content and quoted attributes; invalid characters become U+FFFD.
std::string escape_html(std::string_view text);

/// A document for a script element of type application/json, escaped so that it cannot end it.
std::string script_data(const nlohmann::ordered_json& document);

struct HtmlCell {
  std::string text;
  std::string kind{};   ///< a class of page.css
  std::string style{};  ///< declarations, from our own code only: not escaped
};

/// A table with its own scroll bar if it is wide, and with headers marked for screen readers.
class HtmlTable {
 public:
  struct Column {
    std::string title;
    bool is_number = true;
  };
  HtmlTable(std::string caption, std::vector<Column> columns)
      : caption_(std::move(caption)), columns_(std::move(columns)) {}
  /// The first cell names the row.
  void add(std::vector<HtmlCell> row) { rows_.push_back(std::move(row)); }
  bool is_empty() const { return rows_.empty(); }
  /// Columns without any text are left out.
  std::string render(const std::string& kind = "") const;

 private:
  std::string caption_;
  std::vector<Column> columns_;
  std::vector<std::vector<HtmlCell>> rows_;
};

}  // namespace wide::bench
