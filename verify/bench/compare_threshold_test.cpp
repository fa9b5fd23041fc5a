// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `compare --threshold`: of all metrics, or of one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "bench/command/running.hpp"
#include "bench/compare/gate.hpp"
#include "bench/process/exit_code.hpp"
#include "verify/bench/compare_case.hpp"
#include "verify/bench/compare_store.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a metric may have a threshold of its own") {
  const Metric &time = find_measured_metric("time_ns"), &rate = find_measured_metric("flops_per_s");
  CHECK((parse_threshold("5%", time) == 5 && parse_threshold("5", rate) == 5));
  CHECK(parse_threshold("time_ns=2%,flops_per_s=7%", time) == 2);
  CHECK(parse_threshold("time_ns=2%,flops_per_s=7%", rate) == 7);
  CHECK(parse_threshold("3%,flops_per_s=7%", time) == 3);
  CHECK(parse_threshold("flops_per_s=7%,3%", rate) == 7);
  CHECK(parse_threshold("flops_per_s=7%", time) == kThreshold_pct);  // the usual one
  const Store store;
  store.put("base", runs_of({1000}));
  store.put("slow", runs_of({1100}));
  CHECK(store.compare("base slow", "--threshold time_ns=20%").code == kSuccess);
  CHECK(store.compare("base slow", "--threshold flops_per_s=20%").code == kRegression);
  CHECK(store.compare("base slow", "--threshold flops_per_s=20% --metric flops_per_s").code ==
        kSuccess);
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"tme_ns=5%", "--threshold: unknown metric \"tme_ns\", did you mean time_ns?"},
           {"speedup_ratio=5%", "--threshold: metric speedup_ratio: no metric of single times"},
           {"=5%", "--threshold: unknown metric"},
           {"time_ns=", "\"\", expected METRIC=PERCENT or a percentage such as 0.5%"},
           {"time_ns=-1%", "\"-1%\", expected METRIC=PERCENT or a percentage"},
           {"5%,,", "--threshold: \"\", expected"},
           {"5%,6%", "has two thresholds of all metrics, expected one"},
           {"time_ns=5%,time_ns=5%", "has two thresholds of time_ns, expected one"}}) {
    const Outcome o = store.compare("base slow", "--threshold " + text);
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring(message));
  }
}

}  // namespace
}  // namespace wide::bench
