// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What standard output can take.
#pragma once

#include <string>
#include <string_view>

namespace wide::bench {

/// Columns of the terminal, between 80 and 200; COLUMNS counts; 120 where there is none.
int output_width();

/// `when` is "auto", "always" or "never"; auto: on a terminal, unless NO_COLOR is set.
bool wants_color(const std::string& when);

/// A message with what users typed in it: control characters as \xNN, but for newlines and tabs,
/// and of what is longer than 2000 bytes the beginning and the end.
std::string shown_message(std::string_view message);

}  // namespace wide::bench
