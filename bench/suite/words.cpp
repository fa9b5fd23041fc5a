// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An entry of a suite as a command line: for the processes of its cases, if it is isolated.
#include <fmt/format.h>

#include "bench/command/options.hpp"
#include "bench/suite/suite.hpp"

namespace wide::bench {

std::vector<std::string> run_words(const RunOptions& o) {
  const Selection& s = o.selection;
  const RunConfig& c = o.config;
  std::vector<std::string> words{"run"};
  const auto add = [&](const std::string& name, const auto& value) {
    const std::string text = fmt::format("{}", value);
    if (!text.empty()) words.push_back("--" + name + "=" + text);
  };
  add("op", s.ops);
  add("preset", s.preset);
  for (const auto& [axis, spec] : s.axis_options) add(axis, spec);
  add("strategy", s.strategies);
  add("skip", s.skip);
  add("baseline", s.baselines);
  add("regime", s.regimes);
  add("filter", s.filter);
  add("device", s.device);
  add("rounds", c.rounds);
  add("min-samples", c.min_samples);
  add("max-samples", c.max_samples);
  add("target-ci", o.target_ci);
  add("warmup-time", c.warmup_s);
  add("timeout", c.timeout_s);
  if (o.budget_s >= 0) add("budget", o.budget_s);
  add("seed", c.seed);
  add("order-seed", c.order_seed);
  add("verify", c.verify);
  if (c.isolate) words.emplace_back("--isolate");
  if (s.no_gpu) words.emplace_back("--no-gpu");
  return words;
}

}  // namespace wide::bench
