// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A result as flat rows, for tables of data: CSV and JSON lines have the same contents.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// Objects of numbers, strings, booleans and null: a row per case, strategy or baseline, and
/// regime. Axes are "axis_<name>", at the end; each op has its own. Counters of the simulated GPU
/// are "counter_<name>" and "counter_buffers_<name>", if there are any.
std::vector<nlohmann::ordered_json> flat_rows(const RunResult& result);

}  // namespace wide::bench
