// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The options of info, quantize and history.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/cli/commands.hpp"

namespace wide::bench {

void add_info(CLI::App& app, InfoOptions& options);
void add_quantize(CLI::App& app, QuantizeOptions& options);
void add_history(CLI::App& app, HistoryOptions& options);

}  // namespace wide::bench
