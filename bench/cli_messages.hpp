// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is said of a command line that is not one, and how one is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wide::bench {

/// CLI11 knows only that something is left over; this says what was probably meant. Throws
/// invalid_argument where anything is.
void require_no_extras(const CLI::App& app, const CLI::App& command);

/// Primitives named without --op, behind `ops` of it. Throws invalid_argument where one, but
/// for "all", is the name of an option that lacks its dashes.
std::string with_named_ops(const CLI::App& command, std::string ops,
                           const std::vector<std::string>& named);

/// CLI11's message, and of a command's arguments, which have names of no option, whose they are and
/// what they are to be.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error);

/// What --help of the command says; without a name, of all.
std::string help_of(const CLI::App& app, const std::string& command);

/// The commands' names.
std::vector<std::string> command_names(const CLI::App& app);

}  // namespace wide::bench
