// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Files that commands write are judged before any work: none replaces another, nor what is read.
#include <sys/resource.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>

#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/run_program.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"
#include "verify/support/folder.hpp"

namespace wide::bench {

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

/// A folder with results a.json and b.json, and other names of a.json.
struct Results : test::TemporaryFolder {
  Results() {
    RunResult result = consistent(sample_result());
    for (const char* name : {"a.json", "b.json"}) {
      result.id = name;
      write_file(name, to_json(result).dump());
    }
    fs::create_symlink("a.json", "link");
    fs::create_hard_link("a.json", "hard");
    fs::create_directory("in");
    fs::create_directory_symlink(".", "in/up");
    fs::copy_file("a.json", "in/r.json");
    write_file("w.bin", std::string(2 * 64 * 4, 'w'));
  }
};

}  // namespace

TEST_CASE("two documents are not written to one file") {
  const Results folder;
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {"run " + kTiny + "--json r.x --csv r.x",
       "--json r.x and --csv r.x are one file, expected two"},
      {"run " + kTiny + "--md ./r.x --html in/../r.x", "--md ./r.x and --html in/../r.x are one"},
      {"run " + kTiny + "--events r.x -o r.x", "--json r.x and --events r.x are one file"},
      {"run " + kTiny + "--json link --csv a.json", "--json link and --csv a.json are one file"},
      {"run " + kTiny + "--json hard --export csv=a.json", "--json hard and --export a.json are"},
      {"run " + kTiny + "--json r.x --json r.x", "--json r.x and --json r.x are one file"},
      {"run --repeat 2 " + kTiny + "--json r.x --md r.x", "--md r-1.x are one file"},
      {"verify --op linear -d cpu --junit r.x --json r.x", "--json r.x and --junit r.x are one"},
      {"report a.json --html r.x --md r.x", "--html r.x and --md r.x are one file"},
      {"show a.json --export csv=r.x --export md=r.x", "--export r.x and --export r.x are one"},
      {"trace -m mlp --compile none -o r.x --json r.x", "--output r.x and --json r.x are one"},
      {"suite run quick --results in --json in/up/linear.json", "are one file"},
      {"info --json r.x --json r.x", "--json r.x and --json r.x are one file"},
  }));
  CAPTURE(line);
  const std::string before = read_file("a.json");
  const Outcome o = wbench(line);
  CHECK(o.code == kUsage);
  CHECK(o.out.empty());
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK_FALSE(fs::exists("r.x"));
  CHECK(read_file("a.json") == before);
}

TEST_CASE("what a command reads is not written over") {
  const Results folder;
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {"compare a.json b.json --format json -o a.json",
       "--output a.json would replace the base a.json, which is read, expected another file"},
      {"compare a.json b.json -o ./b.json", "would replace the candidate b.json"},
      {"compare b.json link -o a.json", "would replace the candidate link"},
      {"compare b.json in -o in/r.json", "would replace the candidate in/r.json"},
      {"compare --rerun a.json b.json -o a.json", "would replace the executable a.json"},
      {"report a.json --html a.json", "--html a.json would replace the result a.json"},
      {"report a.json --md hard", "--md hard would replace the result a.json"},
      {"report a.json --compare b.json --md b.json", "would replace --compare b.json"},
      {"show a.json --export csv=a.json", "--export a.json would replace the result a.json"},
      {"quantize w.bin --in 64 --out 2 --json w.bin", "would replace the weight w.bin"},
      {"run " + kTiny + "--compare a.json --json a.json", "would replace --compare a.json"},
      {"run " + kTiny + "--tuning w.bin --json w.bin", "would replace --tuning w.bin"},
  }));
  CAPTURE(line);
  const auto contents = [] {
    return std::array{read_file("a.json"), read_file("b.json"), read_file("w.bin")};
  };
  const auto before = contents();
  const Outcome o = wbench(line);
  CHECK(o.code == kUsage);
  CHECK(o.out.empty());
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK((contents() == before));
}

TEST_CASE("programs that are started may end by a file that may not grow, though we do not") {
  const test::TemporaryFolder folder;
  CHECK(wbench("list").code == kSuccess);
  REQUIRE(run_program_into("status", "", {"grep", "SigIgn", "/proc/self/status"}) == 0);
  const std::string status = read_file("status");
  const uint64_t ignored = std::stoull(status.substr(status.find(':') + 1), nullptr, 16);
  CHECK((ignored >> (SIGXFSZ - 1) & 1) == 0);
}

TEST_CASE("what cannot be written is known before any work") {
  const Results folder;
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {"run " + kTiny + "--json no/r.json", "cannot write no/r.json: no is no folder"},
      {"run " + kTiny + "--json in", "cannot write in: Is a directory"},
      {"run " + kTiny + "--csv in", "cannot write in: Is a directory"},
      {"run " + kTiny + "--events in", "cannot write in: Is a directory"},
      {"run " + kTiny + "--md a.json/r.md", "cannot write a.json/r.md: a.json is no folder"},
      {"run --repeat 2 " + kTiny + "--json no/r.json", "cannot write no/r-1.json: no is no folder"},
      {"tune " + kTiny + "--tuning no/t.json", "cannot write no/t.json: no is no folder"},
      {"tune " + kTiny + "--tuning in/no/t.json", "in/no is no folder"},
      {"compare --rerun /bin/false /bin/false -o no/c", "cannot write no/c: no is no folder"},
      {"compare a.json b.json -o in", "cannot write in: Is a directory"},
      {"report a.json --html no/r.html", "no is no folder"},
      {"show a.json --export csv=in", "cannot write in: Is a directory"},
      {"quantize --in 64 --out 2 --json no/q.json", "cannot write no/q.json: no is no folder"},
      {"trace -m mlp --compile none --json - -o in", "cannot write in: Is a directory"},
      {"info --json no/i.json", "no is no folder"},
      {"suite run quick --entry linear --json no/s.json", "no is no folder"},
      {"suite run quick --entry linear --results a.json/x", "cannot write a.json/x: Not a dir"},
  }));
  CAPTURE(line);
  const Outcome o = wbench(line);
  CHECK(o.code == kRuntimeError);
  CHECK(o.out.empty());
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK(wbench(line + (line.starts_with("run") ? " --dry-run" : " --help")).code == kSuccess);
}

TEST_CASE("a name that is too long, links in a circle and a history without a place are refused") {
  const Results folder;
  fs::create_symlink("circle", "circle");
  const std::string most(255, 'a'), long_name(300, 'a'), samples(240, 'a');
  const auto [line, message] = GENERATE_COPY(table<std::string, std::string>({
      {"run " + kTiny + "-o " + long_name, "aa: File name too long"},
      {"run " + kTiny + "--csv in/" + most + "a", "aa: File name too long"},
      {"run " + kTiny + "-o " + samples, "aa.samples.f64le.new: File name too long"},
      {"run " + kTiny + "-o circle", "cannot write circle: Too many levels of symbolic links"},
      {"run " + kTiny + "--junit circle/x", "cannot write circle/x: Too many levels"},
      {"run " + kTiny + "-s --store a.json/h", "cannot make a.json/h: Not a directory"},
      {"run " + kTiny + "--tag x --store jsonl:/proc/h", "cannot make /proc/h/runs: "},
      {"suite run quick --entry linear -s --store /proc/h", "cannot make /proc/h: "},
  }));
  CAPTURE(line);
  const Outcome o = wbench(line);
  CHECK(o.code == kRuntimeError);
  CHECK(o.out.empty());
  CHECK_THAT(o.err, ContainsSubstring(message));
  CHECK_FALSE(fs::exists("results"));
  CHECK(wbench("show a.json --export md=" + most).code == kSuccess);  // by a shorter name
  CHECK(fs::exists(most));
  CHECK(wbench("run " + kTiny + "--samples none -o " + samples).code == kSuccess);
}

TEST_CASE("a saved run of many primitives is named by the first and the number of others") {
  const Results folder;
  std::string ops =
      "softmax,layernorm,rmsnorm,groupnorm,batchnorm1d,batchnorm2d,instancenorm1d,"
      "instancenorm2d,pointwise,binary,dropout,linear,softmax";
  const Outcome o =
      wbench("verify --op " + ops + " --strategy wide -p ci --n 2 -d cpu --cases 1 -s");
  CHECK(o.code == kSuccess);
  CHECK_THAT(o.err, ContainsSubstring("-softmax+11.json\n"));
  CHECK(wbench("show @last").code == kSuccess);
}

TEST_CASE("a file that may not grow is an error, and nothing is left of it") {
  const Results folder;
  rlimit whole{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &whole) == 0);
  const rlimit little{64, whole.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
  const Outcome o = wbench("show a.json --export md=in/r.md");
  CHECK(::setrlimit(RLIMIT_FSIZE, &whole) == 0);
  CHECK(o.code == kRuntimeError);
  CHECK_THAT(o.err, ContainsSubstring("cannot write in/r.md: File too large"));
  for (const fs::directory_entry& entry : fs::directory_iterator("in"))
    CHECK_THAT(entry.path().filename().string(), !ContainsSubstring("r.md"));
}

TEST_CASE("devices take several documents, and old outputs are replaced") {
  const Results folder;
  CHECK(wbench("run " + kTiny + "--json /dev/null --csv /dev/null").code == kSuccess);
  CHECK(wbench("compare a.json b.json --fail-on none -o c.txt").code == kSuccess);
  CHECK(wbench("compare a.json b.json --fail-on none -o c.txt").code == kSuccess);
  CHECK(wbench("report in --md in/r.md --html in/r.html").code == kSuccess);
  CHECK(fs::exists("in/r.html"));
}

}  // namespace wide::bench
