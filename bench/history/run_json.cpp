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
          {"ops", run.ops},
          {"cases", run.num_cases},
          {"exit_code", run.exit_code},
          {"complete", run.complete}};
}

HistoryRun run_from_json(const nlohmann::ordered_json& document) {
  HistoryRun run;
  run.id = document.at("id").get<std::string>();
  run.started = document.at("started").get<std::string>();
  run.git_sha = document.at("git_sha").get<std::string>();
  run.git_dirty = document.at("git_dirty").get<bool>();
  run.device = document.at("device").get<std::string>();
  run.ops = document.at("ops").get<std::string>();
  run.num_cases = document.at("cases").get<int64_t>();
  run.exit_code = document.at("exit_code").get<int>();
  run.complete = document.at("complete").get<bool>();
  require_name("id", run.id);
  return run;
}

}  // namespace wide::bench
