// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a report: one for times, one for checks, one for the counters of launches on the
// simulated GPU.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "bench/report/rows.hpp"
#include "bench/report/table.hpp"

namespace wide::bench {

/// Axes that all cases of an op share are stated once, above its table; `n` stays in every row.
class CommonAxes {
 public:
  CommonAxes(const RunResult& result, const std::string& op);
  std::string heading() const;
  std::string rest_of(const catalog::Case& point) const;

 private:
  std::vector<catalog::Case::Entry> common_;
};

using Shown = std::set<const ReportRow*>;

/// The rows of one op, in the order of the result.
Table sweep_table(const std::vector<ReportRow>& rows, const std::string& op, const CommonAxes& axes,
                  const Shown& shown, bool has_one_regime);
Table verify_table(const std::vector<ReportRow>& rows, const std::string& op,
                   const CommonAxes& axes);
Table counters_table(const std::vector<ReportRow>& rows, const std::string& op,
                     const CommonAxes& axes);

/// Three significant digits.
std::string significant(double value);

}  // namespace wide::bench
