// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What results measure, and which direction is better, defined once for results, comparisons and
// readers that know neither.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/document/result.hpp"

namespace wide::bench {

enum class Better : uint8_t { lower, higher };

struct Metric {
  const char* name;
  const char* hint;  ///< how to print it: "duration", "flop_rate", ..
  Better better;
  /// At the median of a measurement, if the measurement has it; null for metrics of cases.
  std::optional<double> (*value)(const Measurement&);
};

std::span<const Metric> metrics();

/// A metric of measurements; throws invalid_argument with the nearest names.
const Metric& find_measured_metric(const std::string& name);

std::string_view to_string(Better better);

}  // namespace wide::bench
