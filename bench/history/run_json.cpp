// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/history/run_json.hpp"

namespace wide::bench {

nlohmann::ordered_json to_json(const HistoryRun& run) {
  return {{"id", run.id},
          {"started", run.started},
          {"git_sha", run.git_sha},
          {"git_dirty", run.git_dirty},
          {"device", run.device},
          {"device_uuid", run.device_uuid},
          {"ops", run.ops},
          {"cases", run.num_cases},
          {"exit_code", run.exit_code},
          {"complete", run.complete},
          {"sha256", run.sha256}};
}

HistoryRun run_from_json(const nlohmann::ordered_json& document) {
  HistoryRun run;
  run.id = document.at("id").get<std::string>();
  run.started = document.at("started").get<std::string>();
  run.git_sha = document.at("git_sha").get<std::string>();
  run.git_dirty = document.at("git_dirty").get<bool>();
  run.device = document.at("device").get<std::string>();
  run.device_uuid = document.value("device_uuid", "");
  run.ops = document.at("ops").get<std::string>();
  run.num_cases = document.at("cases").get<int64_t>();
  run.exit_code = document.at("exit_code").get<int>();
  run.complete = document.at("complete").get<bool>();
  run.sha256 = document.value("sha256", "");
  require_name("id", run.id);
  return run;
}

nlohmann::ordered_json to_json(std::span<const HistoryPoint> points) {
  auto all = nlohmann::ordered_json::array();
  for (const HistoryPoint& p : points) {
    all.push_back(
        {p.case_id, p.op, p.axes, p.runner, p.regime, p.median_ns, p.ci_lo_ns, p.ci_hi_ns});
  }
  return all;
}

}  // namespace wide::bench
