// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace wide::bench {

int output_width() {
  int width = 120;
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0)
    width = size.ws_col;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    int value = 0;
    const std::string_view text(columns);
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc())
      width = value;
  }
  return std::clamp(width, 80, 200);
}

bool is_dumb_terminal() {
  const char* type = std::getenv("TERM");
  return type != nullptr && std::string_view(type) == "dumb";
}

bool wants_color(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && !is_dumb_terminal() &&
         (no_color == nullptr || *no_color == 0);
}

std::string shown_message(std::string_view message) {
  constexpr size_t kLongest = 2000, kEnd = 200;
  const auto escaped = [](std::string_view part) {
    std::string text;
    for (const char c : part) {
      const auto code = static_cast<unsigned char>(c);
      const size_t named = std::string_view("\n\r\t").find(c);
      if (named != std::string_view::npos) {
        text += std::string{'\\', "nrt"[named]};
      } else {
        text += code < 0x20 || code == 0x7f ? fmt::format("\\x{:02x}", code) : std::string(1, c);
      }
    }
    return text;
  };
  if (message.size() <= kLongest) return escaped(message);
  return fmt::format("{} .. {} bytes .. {}", escaped(message.substr(0, kLongest - kEnd)),
                     message.size() - kLongest, escaped(message.substr(message.size() - kEnd)));
}

}  // namespace wide::bench
