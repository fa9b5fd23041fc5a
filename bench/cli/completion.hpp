// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The command line described for other tools: scripts that complete it in a shell, and its manual
// page. Both are generated from the parser, so that neither can get out of date.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wide::bench {

/// For "bash", "zsh" or "fish"; throws invalid_argument with the nearest names.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// troff, for man(1).
std::string man_page(const CLI::App& app);

/// The values that an option or argument may take, if it accepts a fixed set of few words.
std::vector<std::string> words_of(const CLI::Option& option);

/// Refuses any other word, and suggests similar ones.
CLI::Validator one_of(std::vector<std::string> words);

}  // namespace wide::bench
