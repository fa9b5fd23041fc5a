// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/ptx/text.hpp"

#include <cctype>
#include <charconv>

#include "verify/simt/types.hpp"

namespace wide::ptx {

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != separator || depth != 0) continue;
    parts.emplace_back(trim(text.substr(start, i - start)));
    start = i + 1;
  }
  if (const std::string_view last = trim(text.substr(start)); !last.empty())
    parts.emplace_back(last);
  return parts;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  size_t i = 0;
  while (i < text.size()) {
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i])) != 0) ++i;
    const size_t start = i;
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i])) == 0) ++i;
    if (i > start) all.emplace_back(text.substr(start, i - start));
  }
  return all;
}

bool is_number(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
}

uint64_t parse_number(std::string_view text) {
  const auto refuse = [&] { return simt::Unsupported("ptx: number " + std::string(text)); };
  std::string_view digits = text;
  const bool is_negative = !digits.empty() && digits[0] == '-';
  if (is_negative) digits.remove_prefix(1);
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char mark = static_cast<char>(std::tolower(static_cast<unsigned char>(digits[1])));
    const bool is_float =
        (mark == 'f' && digits.size() == 10) || (mark == 'd' && digits.size() == 18);
    if (mark == 'x' || is_float) base = 16;
    if (mark == 'b' && !is_float) base = 2;
    if (base != 10) digits.remove_prefix(2);
  }
  if (!digits.empty() && digits.back() == 'U') digits.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) throw refuse();
  return is_negative ? uint64_t{0} - value : value;
}

}  // namespace wide::ptx
