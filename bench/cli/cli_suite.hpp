// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The grammar of `suite`.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/cli/commands.hpp"

namespace wide::bench {

void add_suite(CLI::App& app, SuiteOptions& options);

}  // namespace wide::bench
