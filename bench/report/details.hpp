// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is known of a measurement besides its time: the cost and resources of its launches, energy,
// clocks, memory, and the spread of its samples. For -v, Markdown and CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/tables.hpp"

namespace wide::bench {

/// "1.5 kB"; "8x1x1".
std::string bytes_text(int64_t bytes);
std::string extents_text(const std::vector<int64_t>& extents);
/// A readable name: demangled, and without the parts that all kernels share.
std::string kernel_name(std::string name);

/// For one op, a row per measurement. Columns without any known value are left out.
Table details_table(const std::vector<ReportRow>& rows, const std::string& op,
                    const CommonAxes& axes, const Shown& shown);
/// For one op, a row per kernel of a call.
Table kernels_table(const std::vector<ReportRow>& rows, const std::string& op,
                    const CommonAxes& axes, const Shown& shown);

/// How the run was measured: warm-up, order, when it stopped, clocks.
std::string method_text(const RunResult& result);

/// The same as keys of a flat row; null if unknown.
void add_details(const ReportRow& row, nlohmann::ordered_json& flat);

}  // namespace wide::bench
