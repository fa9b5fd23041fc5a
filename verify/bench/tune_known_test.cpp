// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `wbench tune` with a file that has what it would measure.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/context.hpp"
#include "wide/tuning.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;

Outcome tune(const std::string& options) {
  return wbench(
      "tune --op linear --batch 2 --d 8 --device cpu --warmup-time 0 --rounds 3 --min-samples 3 "
      "--max-samples 6 --color never --tuning t.json " +
      options);
}

TEST_CASE("what the file has by the same options is not measured again") {
  const test::TemporaryFolder folder;
  CHECK_THAT(tune("--n 2").err, ContainsSubstring("wrote t.json: 1 entry\n"));
  const std::string text = read_file("t.json");
  for (const std::string same : {"--n 2", "--n 2 --dry-run", "--n 2 --preset ci"}) {
    const Outcome o = tune(same);
    CHECK(o.code == kSuccess);
    CHECK(o.out.empty());
    CHECK(o.err ==
          "wbench: linear: t.json has 1 of 1 case by the same options; --again measures anew\n");
    CHECK(read_file("t.json") == text);
  }
  const Outcome more = tune("--n 2,3");
  CHECK_THAT(more.err, ContainsSubstring("1 of 2 cases by the same options"));
  CHECK_THAT(more.out, ContainsSubstring("n=3") && !ContainsSubstring("n=2"));
}

TEST_CASE("another request is measured, and what other kernels left") {
  const test::TemporaryFolder folder;
  const auto is_measured = [](const std::string& options) {
    const Outcome o = tune("--n 2 " + options);
    CHECK(o.code == kSuccess);
    return o.out.find("n=2 batch=2 d=8") != std::string::npos;
  };
  for (const std::string other :
       {"", "--again", "--strategy wide", "--search halving", "--order-seed 7", "--apply t.json"}) {
    INFO(other);
    CHECK(is_measured(other));
  }
  CHECK_FALSE(is_measured("--apply t.json"));
  TuningCache cache = TuningCache::load("t.json");
  const DeviceInfo device = Context::cpu().info();
  const std::string key = tiny_key();
  REQUIRE(cache.find(device, "linear", key) != nullptr);
  TuningEntry entry = *cache.find(device, "linear", key);
  entry.kernel_hash = "of other kernels";
  cache.set(device, "linear", key, entry);
  cache.save("t.json");
  CHECK(is_measured("--apply t.json"));
}

}  // namespace
}  // namespace wide::bench
