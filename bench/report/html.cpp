// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/html.hpp"

namespace wide::bench {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_control = (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f';
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += is_control ? std::string("\xef\xbf\xbd") : std::string(1, c);
    }
  }
  return out;
}

std::string script_data(const nlohmann::ordered_json& document) {
  // Plain ASCII; characters special to HTML occur only in strings, where JSON may escape them.
  const std::string text =
      document.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

std::string HtmlTable::render(const std::string& kind) const {
  std::vector<bool> has_text(columns_.size(), false);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) has_text[i] = has_text[i] || !row[i].text.empty();
  }
  const std::string caption = escape_html(caption_);
  // Focus allows scrolling without a mouse.
  std::string out = "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + caption +
                    "\"><table class=\"" + kind + "\"><caption>" + caption +
                    "</caption><thead><tr>";
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (has_text[i])
      out += std::string("<th scope=\"col\"") + (columns_[i].is_number ? " class=\"num\">" : ">") +
             escape_html(columns_[i].title) + "</th>";
  }
  out += "</tr></thead><tbody>";
  for (const auto& row : rows_) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      if (!has_text[i]) continue;
      std::string classes = columns_[i].is_number ? "num" : "";
      if (!row[i].kind.empty()) classes += (classes.empty() ? "" : " ") + row[i].kind;
      const char* tag = i == 0 ? "th" : "td";
      out += std::string("<") + tag + (i == 0 ? " scope=\"row\"" : "");
      if (!classes.empty()) out += " class=\"" + classes + "\"";
      if (!row[i].style.empty()) out += " style=\"" + row[i].style + "\"";
      out += ">" + escape_html(row[i].text) + "</" + tag + ">";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace wide::bench
