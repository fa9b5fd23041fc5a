// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/terminal.hpp"

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

bool wants_color(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == 0);
}

}  // namespace wide::bench
