// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A run of the history as JSON: for the index of the store of text files, and for `history list`.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/history/history.hpp"

namespace wide::bench {

/// Without its tags, which change.
nlohmann::ordered_json to_json(const HistoryRun& run);
/// Throws Error or the parser's own exception for invalid input.
HistoryRun run_from_json(const nlohmann::ordered_json& document);

}  // namespace wide::bench
