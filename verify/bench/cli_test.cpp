// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wbench as its users meet it: what goes where, what is saved.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>
#include <set>
#include <sstream>

#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/catalog.hpp"
#include "wide/quantize.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using test::TemporaryFolder;

const RunnerResult& strategy_named(const RunResult& result, const std::string& name) {
  for (const RunnerResult& r : result.cases.at(0).strategies) {
    if (r.name == name) return r;
  }
  FAIL("no strategy " << name);
  return result.cases.at(0).strategies.front();
}

}  // namespace

TEST_CASE("primitives are named with --op or without") {
  const std::string rest = " --n 2 --batch 4 --device cpu --dry-run";
  const Outcome said = wbench("run --op linear,softmax" + rest);
  CHECK(said.code == kSuccess);
  CHECK_THAT(said.out, ContainsSubstring("softmax"));
  CHECK(wbench("run linear softmax" + rest).out == said.out);
  CHECK(wbench("run linear,softmax" + rest).out == said.out);
  CHECK(wbench("run" + rest + " linear softmax").out == said.out);
  CHECK(wbench("verify all" + rest).out == wbench("verify --op all" + rest).out);
  const Outcome unknown = wbench("run liner" + rest);
  CHECK(unknown.code == kUsage);
  CHECK_THAT(unknown.err, ContainsSubstring("did you mean linear?"));
}

TEST_CASE("a run end to end: JSON on standard output, and nothing else") {
  const Outcome o = wbench(
      "run --op linear --n 4,8 --device cpu --budget 2 --json - --note nightly --context job=12=b "
      "--context empty=");
  CHECK(o.code == kSuccess);
  const RunResult result = parse_result(o.out);
  CHECK(result.note == "nightly");
  CHECK(result.context ==
        std::vector<std::pair<std::string, std::string>>{{"job", "12=b"}, {"empty", ""}});
  CHECK(result.devices.at(0).uuid.empty());
  CHECK(result.complete);
  CHECK(result.exit_code == 0);
  REQUIRE(result.cases.size() == 2);
  CHECK(result.cases[1].point.integer("n") == 8);
  for (const CaseResult& c : result.cases) {
    CHECK(c.status == Status::ok);
    REQUIRE(c.strategies.size() == 2);
    REQUIRE(c.baselines.size() == 1);
    for (const RunnerResult& r : c.strategies) {
      CHECK(r.verify.before == "pass");
      CHECK(r.verify.after == "pass");
      CHECK(r.verify.elements_compared > 0);
      CHECK(r.measurements.at(0).stats.median_ns > 0);
    }
    CHECK(c.speedups.size() == 2);
    CHECK_THAT(c.reproduce, ContainsSubstring("--device cpu"));
  }
  CHECK(result.op_summaries.size() == 1);
}

TEST_CASE("a run that exceeds its budget says so in its last lines and in its result") {
  const Outcome table = wbench("run " + kTiny + "--budget 0.001");
  CHECK(table.code == kSuccess);
  CHECK_THAT(table.out, ContainsSubstring("warn: --budget 0.001 s was exceeded by "));
  const auto codes_of = [](const std::string& budget) {
    std::string codes;
    for (const EnvironmentCheck& check :
         parse_result(wbench("run " + kTiny + "--json - --budget " + budget).out)
             .environment_checks)
      codes += check.code + " ";
    return codes;
  };
  CHECK_THAT(codes_of("0.001"), ContainsSubstring("E_BUDGET"));
  CHECK_THAT(codes_of("1000"), !ContainsSubstring("E_BUDGET"));
  CHECK_THAT(wbench("run " + kTiny + "-v").err, ContainsSubstring("  checked wide\n"));
  const std::string tune = "tune --op linear --n 2 --batch 2 --d 8 -d cpu --budget 0.001";
  CHECK_THAT(wbench(tune).err, ContainsSubstring("wbench: --budget 0.001 s was exceeded by "));
  CHECK(wbench(tune + " -q").err.empty());
}

TEST_CASE("what the result is to keep has a name, and each one once") {
  for (const char* wrong : {"--context x", "--context =1", "--context a=1 --context a=2"}) {
    const Outcome o = wbench("run " + kTiny + wrong);
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring("expected NAME=VALUE"));
  }
}

TEST_CASE("-v adds how was measured and what else is known") {
  const Outcome o = wbench("run " + kTiny + "-v");
  CHECK(o.code == kSuccess);
  CHECK_THAT(o.out, ContainsSubstring("method: warm-up 0 s") && ContainsSubstring("stopped by"));
  CHECK_THAT(wbench("run " + kTiny).out, !ContainsSubstring("stopped by"));
}

TEST_CASE("a bare run lists the primitives and is a usage error") {
  const Outcome o = wbench("run");
  CHECK(o.code == kUsage);
  for (const auto* spec : catalog::primitives())
    CHECK_THAT(o.out, ContainsSubstring(std::string(spec->name)));
  CHECK(wbench("").code == kUsage);
}

TEST_CASE("options may come in any order, before and behind the command") {
  const Outcome o = wbench("--dry-run run -q --n 2 --op linear");
  CHECK(o.code == kUsage);  // --dry-run is the command's
  CHECK(wbench("-q run --n 2 --dry-run --op linear").out ==
        wbench("run --op linear --dry-run --n 2 -q").out);
}

TEST_CASE("the largest seed is one that JSON holds exactly") {
  const Outcome o = wbench("run --dry-run --seed 9007199254740992 " + kTiny);
  CHECK(o.code == kSuccess);
  CHECK_THAT(o.out, ContainsSubstring("--seed 9007199254740992"));
}

TEST_CASE("of all primitives, those without a word that others have are left out") {
  const Outcome o = wbench("run --op all --dtype bf16 -p ci -d cpu --dry-run");
  CHECK(o.code == kSuccess);
  CHECK_THAT(o.out, ContainsSubstring("--op linear") && !ContainsSubstring("--op routing"));
  CHECK_THAT(wbench("verify --op all --dtype int32 -p ci -d cpu -q --color never").out,
             ContainsSubstring("linear: there is no dtype int32"));
  const Outcome where = wbench("run --op all --where dtype==bf16 -p ci -d cpu --dry-run");
  CHECK(where.code == kNothingRan);
  CHECK_THAT(where.err, ContainsSubstring("routing: --where \"dtype==bf16\" names"));
  CHECK(wbench("run --op all --where dtype==bf61 -d cpu --dry-run").code == kUsage);
  const Outcome heads = wbench("run --op all --where heads==8 -p ci -d cpu --dry-run");
  CHECK(heads.code == kSuccess);
  CHECK_THAT(heads.out, ContainsSubstring("--op attention") && !ContainsSubstring("--op linear"));
  CHECK(wbench("run --op linear,routing --dtype bf16 -d cpu --dry-run").code == kUsage);
  CHECK(wbench("run --op all --dtype bf61 -d cpu --dry-run").code == kUsage);
}

TEST_CASE("a dry run prints the cases with their commands, which print the same case") {
  const Outcome o = wbench("run --op all -p ci -d cpu --dry-run --seed 7");
  CHECK(o.code == kSuccess);
  int expected = 0;
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    int cases = 1;
    for (const catalog::Axis& axis : catalog::find_sweep(*spec, "ci").axes) {
      cases *= static_cast<int>(axis.values.size());
    }
    expected += cases;
  }
  CHECK_THAT(o.out, ContainsSubstring(std::to_string(expected) + " cases"));
  std::istringstream lines(o.out);
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  wbench ")) continue;
    ++commands;
    const Outcome again = wbench(line.substr(9) + " --dry-run");
    CHECK(again.code == kSuccess);
    CHECK_THAT(again.out, ContainsSubstring(line) && ContainsSubstring("1 case\n"));
  }
  CHECK(commands == expected);
}

TEST_CASE("verify checks and measures nothing") {
  const Outcome o = wbench("verify --op all --n 2 -p ci -d cpu -q --color never --json -");
  CHECK(o.code == kSuccess);
  const RunResult result = parse_result(o.out);
  std::set<std::string> primitives;
  for (const CaseResult& c : result.cases) {
    primitives.insert(c.point.op());
    for (const RunnerResult& r : c.strategies) {
      CHECK(r.verify.before == "pass");
      CHECK(r.measurements.empty());
    }
  }
  CHECK(primitives.size() == catalog::primitives().size());
}

TEST_CASE("a saved result prints as it did when it was made") {
  const TemporaryFolder folder;
  const Outcome run =
      wbench("run " + kTiny + "-o r.json --csv r.csv --md r.md -s --tag mine --explain");
  CHECK(run.code == kSuccess);
  const Outcome shown = wbench("show r.json --explain --color never");
  CHECK(shown.code == kSuccess);
  CHECK(shown.out == run.out);
  CHECK(load_result("r.json").tags == std::vector<std::string>{"mine"});
  CHECK(std::filesystem::file_size("r.csv") > 100);
  CHECK(std::filesystem::file_size("r.md") > 100);
  std::filesystem::path saved;
  for (const auto& entry : std::filesystem::directory_iterator("results")) {
    if (entry.path().extension() == ".json") saved = entry.path();
  }
  std::string id = nlohmann::json::parse(read_file(saved.string()))["run"]["id"];
  std::erase(id, ':');
  CHECK(saved.filename() == id + "-linear.json");  // two runs of one second are two files
  CHECK(wbench("show --explain --color never " + saved.string()).out == run.out);
  std::ifstream file("r.json");
  std::streambuf* console = std::cin.rdbuf(file.rdbuf());
  const Outcome piped = wbench("show - --explain --color never");
  std::cin.rdbuf(console);
  CHECK(piped.out == run.out);
  CHECK(wbench("show absent.json").code == kRuntimeError);
  std::ofstream("bad.json")
      << "{\"schema\": {\"name\": \"wbench.result\", \"version\": \"2.0.0\"}}";
  const Outcome bad = wbench("show bad.json");
  CHECK(bad.code == kUsage);
  CHECK_THAT(bad.err, ContainsSubstring("bad.json") && ContainsSubstring("2.0.0"));
}

TEST_CASE("run --verify only measures nothing, as verify does") {
  const RunResult result = parse_result(wbench("run " + kTiny + "--verify only --json -").out);
  CHECK(result.config.verify == "both");
  CHECK(strategy_named(result, "wide").verify.before == "pass");
  CHECK(strategy_named(result, "wide").measurements.empty());
}

TEST_CASE("every primitive is right however its operands are filled") {
  const std::string init = GENERATE("normal", "zeros");
  INFO(init);
  const Outcome o = wbench(
      "run --op all --n 2 -p ci -d cpu --verify only --baseline none --json - --init " + init);
  CHECK(o.code == kSuccess);
  CHECK((o.err.find("zeros cost less power") != std::string::npos) == (init == "zeros"));
  std::set<std::string> ops;
  for (const CaseResult& c : parse_result(o.out).cases) {
    ops.insert(c.point.op());
    CHECK_THAT(c.reproduce, ContainsSubstring("--init " + init));
  }
  CHECK(ops.size() == catalog::primitives().size());
}

TEST_CASE("--init fills operands, and is kept") {
  for (const std::string init : {"uniform", "normal", "int", "trig", "zeros"}) {
    INFO(init);
    const RunResult result = parse_result(
        wbench("run " + kTiny + "--bias no --verify only --json - --init " + init).out);
    CHECK(result.config.init.dist == init);
    CHECK(result.config.init.max.has_value() == (init != "normal" && init != "int"));
    const bool is_exact = init == "zeros" || init == "int";
    CHECK((*strategy_named(result, "wide").verify.worst_error_ratio == 0) == is_exact);
  }
}

TEST_CASE("verify --adversarial holds, and --cases draws by the seed") {
  const std::string few =
      "verify --op linear --n 3 --batch 5 --d 24 --dtype fp32,fp16,bf16 -d cpu ";
  const Outcome some = wbench(few + "--adversarial --cases 2 --json -");
  CHECK(some.code == kSuccess);
  CHECK_THAT(some.err, ContainsSubstring("--cases 2: 2 of 3 cases, drawn by --seed 42"));
  CHECK(parse_result(some.out).cases.size() == 2);
  const std::string dry = "verify --op linear --n 1:30 -d cpu --dry-run ";
  CHECK_THAT(wbench(dry + "--cases 9").out, ContainsSubstring("\n9 cases\n"));
  CHECK(wbench(dry + "--cases 9").out == wbench(dry + "--cases 9").out);
  CHECK(wbench(dry + "--cases 1000000").out == wbench(dry).out);
}

TEST_CASE("what a run was told of pauses, times and errors is kept") {
  const RunResult result = parse_result(
      wbench("run " + kTiny + "--json - --cooldown 0.25 --min-time 0.001 --keep-going").out);
  CHECK(result.config.cooldown_s == 0.25);
  CHECK(result.config.min_time_s == 0.001);
  const Outcome fine = wbench("run " + kTiny + "--exit-on-error --json -");
  CHECK(fine.code == kSuccess);
  CHECK(fine.err.empty());
}

TEST_CASE("all primitives are a name, not an option") {
  const Outcome o = wbench("run --all --preset ci");
  CHECK(o.code == kUsage);
  CHECK_THAT(o.err, ContainsSubstring("\"--all\", did you mean wbench run all?"));
  CHECK_THAT(wbench("list --all").err, ContainsSubstring("unknown argument \"--all\""));
}

TEST_CASE("an output without a folder is refused before anything is measured") {
  for (const char* more : {"--json no/r.json", "--csv no/r.csv", "--export csv=no/r.csv",
                           "--events no/e.jsonl", "--html no/r.html"}) {
    INFO(more);
    const Outcome o = wbench("run " + kTiny + more);
    CHECK(o.code == kRuntimeError);
    CHECK(o.out.empty());
    CHECK_THAT(o.err,
               ContainsSubstring("cannot write no/") && ContainsSubstring("no is no folder"));
  }
}

TEST_CASE("hostile operands are said in the result and in its command") {
  const Outcome o = wbench(
      "verify -q --op linear --n 2 --batch 2 --d 8 -d cpu --strategy wide --adversarial --json -");
  const RunResult result = parse_result(o.out);
  CHECK(result.config.is_adversarial);
  CHECK_THAT(result.cases.at(0).reproduce, ContainsSubstring("wbench verify --op linear") &&
                                               ContainsSubstring("--device cpu --adversarial"));
  std::string again = result.cases[0].reproduce.substr(7) + " -q --strategy wide --json -";
  const RunResult repeated = parse_result(wbench(again).out);
  CHECK(repeated.cases.at(0).strategies.at(0).verify == result.cases[0].strategies.at(0).verify);
}

TEST_CASE("verify says how much it compared, and with --all compares all") {
  const std::string line =
      "verify -q --op linear --n 1 --batch 300 --d 512 -d cpu --strategy wide ";
  const RunResult sampled = parse_result(wbench(line + "--baseline none --json -").out);
  const VerifyOutcome some = sampled.cases.at(0).strategies.at(0).verify;
  CHECK((some.elements_compared > 0 && some.elements_compared < some.elements));
  CHECK_THAT(sampled.cases[0].reproduce, !ContainsSubstring("--all"));
  CHECK_THAT(wbench(line + "--baseline none").out,
             ContainsSubstring("compared: " + std::to_string(some.elements_compared) + " of " +
                               std::to_string(some.elements) + " values"));
  const Outcome all = wbench(line + "--baseline none --all --json -");
  CHECK(all.code == kSuccess);
  const CaseResult c = parse_result(all.out).cases.at(0);
  CHECK(c.strategies.at(0).verify.elements_compared == 300 * 512);
  CHECK(c.strategies[0].verify.elements == 300 * 512);
  CHECK_THAT(c.reproduce, ContainsSubstring("wbench verify --op linear") &&
                              ContainsSubstring("--device cpu --all"));
  CHECK_THAT(wbench(line + "--baseline none --all").out, !ContainsSubstring("compared: "));
  CHECK(wbench("run --dry-run --all --op linear").code == kUsage);
}

TEST_CASE("a case's command has every option that its times depend on") {
  const std::string options =
      " --cache rotate --interleave random --stop count --rounds 3 --max-samples 40 --l2-factor "
      "1.5 --timeout 2 --order-seed 7 --aa";
  const std::string line =
      "run -q --op linear --n 2 --batch 2 --d 8 -d cpu --strategy wide" + options;
  const CaseResult c = parse_result(wbench(line + " --json -").out).cases.at(0);
  std::istringstream words(options);
  for (std::string word; words >> word;) CHECK_THAT(c.reproduce, ContainsSubstring(" " + word));
  const RunResult again =
      parse_result(wbench(c.reproduce.substr(7) + " -q --strategy wide --json -").out);
  CHECK(again.cases.at(0).reproduce == c.reproduce);
  for (const char* more : {"run --verify only", "run --verify off --budget 3", "verify"}) {
    INFO(more);
    const std::string asked = more, command = asked.substr(0, asked.find(' '));
    const std::string same = asked + " -q --op linear --n 2 --batch 2 --d 8 -d cpu --strategy wide";
    const CaseResult once = parse_result(wbench(same + " --json -").out).cases.at(0);
    CHECK(once.reproduce.starts_with("wbench " + command + " --op linear"));
    CHECK(once.reproduce.ends_with(" --device cpu" + asked.substr(command.size())));
    CHECK_THAT(wbench(same + " --dry-run").out, ContainsSubstring("  " + once.reproduce + "\n"));
    const CaseResult twice =
        parse_result(wbench(once.reproduce.substr(7) + " -q --strategy wide --json -").out)
            .cases.at(0);
    CHECK(twice.reproduce == once.reproduce);
    CHECK(twice.strategies.at(0).measurements.size() == once.strategies.at(0).measurements.size());
  }
  // What is as usual is not repeated.
  const RunResult plain = parse_result(wbench("run -q " + kTiny + "--json -").out);
  CHECK_THAT(plain.cases.at(0).reproduce, !ContainsSubstring("--interleave"));
}

TEST_CASE("test is another word for verify") {
  const Outcome o = wbench("test -q --op linear --n 2 --batch 2 --d 8 -d cpu");
  CHECK(o.code == kSuccess);
}

TEST_CASE("info measures a device's ceilings where asked to") {
  CHECK(wbench("info --no-gpu").out.find("ceilings") == std::string::npos);
  const Outcome text = wbench("info --no-gpu --calibrate");
  CHECK(text.code == kSuccess);
  CHECK_THAT(text.out, ContainsSubstring("ceilings") && ContainsSubstring("GFLOP/s fp32") &&
                           ContainsSubstring("timer quantum"));
  const auto facts = nlohmann::json::parse(wbench("info --no-gpu --calibrate --json -").out);
  REQUIRE(facts.at("calibrations").size() == facts.at("devices").size());
  CHECK(facts.at("calibrations").at(0).at("mem_bw_bytes_per_s").get<double>() > 1e8);
}

TEST_CASE("a model that there is not is called a model, and near ones by their names") {
  const std::string command = GENERATE("run --model ", "trace -m ", "run --op model:");
  CHECK_THAT(wbench(command + "mlpp").err,
             ContainsSubstring("unknown model \"mlpp\", did you mean mlp? (files have a slash in "
                               "their path, or end in .onnx)"));
  CHECK_THAT(wbench(command + "zzzzzzzz").err,
             ContainsSubstring("unknown model \"zzzzzzzz\", expected one of mlp, "));
}

TEST_CASE("an option in front of its command is told where it belongs") {
  const auto run = wbench("--device cpu verify --op linear");
  CHECK(run.code == 2);
  CHECK_THAT(run.err, ContainsSubstring("\"--device\" precedes the command, expected after it: "
                                        "wbench verify --device"));
}

TEST_CASE("quantize reports what each format costs, and the same of a file as of its weights") {
  const TemporaryFolder folder;
  const std::string shape = " --out 24 --in 160 --group 64,128", seeded = shape + " --seed 7";
  const auto report = nlohmann::json::parse(wbench("quantize --json -" + seeded).out);
  const auto& formats = report.at("formats");
  REQUIRE(formats.size() == 10);  // five formats, two sizes of groups
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> weight(24 * 160);
  for (float& value : weight) value = normal(random);
  const Context context = Context::cpu();
  for (const auto& row : formats) {
    const QuantizedWeight how{*parse_weight_format(row.at("format").get<std::string>()),
                              row.at("group_size").get<int64_t>(), 24, 160};
    CHECK(row.at("bytes") == quantized_bytes(how));
    CHECK(row.at("bits_per_weight") ==
          8.0 * static_cast<double>(quantized_bytes(how)) / (24 * 160));
    const ConstTensorView member(weight.data(), Dtype::fp32, {24, 160}, Device{});
    Tensor blobs(context, Dtype::uint8, {1, quantized_bytes(how)});
    quantize_weights(context, how, std::span(&member, 1), blobs, Stream::cpu());
    const ConstTensorView blob(blobs.data(), Dtype::uint8, {quantized_bytes(how)}, Device{});
    const auto error = quantization_error(context, how, member, blob, Stream::cpu());
    CHECK(row.at("relative_frobenius") == error.relative_frobenius);
    CHECK(row.at("max_abs") == error.max_abs);
    CHECK(row.at("worst_output") == error.worst_output);
  }
  std::ofstream("w.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(weight.data()), 24 * 160 * sizeof(float));
  CHECK(wbench("quantize w.bin" + shape).out == wbench("quantize" + seeded).out);
  CHECK(wbench("quantize w.bin -o q.json" + shape).code == kSuccess);
  CHECK(nlohmann::json::parse(std::ifstream("q.json")).at("formats") == formats);
  CHECK(wbench("quantize w.bin --dtype bf16" + shape).code == kUsage);  // half of the file
  CHECK(wbench("quantize absent.bin").code == kRuntimeError);
  const Outcome one = wbench("quantize --format int4 --in 128 --out 16");
  CHECK_THAT(one.out, ContainsSubstring("4.125") && ContainsSubstring("1056"));
  CHECK_THAT(one.out, !ContainsSubstring("int8"));
}

TEST_CASE("quantize says of weights that are not finite that nothing is known of their error") {
  const TemporaryFolder folder;
  std::vector<float> weight(64, 1.0f);
  weight[3] = std::numeric_limits<float>::infinity();
  std::ofstream("w.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(weight.data()), 64 * sizeof(float));
  const Outcome text = wbench("quantize w.bin --out 1 --in 64 --format int8");
  CHECK(text.code == kSuccess);
  CHECK_THAT(text.out, ContainsSubstring("nan"));
  const auto report =
      nlohmann::json::parse(wbench("quantize w.bin --out 1 --in 64 --format int8 -o -").out);
  CHECK(report.at("formats").at(0).at("rms").is_null());
}

}  // namespace wide::bench
