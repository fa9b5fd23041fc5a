// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A run of the history as JSON: for the index of the store of text files, for `history list`, and
// as that whose digest is stored.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "bench/history/history.hpp"

namespace wide::bench {

/// Without its tags, which change.
nlohmann::ordered_json to_json(const HistoryRun& run);
/// Throws Error or the parser's own exception for invalid input.
HistoryRun run_from_json(const nlohmann::ordered_json& document);

/// What the points of a run do not share with it.
nlohmann::ordered_json to_json(std::span<const HistoryPoint> points);

}  // namespace wide::bench
