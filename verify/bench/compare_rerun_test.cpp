// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `compare --rerun`: two builds by turns, and what is left of them where that is cut short. Shell
// scripts stand for the builds.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/history/history.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/compare_case.hpp"
#include "verify/bench/compare_store.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

/// Builds "base" and "slow", which log that they ran and leave results saved before.
struct Builds : Store {
  std::string log = (path / "log").string();

  Builds() {
    put("base", runs_of({1000, 2000}));
    put("slow", runs_of({1000, 2300}));
    for (const std::string name : {"base", "slow"}) leave_result(name);
  }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::string both() const { return file("base.sh") + " " + file("slow.sh"); }

  void write_program(const std::string& name, const std::string& body) const {
    write_file(file(name), "#!/bin/sh\necho " + name + " $* >>" + log + "\n" + body + "\n");
    std::filesystem::permissions(file(name), std::filesystem::perms::owner_all);
  }
  /// Where it is told to, as far as `before` lets it come there. Each time another one.
  void leave_result(const std::string& name, const std::string& before = "") const {
    const std::string number = "$(($(grep -c ^" + name + " " + log + ") - 1))";
    write_program(name + ".sh", before + "\nwhile [ $1 != --json ]; do shift; done; cp " +
                                    file(name + "/" + number + ".json") +
                                    " $2; echo noise; exit 3");
  }
  /// "bssb" of base, slow, slow, base.
  std::string order() const {
    std::istringstream lines(read_file(log));
    std::string order;
    for (std::string line; std::getline(lines, line);) order += line[0];
    return order;
  }
};

TEST_CASE("two builds are run by turns") {
  const Builds builds;
  // What lies between days is no noise of sides that took turns.
  const auto kept = open_history(builds.file("h"));
  for (int i = 0; i < 3; ++i) {
    RunResult run = run_of({1000. * (i + 1), 2000. * (i + 1)});
    run.id = "before-" + std::to_string(i);
    kept->add(record_of(consistent(run), std::to_string(i)));
  }
  const Outcome outcome = wbench("compare --rerun --repeat 3 --color never --store " +
                                 builds.file("h") + " " + builds.both() + " -- --op linear -d cpu");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kRegression);
  CHECK_THAT(outcome.out, ContainsSubstring("base: 3 runs") && ContainsSubstring("SLOWER"));
  std::istringstream lines(read_file(builds.log));
  for (std::string line; std::getline(lines, line);)
    CHECK_THAT(line, ContainsSubstring(".sh run --op linear -d cpu --json /"));
  CHECK(builds.order() == "bssbbs");
  CHECK_THAT(outcome.err, ContainsSubstring("[6/6] "));
  std::filesystem::remove(builds.log);
  const Outcome quiet =
      wbench("compare -q --rerun --repeat 3 " + builds.both() + " -- --op linear");
  CHECK(builds.order() == "bssbbs");
  CHECK((quiet.code == kRegression && quiet.err.empty()));
}

TEST_CASE("what is no build, and arguments that it cannot be given, are refused") {
  const Builds builds;
  const Outcome absent = wbench("compare --rerun " + builds.both() + "x -- --op linear");
  CHECK(absent.code == kRuntimeError);
  CHECK_THAT(absent.err, ContainsSubstring("slow.shx: No such file or directory"));
  for (const std::string& other :
       {builds.path.string(), builds.log + "/x", std::string("n-o-n-e")}) {
    const Outcome o = wbench("compare --rerun " + builds.file("base.sh") + " " + other);
    CHECK(o.code == kRuntimeError);
    CHECK_THAT(o.err, ContainsSubstring("wbench: cannot start " + other));
  }
  CHECK(!std::filesystem::exists(builds.log));  // not even what can be started
  builds.write_program("broken.sh", "exit 3");
  const std::string broken = builds.file("broken.sh");
  CHECK_THAT(wbench("compare --rerun " + broken + " " + broken).err,
             ContainsSubstring("exit code 3 and left no result"));
  CHECK(wbench("compare " + builds.both() + " extra").code == kUsage);
  std::filesystem::remove(builds.log);
  for (const char* repeat : {"--repeat 3", "--repeat=3"}) {
    const Outcome nested = wbench("compare --rerun " + builds.both() + " -- --op linear " + repeat);
    CHECK(nested.code == kUsage);
    CHECK_THAT(nested.err, ContainsSubstring("--repeat is after --, expected before it"));
  }
  CHECK(!std::filesystem::exists(builds.log));  // before anything ran
}

TEST_CASE("arguments that a build refuses, and a device that is not there, are its exit codes") {
  const Builds builds;
  const int code = GENERATE(kUsage, kNothingRan, kEnvironment);
  builds.write_program("slow.sh", "exit " + std::to_string(code));
  const Outcome o = wbench("compare -q --rerun " + builds.both());
  CHECK(o.code == code);
  CHECK(builds.order() == "bs");
  CHECK_THAT(o.err, ContainsSubstring("slow.sh ended with exit code " + std::to_string(code) +
                                      " and left no result"));
}

TEST_CASE("what was finished is compared where the turns are cut short") {
  const Builds builds;
  // The fifth turn is base's third.
  const auto [how, code] = GENERATE(table<std::string, int>({
      {"exit 130", kInterrupted},                // Ctrl-C, which the child was told as well
      {"exit 124", kTimedOut},                   // --time-limit of the arguments
      {"kill -INT $PPID; exit 1", kInterrupted}  // before the child was ready for it
  }));
  INFO(how);
  builds.leave_result("base", "[ $(wc -l <" + builds.log + ") -ge 5 ] && { " + how + "; }");
  const std::string document = builds.file("c.json");
  const Outcome o = wbench("compare --rerun --repeat 6 --noise-floor none --format json -o " +
                           document + " " + builds.both() + " -- --op linear");
  CHECK(o.code == code);
  CHECK(builds.order() == "bssbb");
  CHECK_THAT(o.err, ContainsSubstring("cut short; finished runs: base 2, candidate 2"));
  const json rows = json::parse(read_file(document))["rows"];
  CHECK(rows.size() == 2);
  CHECK((rows[1]["base"]["n_runs"] == 2 && rows[1]["candidate"]["n_runs"] == 2));
  CHECK(rows[1]["status"] == "SLOWER");
}

TEST_CASE("a run that was cut short is not compared, nor is one side alone") {
  const Builds builds;
  RunResult partial = run_of({1000});
  partial.exit_code = kTimedOut;
  write_file(builds.file("slow/0.json"), to_json(consistent(partial)).dump());
  const Outcome o = wbench("compare --rerun -o " + builds.file("c.json") + " " + builds.both());
  CHECK(o.code == kTimedOut);
  CHECK(builds.order() == "bs");
  CHECK_THAT(o.err, ContainsSubstring("cut short; finished runs: base 1, candidate 0"));
  CHECK((o.out.empty() && !std::filesystem::exists(builds.file("c.json"))));
}

TEST_CASE("a run that ends although it was interrupted counts") {
  const Builds builds;
  builds.leave_result("slow", "trap '' TERM; kill -INT $PPID");  // which its parent passes on
  const Outcome o = wbench("compare --rerun " + builds.both());
  CHECK(o.code == kInterrupted);
  CHECK_THAT(o.out, ContainsSubstring("base: 1 run of"));
}

}  // namespace
}  // namespace wide::bench
