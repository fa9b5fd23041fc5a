// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A result as flat rows, for tables of data: CSV and JSON lines say the same.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

/// Objects of numbers, strings, booleans and null: a row per case, strategy or baseline, and
/// regime. Axes are "axis_<name>", at the end; an op has its own. What the simulated GPU counted is
/// "counter_<name>" and "counter_buffers_<name>", where it did.
std::vector<nlohmann::ordered_json> flat_rows(const RunResult& result);

}  // namespace wide::bench
