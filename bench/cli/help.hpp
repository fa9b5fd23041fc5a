// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How --help is laid out, and its reference part below the options: the meaning of columns, names
// and exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace wide::bench {

/// Every axis of every primitive and model by its name, with all its meanings, and for whom each
/// applies where there are several.
std::vector<std::pair<std::string, std::string>> axis_summaries();

/// Keeps texts within the terminal's width, options' beside their names.
std::shared_ptr<CLI::FormatterBase> help_formatter();

std::string exit_codes();
std::string run_footer();
std::string tune_footer();
std::string quantize_footer();
std::string inspect_footer();
std::string history_footer();

}  // namespace wide::bench
