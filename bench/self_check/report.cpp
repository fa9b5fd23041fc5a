// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/self_check/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/table.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string measured_text(const SelfCheck& check) {
  if (!check.measured) return "";
  const double size = *check.measured;
  return fmt::format(
      "{} {}", size == std::floor(size) ? fmt::format("{:.0f}", size) : fmt::format("{:.3g}", size),
      check.unit);
}

std::vector<std::vector<std::string>> rows_of(const std::vector<SelfCheck>& checks) {
  std::vector<std::vector<std::string>> rows{
      {"check", "device", "status", "measured", "expected", "what it is"}};
  for (const SelfCheck& c : checks) {
    rows.push_back(
        {c.name, c.device, std::string(to_string(c.status)), measured_text(c), c.expected, c.text});
  }
  return rows;
}

int64_t count_of(const std::vector<SelfCheck>& checks, CheckStatus status) {
  return std::count_if(checks.begin(), checks.end(),
                       [&](const SelfCheck& check) { return check.status == status; });
}

}  // namespace

nlohmann::ordered_json to_json(const std::vector<SelfCheck>& checks) {
  Json list = Json::array();
  for (const SelfCheck& c : checks) {
    list.push_back({{"name", c.name},
                    {"device", c.device},
                    {"status", to_string(c.status)},
                    {"measured", c.measured ? Json(*c.measured) : Json(nullptr)},
                    {"unit", c.unit},
                    {"expected", c.expected},
                    {"text", c.text}});
  }
  return {{"passed", count_of(checks, CheckStatus::passed)},
          {"failed", count_of(checks, CheckStatus::failed)},
          {"skipped", count_of(checks, CheckStatus::skipped)},
          {"checks", list}};
}

std::string to_text(const std::vector<SelfCheck>& checks, int width) {
  return listing_text(rows_of(checks), width) +
         fmt::format("{} passed, {} failed, {} skipped\n", count_of(checks, CheckStatus::passed),
                     count_of(checks, CheckStatus::failed), count_of(checks, CheckStatus::skipped));
}

bool has_failed(const std::vector<SelfCheck>& checks) {
  return count_of(checks, CheckStatus::failed) > 0;
}

}  // namespace wide::bench
