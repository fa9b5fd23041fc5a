// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Messages of the readers of files.
#include "host/import/messages.hpp"

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"

namespace wide {

std::string in_quotes(std::string_view text) {
  const bool is_long = text.size() > 60;
  if (is_long) text = text.substr(0, 57);
  while (is_long && !text.empty() && (text.back() & 0x80) != 0)
    text.remove_suffix(1);  // do not cut a character in half
  std::string out = "\"";
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (is_long ? "..\"" : "\"");
}

void refuse_unknown_tensor(const std::string& format, std::string_view name,
                           std::span<const std::string_view> names) {
  throw_invalid_argument(format + ": there is no tensor " + in_quotes(name) +
                         did_you_mean(name, names, in_quotes));
}

}  // namespace wide
