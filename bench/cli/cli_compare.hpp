// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The grammar of `compare`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "bench/cli/commands.hpp"

namespace wide::bench {

void add_compare(CLI::App& app, CompareArguments& arguments, const std::string& exit_codes);

}  // namespace wide::bench
