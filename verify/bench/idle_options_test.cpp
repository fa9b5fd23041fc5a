// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Options that say nothing, or of which nothing could come, are refused before anything runs, and
// none takes for its own what stands behind its value.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <sstream>

#include "bench/process/exit_code.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

/// The long names of a command's options that take a value, as its help shows them; without axes,
/// which are hundreds and alike; of those that may be repeated only, where `only_lists`.
std::vector<std::string> options_with_values(const std::string& command, bool only_lists = false) {
  std::istringstream help(wbench(command + " --help").out);
  std::vector<std::string> names;
  bool are_axes = false;
  for (std::string line; std::getline(help, line);) {
    std::istringstream words(line);
    std::string name, kind, dots;
    words >> name >> kind >> dots;
    if (line.ends_with(':') && !line.starts_with(' ')) are_axes = line == "Axes:";
    if (!line.starts_with("  -") || are_axes || (only_lists && dots != "...")) continue;
    if (kind.starts_with("TEXT") || kind.starts_with("INT") || kind.starts_with("FLOAT"))
      names.push_back(name.substr(name.rfind(',') + 1));
  }
  return names;
}

}  // namespace

TEST_CASE("no option takes nothing for a value") {
  const test::TemporaryFolder folder;
  const std::string command = GENERATE("run", "compare", "history", "quantize");
  const std::vector<std::string> names = options_with_values(command);
  CHECK((!names.empty() || command == "list"));
  for (const std::string& name : names) {
    CAPTURE(command, name);
    const Outcome o = wbench(command + " " + name + " ''");
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring("\"\", expected"));
  }
}

TEST_CASE("nor does an argument") {
  for (const char* line : {"show ''", "compare '' ''", "report '' --md -", "history show ''",
                           "suite run ''", "quantize ''", "list ''"}) {
    CAPTURE(line);
    const Outcome o = wbench(line);
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring("\"\", expected"));
  }
}

TEST_CASE("an option that may be repeated leaves the arguments behind its value alone") {
  const test::TemporaryFolder folder;
  const std::string linear = " linear -p ci -d cpu --dry-run";
  for (const std::string command : {"run", "verify", "tune"}) {
    const std::vector<std::string> names = options_with_values(command, true);
    CHECK(names.size() >= 3);
    for (const std::string& name : names) {
      CAPTURE(command, name);
      const Outcome o = wbench(command + " " + name + " a=1" + linear);
      CHECK_THAT(o.err, !ContainsSubstring("--op is missing"));
    }
  }
  for (const char* option :
       {"--json a.json", "--csv a.csv", "--context a=b", "-o a.json -o b.json"})
    CHECK(wbench("run " + std::string(option) + linear).out == wbench("run" + linear).out);
  CHECK(wbench("run -a n=3 -a batch=5" + linear).out == wbench("run --n 3 --batch 5" + linear).out);
  CHECK(std::filesystem::is_empty("."));
  const Outcome absent = wbench("show --export md=- absent.json");
  CHECK(absent.code == kRuntimeError);
  CHECK_THAT(absent.err, ContainsSubstring("absent.json"));
}

TEST_CASE("an option without an effect is refused, with what it is of") {
  const auto [line, message] = GENERATE(table<std::string, std::string>(
      {{"run --op linear --launches 5", "--launches has no effect here: it is of --profile"},
       {"run --op linear --endless", "of --profile"},
       {"run --op linear --max-noise 1%", "--max-noise has no effect here: it is of --stop stdrel"},
       {"run --op linear --stop stdrel --target-ci 1%", "of --stop ci"},
       {"run --op linear --cache warm --l2-factor 3", "of --cache flush and rotate"},
       {"run --op linear --baseline none --aa", "--aa has no effect"},
       {"run --op linear --verify off --save-workspace always", "of calls that are checked"},
       {"run --op linear --roofline --metrics time", "--metrics has no effect"},
       {"run --op linear --store history", "of --save, --tag and --compare"},
       {"run --op linear --min-samples 100 --max-samples 10",
        "run: --min-samples is 100, expected at most --max-samples, which is 10"},
       {"tune --op linear --min-samples 1000000000", "expected at most --max-samples, which is "},
       {"verify --op linear --store history", "of --save, --tag and --compare"},
       {"verify --op linear --samples none", "of --json, --save and --tag"},
       {"profile --op linear --tool none --set full", "of --tool ncu"},
       {"profile --op linear --tool none --folder f", "of --tool nsys and ncu"},
       {"trace -m mlp --compile none --times", "trace: --times has no effect here"},
       {"trace -m mlp --compile none -d cpu", "trace: --device has no effect here"},
       {"trace -m mlp --strategy wide", "of trace --op"},
       {"list models --op linear", "of list ops, strategies, policies"},
       {"list dtypes --op linear", "list: --op has no effect here"},
       {"info -d cpu", "of --calibrate and --self-check"},
       {"compare a.json b.json --repeat 7", "of --rerun"},
       {"report a.json --md - --metric time_ns", "of --compare"},
       {"report a.json --md - --threshold 3%", "of --compare"},
       {"report a.json --md - --plots heat", "of --html"},
       {"history --op linear", "of history trend, noise and bisect-hint"},
       {"history trend --keep 3", "of history gc"},
       {"history tag x y --json", "of history list, trend, noise and bisect-hint"},
       {"history list extra", "of history show, add, tag and rm"},
       {"suite list --strict", "of suite run"},
       {"suite validate quick --json -", "of suite list and run"},
       {"suite run quick --dry-run --store history", "of suite run --save"},
       {"run --model mlp --layers 3",
        "run: --layers has no effect here: it is of deep_mlp, unet, bert, vit, not of mlp"},
       {"verify --op model:resnet18 --layers 3", "not of resnet18"},
       {"run --model mlp,bert -a layers=3", "not of mlp"},
       {"trace -m vit --seq 9", "trace: --seq has no effect here: it is of bert, not of vit"},
       {"run --model agent --image 32",
        "it is of convnet, resblock, resnet18, unet, vit, not of agent"},
       {"quantize weight.bin --seed 3", "of random weights"}}));
  CAPTURE(line);
  const Outcome o = wbench(line);
  CHECK(o.code == kUsage);
  CHECK(o.out.empty());
  CHECK_THAT(o.err, ContainsSubstring(message));
}

TEST_CASE("what is of GPUs alone is taken on the CPU, and said to have no effect") {
  const std::string line = "run --op linear --n 2 --batch 2 --d 8 -d cpu --dry-run ";
  for (const std::string option : {"--energy", "--throttle fail", "--throttle-threshold 50%",
                                   "--cache rotate", "--l2-factor 3", "--warmup-clock-tol 2%"}) {
    CAPTURE(option);
    const Outcome o = wbench(line + option);
    CHECK(o.code == kSuccess);
    CHECK(o.err == "wbench: " + option.substr(0, option.find(' ')) +
                       " has no effect here: the device is cpu, expected a GPU\n");
    CHECK(wbench(line + option + " -q").err.empty());
  }
  CHECK_THAT(wbench(line + "--energy --cache flush").err,
             ContainsSubstring("wbench: --cache, --energy have no effect here"));
  CHECK(wbench(line).err.empty());
}

TEST_CASE("a size that a model does not have is impossible among all models") {
  const std::string line = " -p ci -d cpu --dry-run";
  const Outcome all = wbench("run --model all --layers 3" + line);
  CHECK(all.code == kSuccess);
  CHECK_THAT(all.out,
             ContainsSubstring("model:bert n=4 layers=3") && !ContainsSubstring("model:mlp n=4") &&
                 ContainsSubstring("model:mlp: layers is 3, expected 0, as it has no effect"));
  for (const char* words : {"--model mlp --layers 0 --seq 0 --image 0", "--model bert --layers 2",
                            "--op mlp --layers 3", "--op mlp --model bert --layers 3"})
    CHECK(wbench("run " + std::string(words) + line).code == kSuccess);
}

TEST_CASE("the same options where they have one are taken") {
  const test::TemporaryFolder folder;
  const std::string line = GENERATE(
      "run " + kTiny + "--stop stdrel --max-noise 1% --save --store history --samples none",
      "run " + kTiny + "--stop ci --target-ci 1% --cache rotate --l2-factor 3",
      "verify " + kTiny.substr(0, kTiny.find(" --warmup")) + " --tag mine --store history",
      "run " + kTiny.substr(0, kTiny.find(" --warmup")) + " --max-samples 4 --dry-run",
      std::string("trace -m mlp --compile fast -d cpu"), std::string("list --op linear"),
      std::string("list axes --op linear"), std::string("suite --json -"));
  CAPTURE(line);
  CHECK(wbench(line).code == kSuccess);
}

TEST_CASE("all is a value of every option that takes a list") {
  const std::string tiny = " --op linear --n 2 --batch 2 --d 8 -d cpu ";
  const auto same = [&](const std::string& said, const std::string& meant) {
    const Outcome o = wbench(said), other = wbench(meant);
    INFO(said << ": " << o.err);
    CHECK(o.code == other.code);
    CHECK(o.code != kUsage);
    CHECK(o.out == other.out);
    return o;
  };
  same("run --dry-run --dtype all" + tiny,
       "run --dry-run --dtype fp32,fp16,bf16,fp8_e4m3,fp8_e5m2" + tiny);
  same("verify -q --strategy all --baseline all" + tiny, "verify -q" + tiny);
  same("verify -q --only all --skip wide" + tiny, "verify -q --skip wide" + tiny);
  CHECK_THAT(same("verify --skip all" + tiny, "verify --skip wide,sequential" + tiny).err,
             ContainsSubstring("--skip leaves no strategy"));
  CHECK_THAT(wbench("verify -q --strategy all,auto" + tiny).out,
             ContainsSubstring("  sequential") && ContainsSubstring("  auto "));
  same("run --dry-run --regime all" + tiny, "run --dry-run --regime cpu" + tiny);
  same("tune --dry-run --space all" + tiny, "tune --dry-run" + tiny);
  CHECK(wbench("compare --fail-on all,none x y").code == kUsage);
  CHECK_THAT(wbench("compare --fail-on all x y").err, ContainsSubstring("cannot read x"));
  const std::string shown =
      wbench("run -q --metrics all --warmup-time 0 --max-samples 6 --min-samples 3 --rounds 3" +
             tiny)
          .out;
  for (const char* title : {"bandwidth", "of floor", "vs loop", "autocorr"})
    CHECK_THAT(shown, ContainsSubstring(title));
  CHECK_THAT(wbench("run --dry-run --metrics tiem" + tiny).err,
             ContainsSubstring("--metrics: unknown metric \"tiem\", did you mean time"));
  CHECK_THAT(wbench("run --dry-run --n all" + tiny).err, ContainsSubstring("--n"));
}

}  // namespace wide::bench
