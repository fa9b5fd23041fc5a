// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The capabilities of standard output.
#pragma once

#include <string>
#include <string_view>

namespace wide::bench {

/// Columns of the terminal, between 80 and 200; COLUMNS overrides; 120 without a terminal.
int output_width();

/// Whether TERM is "dumb": such a terminal shows escape sequences as text.
bool is_dumb_terminal();

/// `when` is "auto", "always" or "never"; auto: on a terminal that is not dumb, unless NO_COLOR is
/// set.
bool wants_color(const std::string& when);

/// A message that quotes user input, in one line: control characters as \n, \r, \t and \xNN, and if
/// longer than 2000 bytes only its beginning and end.
std::string shown_message(std::string_view message);

}  // namespace wide::bench
