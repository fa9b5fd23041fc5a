// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `inspect`: occupancy against NVIDIA's calculator, listings cut into kernels, and the program on
// the simulated GPU with a cuobjdump that is a script.
#include "bench/inspect/cuobjdump.hpp"
#include "bench/inspect/launches.hpp"
#include "bench/inspect/occupancy.hpp"

#include <sys/stat.h>
#include <sstream>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define WIDE_HAS_CALCULATOR 1
#endif

#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/run_program.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/onnx_case.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;

KernelUse kernel(int64_t threads, std::optional<int64_t> registers, int64_t shared = 0,
                 int64_t dynamic = 0) {
  KernelUse k;
  k.name = "_ZN4wide7kernels4fillEv";
  k.grid = {1, 1, 1};
  k.block = {threads, 1, 1};
  k.registers = registers;
  k.static_shared_bytes = shared;
  k.dynamic_shared_bytes = dynamic;
  return k;
}

Occupancy on(int capability, const KernelUse& k) {
  return occupancy_of(k, sm_limits(capability).value());
}

using Words = std::vector<std::string>;

TEST_CASE("occupancy: known values, and what limits it") {
  const Occupancy registers = on(80, kernel(128, 128));
  CHECK(registers.blocks == 4);
  CHECK(registers.pct == 25);
  CHECK(registers.limited_by == Words{"registers"});
  const Occupancy threads = on(90, kernel(1024, 32));
  CHECK(threads.blocks == 2);
  CHECK(threads.pct == 100);
  CHECK(threads.limited_by == Words{"registers", "threads"});
  CHECK(on(90, kernel(32, 16)).limited_by == Words{"blocks"});
  CHECK(on(90, kernel(32, 16)).blocks == 32);
  // 48 KiB and the system's 1 KiB: three times in 164 KiB, four times in 228 KiB.
  CHECK(on(80, kernel(128, 32, 0, 48 << 10)).blocks == 3);
  CHECK(on(90, kernel(128, 32, 1024, 47 << 10)).blocks == 4);
  CHECK(on(90, kernel(128, 32, 0, 48 << 10)).limited_by == Words{"shared memory"});
  CHECK(on(90, kernel(384, 168, 0, 227 << 10)).blocks == 1);
  CHECK(on(80, kernel(384, 168, 0, 227 << 10)).blocks == 0);  // more than a block may have
  CHECK(on(90, kernel(1024, 128)).blocks == 0);
  CHECK_FALSE(on(90, kernel(128, std::nullopt)).by_registers);
  CHECK_FALSE(sm_limits(75));
  CHECK_THROWS_AS(occupancy_of(KernelUse(), *sm_limits(80)), Error);
}

#ifdef WIDE_HAS_CALCULATOR
TEST_CASE("occupancy is what NVIDIA's calculator says") {
  for (const int capability : {80, 90}) {
    const SmLimits limits = sm_limits(capability).value();
    cudaOccDeviceProp device;
    device.computeMajor = capability / 10;
    device.computeMinor = capability % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = static_cast<int>(limits.threads);
    device.regsPerBlock = device.regsPerMultiprocessor = static_cast<int>(limits.registers);
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = static_cast<size_t>(limits.shared_bytes);
    device.numSms = 1;
    device.sharedMemPerBlockOptin = static_cast<size_t>(limits.shared_bytes_of_block);
    device.reservedSharedMemPerBlock = static_cast<size_t>(limits.shared_reserved);
    for (int threads = 1; threads <= 1024; threads += threads < 64 ? 9 : 37) {
      for (int registers = 8; registers <= 255; registers += 3) {
        for (const int shared : {0, 1, 1000, 16 << 10, 50'000, 99 << 10, 163 << 10}) {
          cudaOccFuncAttributes asked;
          asked.maxThreadsPerBlock = 1024;
          asked.numRegs = registers;
          asked.sharedSizeBytes = 0;
          asked.partitionedGCConfig = PARTITIONED_GC_OFF;
          asked.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
          asked.maxDynamicSharedSizeBytes = static_cast<size_t>(limits.shared_bytes_of_block);
          asked.numBlockBarriers = 1;
          const cudaOccDeviceState state;
          cudaOccResult expected;
          REQUIRE(cudaOccMaxActiveBlocksPerMultiprocessor(&expected, &device, &asked, &state,
                                                          threads, static_cast<size_t>(shared)) ==
                  CUDA_OCC_SUCCESS);
          const int64_t blocks = on(capability, kernel(threads, registers, 0, shared)).blocks;
          if (blocks == expected.activeBlocksPerMultiprocessor) continue;
          FAIL("sm_" << capability << ", " << threads << " threads, " << registers << " registers, "
                     << shared << " bytes: " << blocks << ", expected "
                     << expected.activeBlocksPerMultiprocessor);
        }
      }
    }
  }
}
#endif

TEST_CASE("the architecture that a device runs is one that was built") {
  CHECK(architecture_of(80, "80;90a") == "sm_80");
  CHECK(architecture_of(90, "80;90a") == "sm_90a");
  CHECK(architecture_of(90, "80-real;90a-real") == "sm_90a");
  CHECK(architecture_of(89, "80;90a") == "sm_80");
  CHECK(architecture_of(89, "80;86-real;90a") == "sm_86");
  CHECK(architecture_of(90, "90;90a") == "sm_90a");
  CHECK(architecture_of(103, "80;100f-real") == "sm_100f");
  CHECK_THROWS_WITH(architecture_of(120, "80;90a"), ContainsSubstring("12.0, but for 80;90a"));
  CHECK_THROWS_WITH(architecture_of(80, "86"), ContainsSubstring("8.0, but for 86"));
  CHECK_THROWS_WITH(architecture_of(89, "80-virtual"), ContainsSubstring("8.9, but for 80-virt"));
}

constexpr const char* kPtx =
    "Fatbin ptx code:\n.version 9.0\n\n.visible .entry fill_more(\n.param .u64 p\n)\n{\nret;\n}\n"
    ".visible .entry fill(\n.param .u64 p\n)\n.maxntid 128, 1, 1\n{\n{\nadd.s32 %r1, %r1, 1;\n}\n"
    "ret;\n}\n.func (.param .b32 x) fill_part(\n)\n{\n}\n";
constexpr const char* kSass =
    "Fatbin elf code:\n\tcode for sm_80\n\t\tFunction : fill_more\n\t.headerflags\nEXIT more;\n"
    "\t\tFunction : fill\n\t.headerflags\nEXIT ;\n\t\t.......\n\nFatbin ptx code:\nother\n";
constexpr const char* kUsageListing =
    "Resource usage:\n Common:\n  GLOBAL:0\n Function fill_more:\n  REG:22 STACK:16 SHARED:0 "
    "LOCAL:8 "
    "CONSTANT[0]:376\n Function fill:\n  REG:168 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:1\n";

TEST_CASE("listings are cut into kernels by their whole names") {
  CHECK(ptx_of(kPtx, "fill") ==
        ".visible .entry fill(\n.param .u64 p\n)\n.maxntid 128, 1, 1\n{\n{\nadd.s32 %r1, %r1, "
        "1;\n}\nret;\n}\n");
  CHECK_THAT(ptx_of(kPtx, "fill_more"), !ContainsSubstring("maxntid"));
  CHECK(ptx_of(kPtx, "fill_part").empty());
  CHECK_THAT(sass_of(kSass, "fill"), ContainsSubstring("EXIT ;") && !ContainsSubstring("more") &&
                                         !ContainsSubstring("other"));
  CHECK_THAT(sass_of(kSass, "fill_more"),
             ContainsSubstring("more;") && !ContainsSubstring("EXIT ;"));
  CHECK(sass_of(kSass, "fil").empty());
  const ResourcesByKernel usage = resources_of(kUsageListing);
  REQUIRE(usage.size() == 2);
  CHECK(usage.at("fill_more").registers == 22);
  CHECK(usage.at("fill_more").local_bytes == 24);
  CHECK(usage.at("fill").registers == 168);
  CHECK(resources_of("nothing").empty());
}

RunResult result_of(const KernelUse& use) {
  RunResult result;
  result.devices.emplace_back();
  result.devices[0].device = {DeviceType::cuda, 0};
  result.devices[0].compute_capability = 80;
  CaseResult c;
  c.point = catalog::make_case(catalog::find_primitive("linear"), {});
  RunnerResult ran, skipped;
  ran.name = "simt";
  ran.launches_per_call = 1;
  ran.kernels = {use};
  skipped.name = "gemv";
  skipped.status = Status::skipped;
  skipped.reason = "too many rows";
  c.strategies = {ran, skipped};
  result.cases = {c};
  return result;
}

TEST_CASE("registers that are found complete a kernel and its occupancy") {
  RunResult result = result_of(kernel(256, std::nullopt));
  const std::string name = result.cases[0].strategies[0].kernels[0].name;
  CHECK(kernels_without_registers(result) == Words{name});
  CHECK_THAT(inspection_text(result, Inspected::resources, 120, false), ContainsSubstring("?"));
  add_resources(result, {{"other", {1, 2}}});
  CHECK(kernels_without_registers(result) == Words{name});
  add_resources(result, {{name, {128, 8}}});
  CHECK(kernels_without_registers(result).empty());
  CHECK(launched_kernels(result) == Words{name});
  const KernelUse& use = result.cases[0].strategies[0].kernels[0];
  CHECK(use.blocks_per_sm == 2);
  CHECK(use.occupancy_pct == 25);
  CHECK(use.local_bytes == 8);
  const std::string text = inspection_text(result, Inspected::occupancy, 200, false);
  for (const char* part : {"fill()", "25%", "registers", "skipped: too many rows"})
    CHECK_THAT(text, ContainsSubstring(part));
  const auto json = inspection_json(result, "occupancy");
  CHECK(json["what"] == "occupancy");
  const auto& written = json["cases"][0]["strategies"][0]["kernels"][0];
  CHECK(written["limited_by"] == Words{"registers"});
  CHECK(written["blocks_by"]["threads"] == 8);
  CHECK(json["cases"][0]["strategies"][1]["reason"] == "too many rows");
}

#if WIDE_HAS_CUDA
/// The real program on the simulated GPU, with a folder of its own on PATH.
struct Inspection {
  int code;
  std::string out, err;
};
Inspection start(const std::string& path, Words words) {
  words.insert(words.begin(), {"env", "PATH=" + path,
                               "CUDA_HOME=", "CUDA_PATH=", WIDE_BINARY_DIR "/bench/wbench"});
  const int code = run_program_into("out", "err", words);
  return {code, read_file("out"), read_file("err")};
}
Inspection inspect(const std::string& path, Words words) {
  words.insert(words.begin(), "--sim");
  return start(path, words);
}
const Words kCase{"inspect", "--op", "linear",  "--n",  "2",          "--batch", "5",
                  "--d",     "32",   "--dtype", "fp32", "--strategy", "simt",    "--what"};
Words with(Words words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
  return words;
}

TEST_CASE("inspect shows launches, and registers and code where there is a cuobjdump") {
  const test::TemporaryFolder folder;
  const std::string here = std::filesystem::current_path().string();
  const Inspection launches = inspect(here, with(kCase, {"launches", "--json", "l.json"}));
  CHECK(launches.code == kSuccess);
  CHECK_THAT(launches.out, ContainsSubstring("linear_simt"));
  const auto document = nlohmann::json::parse(read_file("l.json"));
  const auto& launched = document["cases"][0]["strategies"][0]["kernels"];
  REQUIRE(launched.size() == 1);
  const std::string name = launched[0]["mangled"];
  CHECK(launched[0]["registers"].is_null());

  const Inspection without = inspect(here, with(kCase, {"resources"}));
  CHECK(without.code == kEnvironment);
  CHECK_THAT(without.out, ContainsSubstring("linear_simt"));
  CHECK_THAT(without.err, ContainsSubstring("cuobjdump -arch sm_90a -res-usage"));
  CHECK(inspect(here, with(kCase, {"sass"})).code == kEnvironment);

  std::ofstream("cuobjdump") << "#!/bin/sh\ncase \"$*\" in\n"
                             << "*-res-usage*) printf ' Function " << name
                             << ":\\n  REG:77 STACK:0 LOCAL:0\\n';;\n*-ptx*) printf '.entry "
                             << name
                             << "(\\n)\\n{\\nret;\\n}\\n';;\n*) echo broken >&2; exit 3;;\nesac\n";
  REQUIRE(::chmod("cuobjdump", 0755) == 0);
  const Inspection resources = inspect(here + ":/bin", with(kCase, {"resources"}));
  CHECK(resources.code == kSuccess);
  CHECK_THAT(resources.out, ContainsSubstring("77"));
  const Inspection ptx = inspect(here + ":/bin", with(kCase, {"ptx", "--json", "-"}));
  CHECK(ptx.code == kSuccess);
  CHECK(nlohmann::json::parse(ptx.out)["kernels"][0]["mangled"] == name);
  const Inspection sass = inspect(here + ":/bin", with(kCase, {"sass"}));
  CHECK(sass.code == kEnvironment);
  CHECK_THAT(sass.err, ContainsSubstring("exit code 3") && ContainsSubstring("broken"));
  const Inspection table = inspect(here, with(kCase, {"launches", "--csv", "-"}));
  CHECK(table.code == kUsage);
  CHECK_THAT(table.err, ContainsSubstring("--csv is of --what counters"));
}

TEST_CASE("a case's command of the simulated GPU runs there, by the command that ran") {
  const test::TemporaryFolder folder;
  const std::string command = GENERATE("run", "verify", "inspect");
  const auto case_of = [](const Inspection& ran) {
    CHECK(ran.code == kSuccess);
    return parse_result(ran.out).cases.at(0);
  };
  const Words selected{"--op", "linear", "--n",        "2",    "--batch", "4",
                       "--d",  "32",     "--strategy", "simt", "--json",  "-"};
  Words words{command};
  words.insert(words.end(), selected.begin(), selected.end());
  const CaseResult once = case_of(inspect("/bin", words));
  const std::string named = command == "verify" ? "verify" : "run";
  CHECK(once.reproduce.starts_with("wbench " + named + " --op linear"));
  CHECK(once.reproduce.ends_with(" --device cuda:0 --sim"));
  std::istringstream stream(once.reproduce.substr(7) + " --strategy simt --json -");
  Words again;
  for (std::string word; stream >> word;) again.push_back(word);
  const CaseResult twice = case_of(start("/bin", again));
  CHECK(twice.reproduce == once.reproduce);
  CHECK(twice.strategies.at(0).launches.size() == once.strategies.at(0).launches.size());
  CHECK(twice.strategies[0].verify == once.strategies[0].verify);
}

TEST_CASE("counters that are asked for, and no others") {
  const test::TemporaryFolder folder;
  Words words{"run", "--op", "linear",     "--n",  "2",          "--batch",        "4",
              "--d", "32",   "--strategy", "simt", "--counters", "bytes,conflicts"};
  const Inspection chosen = inspect("/bin", words);
  CHECK(chosen.code == kSuccess);
  CHECK_THAT(chosen.err, ContainsSubstring("the simulated GPU has no times; counters instead"));
  CHECK(inspect("/bin", with(words, {"-q"})).err.empty());
  for (const char* title : {"case", "strategy", "bytes", "conflicts", "status"})
    CHECK_THAT(chosen.out, ContainsSubstring(title));
  for (const char* title : {"instructions", "rereads", "tensor", "err/tol"})
    CHECK_THAT(chosen.out, !ContainsSubstring(title));
  words.back() = "all";
  for (const char* title : {"instructions", "bytes", "rereads", "conflicts"})
    CHECK_THAT(inspect("/bin", words).out, ContainsSubstring(title));
  words.back() = "bytes,sectors";
  CHECK_THAT(inspect("/bin", words).err, ContainsSubstring("--counters: unknown counter"));
  const Outcome real = wbench("run --op linear --counters bytes");
  CHECK(real.code == kUsage);
  CHECK_THAT(real.err, ContainsSubstring("only the simulated GPU counts these"));
  const Inspection launches =
      inspect("/bin", {"inspect", "--op", "linear", "--what", "launches", "--counters", "bytes"});
  CHECK(launches.code == kUsage);
  CHECK_THAT(launches.err, ContainsSubstring("--counters is of --what counters"));
}

TEST_CASE("vendors' calls that are not simulated say so, and which command checks them") {
  const test::TemporaryFolder folder;
  const auto [op, strategy] = GENERATE(table<std::string, std::string>(
      {{"linear", "cublaslt"}, {"linear", "sequential"}, {"batchnorm2d", "cudnn"}}));
  const Words selected{"--op", op, "--n", "2", "--batch", "2", "--strategy", strategy};
  for (const Words& command : {Words{"run"}, Words{"inspect"},
                               Words{"inspect", "--what", "launches"}, Words{"run", "--profile"}}) {
    Words words = command;
    words.insert(words.end(), selected.begin(), selected.end());
    const Inspection ran = inspect("/bin", words);
    INFO(ran.out << ran.err);
    CHECK_THAT(ran.out + ran.err, !ContainsSubstring("NOT_INITIALIZED"));
    CHECK_THAT(ran.err, ContainsSubstring("vendors' libraries are not simulated here, expected "
                                          "wbench --sim verify"));
  }
}

TEST_CASE("the simulated GPU has no ceilings to measure") {
  const test::TemporaryFolder folder;
  const Inspection refused = inspect("/bin", {"info", "--calibrate", "-d", "cuda"});
  CHECK(refused.code == kUsage);
  CHECK_THAT(refused.err, ContainsSubstring("info --calibrate: the simulated GPU has no times"));
  const Inspection both = inspect("/bin", {"info", "--calibrate"});
  CHECK(both.code == kSuccess);
  CHECK_THAT(both.out, ContainsSubstring("GFLOP/s fp32") &&
                           ContainsSubstring("none: the simulated GPU has no times"));
}

TEST_CASE("trace --op shows what inspect shows, of one case") {
  const test::TemporaryFolder folder;
  const Words words{"trace", "--op", "linear",     "-a",   "n=2",    "--batch", "5",
                    "--d",   "32",   "--strategy", "simt", "--json", "t.json"};
  const Inspection traced = inspect("/bin", words);
  CHECK(traced.code == kSuccess);
  CHECK_THAT(traced.out, ContainsSubstring("linear_simt") && ContainsSubstring("least work: "));
  const auto trace = nlohmann::json::parse(read_file("t.json"));
  REQUIRE(inspect("/bin", with(kCase, {"launches", "--json", "i.json"})).code == kSuccess);
  CHECK(trace["cases"] == nlohmann::json::parse(read_file("i.json"))["cases"]);
}
#endif

TEST_CASE("trace of a model, as DOT and for programs") {
  const Outcome dot = wbench("trace -m mlp -d cpu --dot");
  CHECK(dot.code == kSuccess);
  CHECK(dot.out.starts_with("digraph"));
  CHECK(dot.out == wbench("trace -m mlp -d cpu --style dot").out);
  const Outcome trace = wbench("trace -m mlp -d cpu --n 3 --times --json -");
  CHECK(trace.code == kSuccess);
  const auto json = nlohmann::json::parse(trace.out);
  CHECK(json["members"] == 3);
  CHECK(json["graph"]["name"] == "mlp");
  REQUIRE(json["steps"].size() == 2);
  CHECK(json["steps"][0]["time_ns"] > 0);
}

TEST_CASE("steps of a model are timed on the inputs that a run gives it") {
  const std::string sizes = " --n 1 --batch 2 --layers 1 --hidden 8 --seq 1024 --times --json -";
  for (const std::string preset : {"default", "safe"}) {
    const Outcome trace = wbench("trace -m bert -d cpu --compile " + preset + sizes);
    REQUIRE(trace.code == kSuccess);
    const auto document = nlohmann::json::parse(trace.out);
    std::map<std::string, double> times_ns;
    for (const auto& step : document["steps"]) times_ns[step["node"]] = step["time_ns"];
    // Lengths of 0 leave attention its projections, which together are about as large as linear1.
    CHECK(times_ns.at("layers.0.self_attn") > 10 * times_ns.at("layers.0.linear1"));
  }
}

#if WIDE_HAS_ONNX
TEST_CASE("trace of a file takes the numbers of its symbolic extents") {
  namespace onnx = test::onnx;
  const test::TemporaryFolder folder;
  write_file("model", onnx::network({-2, 4}, {onnx::node("Relu", {"x"}, {"y"})}).bytes_of());
  const Outcome known = wbench("trace --onnx model --extent s=7 --n 2 -d cpu");
  CHECK(known.code == kSuccess);
  CHECK_THAT(known.out, ContainsSubstring("[B, 7, 4]") && ContainsSubstring("2 members"));
  std::filesystem::rename("model", "other");  // the first is in the catalogue now
  const Outcome unknown = wbench("trace --onnx other -d cpu");
  CHECK(unknown.code != kSuccess);
  CHECK_THAT(unknown.err, ContainsSubstring("has extent \"s\""));
}

TEST_CASE("steps of a file are timed, of all its outputs or of one") {
  namespace onnx = test::onnx;
  const test::TemporaryFolder folder;
  auto file =
      onnx::network({4}, {onnx::node("Relu", {"x"}, {"y"}), onnx::node("Tanh", {"x"}, {"z"})});
  file.outputs = {onnx::value("y", {}), onnx::value("z", {})};
  write_file("both", file.bytes_of());
  const Outcome both = wbench("trace --onnx both -d cpu --times");
  CHECK(both.code == kSuccess);
  CHECK_THAT(both.out, ContainsSubstring("node_y ") && ContainsSubstring("node_z "));
  std::filesystem::rename("both", "one");  // the first is in the catalogue now
  const Outcome one = wbench("trace --onnx one --model-output z -d cpu --times");
  CHECK(one.code == kSuccess);
  CHECK_THAT(one.out, ContainsSubstring("node_z ") && !ContainsSubstring("node_y "));
}
#endif

#if WIDE_HAS_ONNX
TEST_CASE("run and verify take a model's file, with members around it") {
  namespace onnx = test::onnx;
  const test::TemporaryFolder folder;
  auto file = onnx::network(
      {-2, 4}, {onnx::node("MatMul", {"x", "w"}, {"h"}), onnx::node("Add", {"h", "m"}, {"y"})},
      {onnx::filled("w", {4, 5}, 0.5f)});
  file.inputs.push_back(onnx::value("m", {-1, 1, 1}));
  write_file("mlp.onnx", file.bytes_of());
  const std::string model =
      " --model mlp.onnx --extent s=3 --fixed-input m=2 --n 3 --batch 2 -d cpu ";
  const Outcome verified = wbench("verify" + model + "--json v.json");
  CHECK(verified.code == kSuccess);
  const RunResult result = load_result("v.json");
  REQUIRE(result.cases.size() == 1);
  CHECK(result.cases[0].point.op() == "model:mlp.onnx");
  REQUIRE(!result.cases[0].strategies.empty());
  for (const RunnerResult& strategy : result.cases[0].strategies) {
    CHECK(strategy.verify.elements == 3 * 2 * 3 * 5);
    CHECK(strategy.verified);
  }
  CHECK_THAT(result.cases[0].reproduce, ContainsSubstring(" --extent s=3 --fixed-input m=2 "));
  const Outcome measured = wbench("run" + model + "--budget 1 --rounds 3 --json r.json");
  CHECK(measured.code == kSuccess);
  CHECK(!load_result("r.json").cases.at(0).strategies.at(0).measurements.empty());
}

TEST_CASE("of a model's file all outputs are checked, or the one that is named") {
  namespace onnx = test::onnx;
  const test::TemporaryFolder folder;
  auto file = onnx::network(
      {4}, {onnx::node("Relu", {"x"}, {"y"}), onnx::node("MatMul", {"y", "w"}, {"z"})},
      {onnx::filled("w", {4, 5}, 0.5f)});
  file.outputs.push_back(onnx::value("z", {}));
  write_file("two.onnx", file.bytes_of());
  CHECK(wbench("verify --model two.onnx --n 3 --batch 2 -d cpu --json v.json").code == kSuccess);
  const RunResult both = load_result("v.json");
  CHECK(both.cases.at(0).strategies.at(0).verify.elements == 3 * 2 * (4 + 5));
  // The catalogue knows a file by its path, once a process.
  std::filesystem::rename("two.onnx", "z.onnx");
  CHECK(
      wbench("verify --model z.onnx --model-output z --n 3 --batch 2 -d cpu --json z.json").code ==
      kSuccess);
  const RunResult result = load_result("z.json");
  CHECK(result.cases.at(0).strategies.at(0).verify.elements == 3 * 2 * 5);
  CHECK_THAT(result.cases[0].reproduce, ContainsSubstring(" --model-output z "));
  std::filesystem::rename("z.onnx", "no.onnx");
  CHECK_THAT(wbench("verify --model no.onnx --model-output q --n 3 -d cpu").err,
             ContainsSubstring("it has no output \"q\""));
}
#endif

TEST_CASE("inspect on a CPU and of what is unknown") {
#if WIDE_HAS_CUDA
  const Outcome cpu = wbench("inspect --op linear -p ci -d cpu --what launches");
  CHECK(cpu.code == kEnvironment);
  CHECK_THAT(cpu.err, ContainsSubstring("launches no kernels"));
  const Outcome unknown = wbench("inspect --op linear --what launch");
  CHECK(unknown.code == kUsage);
  CHECK_THAT(unknown.err, ContainsSubstring("did you mean launches"));
  const Outcome primitive = wbench("inspect --what graph --op softmax -d cpu");
  CHECK(primitive.code == kUsage);
  CHECK_THAT(primitive.err, ContainsSubstring("softmax is a primitive, expected a model"));
  const Outcome graph = wbench("inspect --what graph --model mlp -d cpu --json -");
  CHECK(graph.code == kSuccess);
  CHECK(graph.out == wbench("trace --model mlp -d cpu --json -").out);
#endif
}

}  // namespace
}  // namespace wide::bench
