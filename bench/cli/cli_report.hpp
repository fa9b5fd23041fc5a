// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The grammar of `report`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "bench/cli/commands.hpp"

namespace wide::bench {

void add_report(CLI::App& app, ReportArguments& arguments, const std::string& exit_codes);

}  // namespace wide::bench
