// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Messages about invalid command lines, and help on valid ones.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wide::bench {

/// CLI11 only reports that arguments are left over; this says what was probably meant. Throws
/// invalid_argument if there are any.
void require_no_extras(const CLI::App& app, const CLI::App& command);

/// Appends the primitives named without --op to `ops`. Throws invalid_argument if one, other
/// than "all", is the name of an option that lacks its dashes.
std::string with_named_ops(const CLI::App& command, std::string ops,
                           const std::vector<std::string>& named);

/// CLI11's message; for positional arguments, which have no option's name, adds which command they
/// belong to and what is expected.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error);

/// The --help text of the command; without a name, of the program.
std::string help_of(const CLI::App& app, const std::string& command);

/// The commands' names.
std::vector<std::string> command_names(const CLI::App& app);

}  // namespace wide::bench
