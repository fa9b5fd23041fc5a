// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/metrics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr Metric kMetrics[] = {
    {"time_ns", "duration", Better::lower,
     [](const Measurement& m) { return std::optional(m.stats.median_ns); }},
    {"flops_per_s", "flop_rate", Better::higher,
     [](const Measurement& m) { return m.flops_per_s; }},
    {"mem_bw_bytes_per_s", "byte_rate", Better::higher,
     [](const Measurement& m) { return m.mem_bw_bytes_per_s; }},
    {"items_per_s", "item_rate", Better::higher,
     [](const Measurement& m) { return m.items_per_s; }},
    {"pct_of_floor", "percent", Better::higher,
     [](const Measurement& m) { return m.pct_of_floor; }},
    {"speedup_ratio", "ratio", Better::higher, nullptr},
    {"worst_error_ratio", "ratio", Better::lower, nullptr}};

}  // namespace

std::span<const Metric> metrics() {
  return kMetrics;
}

const Metric& find_measured_metric(const std::string& name) {
  std::vector<std::string_view> names;
  bool unmeasured = false;
  for (const Metric& metric : kMetrics) {
    if (metric.value != nullptr) names.emplace_back(metric.name);
    if (name != metric.name) continue;
    if (metric.value != nullptr) return metric;
    unmeasured = true;
  }
  if (unmeasured) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("metric {}: no metric of single times, expected one of {}", name,
                            fmt::join(names, ", ")));
  }
  throw Error(ErrorCode::invalid_argument, catalog::unknown_name_message("metric", name, names));
}

std::string_view to_string(Better better) {
  return better == Better::lower ? "lower" : "higher";
}

}  // namespace wide::bench
