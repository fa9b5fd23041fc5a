// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The command line described for others: scripts that complete it in a shell, and its manual page.
// Both come from the parser, so that neither can fall behind it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace wide::bench {

/// For "bash", "zsh" or "fish"; throws invalid_argument with the nearest names.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// troff, for man(1).
std::string man_page(const CLI::App& app);

/// What may follow an option or stands for an argument, as far as it is one of few words.
std::vector<std::string> words_of(const CLI::Option& option);

/// Refuses what is none of these words, and says which are near.
CLI::Validator one_of(std::vector<std::string> words);

}  // namespace wide::bench
