// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `wbench tune --model`: the steps of a model as problems, what the model's plan then finds in the
// file, and that every strategy of every step is checked.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
#include <string>

#include "bench/process/exit_code.hpp"
#include "bench/tune/tune.hpp"
#include "host/compare.hpp"
#include "host/core/file.hpp"
#include "host/model/step_workload.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/model.hpp"
#include "wide/models.hpp"

namespace wide::bench {
namespace {

using catalog::AxisValue;
using catalog::ModelSteps;
using catalog::StepProblem;
using Catch::Matchers::ContainsSubstring;
using Folder = test::TemporaryFolder;

/// Slices of one value as operands, a concat, two outputs of one node, an operand that is one for
/// all and copied for each, a step of what all members share.
Graph mixed_graph() {
  GraphBuilder b("mixed");
  const Value x = b.input("x", {kBatch, 4, 8}), image = b.shared_input("image", {kBatch, 3, 5, 5});
  const Value qkv =
      b.append("qkv", LinearOp{}, {{"x", x}, {"weight", b.parameter("qkv.weight", {24, 8})}});
  const auto part = [&](const char* name, int64_t first) {
    return b.append(name, SliceOp{.axis = 2, .first = first, .count = 8}, {{"x", qkv}});
  };
  const Value core = b.append("core", FlashAttentionOp{.heads = 2},
                              {{"q", part("q", 0)}, {"k", part("k", 8)}, {"v", part("v", 16)}});
  const auto [normed, sum] =
      b.append_two("norm", LayernormOp{.writes_sum = true},
                   {{"x", core}, {"residual", x}, {"gamma", b.parameter("g", {8})}});
  const Value both = b.append("both", ConcatOp{.axis = 2}, {{"part0", normed}, {"part1", sum}});
  b.output("y", b.append("out", LinearOp{.activation = Activation::gelu},
                         {{"x", both}, {"weight", b.parameter("out.weight", {5, 16})}}));
  const Value shared =
      b.append("once", PointwiseOp{.function = PointwiseFunction::tanh}, {{"x", image}});
  b.output("z",
           b.append("depthwise", ConvOp{.groups = 3},
                    {{"x", shared}, {"weight", b.parameter("depthwise.weight", {6, 1, 3, 3})}}));
  return std::move(b).build();
}

catalog::Case case_of(const std::string& model,
                      std::vector<std::pair<std::string, AxisValue>> values) {
  [[maybe_unused]] static const auto& mixed = catalog::add_model("mixed", mixed_graph());
  values.insert(values.end(), {{"n", int64_t{3}}, {"batch", int64_t{2}}});
  return catalog::make_case(catalog::find_primitive("model:" + model), values);
}

std::vector<catalog::Case> small_cases() {
  const AxisValue two = int64_t{2}, few = int64_t{8}, pixels = int64_t{32};
  return {case_of("mixed", {}),
          case_of("mlp", {{"weights", "int8"}}),
          case_of("mlp256", {{"dtype", "bf16"}}),
          case_of("agent", {{"dtype", "fp16"}}),
          case_of("bert", {{"layers", two}, {"seq", few}, {"hidden", int64_t{64}}}),
          case_of("resnet18", {{"image", pixels}, {"hidden", few}}),
          case_of("unet", {{"image", pixels}, {"layers", two}, {"hidden", few}}),
          case_of("vit", {{"image", pixels}, {"layers", two}, {"hidden", int64_t{48}}})};
}

/// What a plan of the model, with memory reused, does by a cache.
ModelPlan plan_by(const catalog::Case& point, const TuningCache& cache) {
  ModelOptions options;
  options.tuning = &cache;
  return make_model_plan(Context::cpu(), catalog::model_graph(point),
                         {.num_members = point.integer("n"), .batch = point.integer("batch")},
                         options);
}

TEST_CASE("what is found for the steps is what the model's plan looks up") {
  const Context cpu = Context::cpu();
  for (const catalog::Case& point : small_cases()) {
    ModelSteps steps(cpu, point);
    TuningCache cache;
    for (const StepProblem& problem : steps.problems())
      cache.set(cpu.info(), problem.key.primitive, problem.key.problem,
                {"sequential", "", 1, 2, "", false});
    std::set<std::string> fixed;
    for (const auto& each : steps.fixed()) fixed.insert(each.nodes.begin(), each.nodes.end());
    const ModelPlan plan = plan_by(point, cache);
    CHECK(!steps.problems().empty());
    for (const ModelStep& step : plan.steps()) {
      INFO(point.op() << " " << step.node << " " << step.primitive << ": " << step.explain);
      CHECK(step.is_tuned == (fixed.count(step.node) == 0));
      if (step.is_tuned) CHECK(step.strategy == "sequential");
    }
  }
}

TEST_CASE("steps that cannot be tuned are named with the reason, and no others") {
  const ModelSteps steps(Context::cpu(), case_of("mixed", {}));
  std::string text;
  for (const auto& [reason, nodes] : steps.fixed()) {
    text += reason + ":";
    for (const std::string& node : nodes) text += " " + node;
    text += "; ";
  }
  CHECK(text ==
        "copies have one strategy: both both depthwise.copy; "
        "they read a copy, for each member, of what is one for all: depthwise; ");
}

TEST_CASE("steps with one problem are one") {
  const ModelSteps steps(Context::cpu(), case_of("bert", {{"seq", int64_t{8}}}));
  for (const StepProblem& problem : steps.problems()) {
    if (problem.nodes.front() != "layers.0.linear1") continue;
    CHECK(problem.nodes == std::vector<std::string>{"layers.0.linear1", "layers.1.linear1",
                                                    "layers.2.linear1", "layers.3.linear1"});
    CHECK(problem.primitive == "linear");
    return;
  }
  FAIL("no linear1");
}

catalog::WorkloadOptions seeded(uint64_t seed) {
  catalog::WorkloadOptions options;
  options.seed = seed;
  return options;
}

/// What one call by a strategy leaves, against the reference.
catalog::Verdict verdict_of(catalog::Workload& workload, const std::string& strategy,
                            const catalog::ReferenceSample& reference, bool runs = true) {
  const Context cpu = Context::cpu();
  const catalog::Prepared prepared = workload.prepare(strategy);
  Tensor workspace(cpu, Dtype::uint8, {prepared.workspace_bytes});
  workload.poison_outputs(catalog::OutputOf::strategy, Stream::cpu());
  const Execution execution{Stream::cpu(), {workspace.data(), workspace.bytes()}};
  for (int i = 0; runs && i < 2; ++i) prepared.run(execution);  // the second as the first
  CHECK(workload.damage(Stream::cpu()).empty());
  return catalog::compare(reference,
                          workload.read_outputs(catalog::OutputOf::strategy, Stream::cpu()));
}

TEST_CASE("every strategy of every step is right by the step's own reference") {
  const Context cpu = Context::cpu();
  for (const catalog::Case& point : small_cases()) {
    ModelSteps steps(cpu, point);
    for (const StepProblem& problem : steps.problems()) {
      const auto workload = steps.make_workload(problem, seeded(7));
      const catalog::ReferenceSample reference(*workload, 1e7);
      CHECK(reference.elements() > 0);
      for (const auto& info : catalog::find_primitive(problem.primitive).strategies) {
        if (info.device != DeviceType::cpu) continue;
        INFO(point.op() << " " << problem.nodes.front() << " " << info.name);
        const catalog::Verdict verdict = verdict_of(*workload, std::string(info.name), reference);
        INFO(verdict.message);
        CHECK(verdict.passed);
      }
      CHECK_FALSE(verdict_of(*workload, "wide", reference, false).passed);  // nothing was written
    }
  }
}

TEST_CASE("a step of a model has other values for another seed, and no baseline") {
  ModelSteps steps(Context::cpu(), case_of("mlp", {}));
  const auto outputs = [&](uint64_t seed) {
    const auto workload = steps.make_workload(steps.problems().front(), seeded(seed));
    CHECK_FALSE(workload->baseline_unsupported_reason().empty());
    CHECK(workload->unsupported_reason("wide").empty());
    CHECK_FALSE(workload->unsupported_reason("simt").empty());
    const catalog::ReferenceSample reference(*workload);
    return reference.rows().front().values;
  };
  CHECK(outputs(1) == outputs(1));
  CHECK(outputs(1) != outputs(2));
}

TEST_CASE("tune --model leaves a file from which run and trace take every step's strategy") {
  const Folder folder;
  const std::string model = "--n 2 --batch 2 ";
  const Outcome tuned = wbench("tune --model mlp " + model + kShort + "--tuning t.json");
  CHECK(tuned.code == kSuccess);
  CHECK_THAT(tuned.out, ContainsSubstring("n=2 batch=2 fc1 linear  ") &&
                            ContainsSubstring("n=2 batch=2 fc2 linear  ") &&
                            ContainsSubstring("runner-up"));
  CHECK(TuningCache::load("t.json").size() == 2);
  const Outcome again = wbench("tune --model mlp " + model + kShort + "--tuning t.json");
  CHECK(again.code == kSuccess);
  CHECK(
      again.out ==
      "not tuned: 2 steps: t.json has them by the same options (--again measures anew): fc1 fc2\n");
  const Outcome run =
      wbench("run --model mlp " + model + kShort + "--tuning t.json --strategy auto --explain");
  CHECK(run.code == kSuccess);
  CHECK_THAT(run.out, ContainsSubstring("2 steps: 2 linear (wide, tuned)"));
  const Outcome trace = wbench("trace -m mlp " + model + "-d cpu --tuning t.json --json t.trace");
  CHECK(trace.code == kSuccess);
  CHECK_THAT(trace.out, ContainsSubstring("linear     wide, tuned"));
  CHECK_THAT(read_file("t.trace"), ContainsSubstring("\"tuned\": true"));
  const Outcome other = wbench("trace -m mlp --n 3 --batch 2 -d cpu --tuning t.json");
  CHECK_THAT(other.out, !ContainsSubstring("tuned"));
  CHECK(wbench("trace -m mlp -d cpu --tuning none.json").code == kRuntimeError);
}

TEST_CASE("tune --model searches, obeys names and lists what it leaves") {
  const Folder folder;
  const std::string model = "tune --model bert --n 2 --batch 1 --seq 4 --layers 1 --hidden 16 ";
  const Outcome searched =
      wbench(model + kShort + "--search halving --budget 20 --space linear/wide --tuning t.json");
  CHECK(searched.code == kSuccess);
  CHECK_THAT(searched.out, ContainsSubstring("linear1 linear") &&
                               ContainsSubstring("no strategy is left:") &&
                               ContainsSubstring(" layers.0.self_attn"));
  const Outcome dry = wbench(model + "-d cpu --strategy sequential --dry-run");
  CHECK(dry.code == kSuccess);
  CHECK_THAT(dry.out,
             ContainsSubstring("step=pooler\n  sequential\n") && !ContainsSubstring("  wide"));
  const Outcome twice = wbench("tune --model mlp --hidden 0,128 --n 2 --batch 2" + kShort);
  CHECK(twice.code == kSuccess);
  CHECK_THAT(twice.out,
             ContainsSubstring("2 steps: another case or model had their problem: fc1 fc2\n"));
  const Outcome both = wbench("tune --op softmax --model mlp --n 2 --batch 2 -d cpu --dry-run");
  CHECK(both.code == kSuccess);
  CHECK_THAT(both.out, ContainsSubstring("softmax n=2") && ContainsSubstring("step=fc1"));
}

TEST_CASE(
    "routed rows: run, verify and trace have them, and their steps are left to their primitives") {
  const Folder folder;
  const std::string model = "--model deep_mlp --layers 3 --hidden 24 --n 3 --batch 5 -d cpu ";
  const Outcome verified =
      wbench("verify " + model + "--routed no,yes --dtype fp32,bf16 --all --json v.json");
  CHECK(verified.code == kSuccess);
  CHECK_THAT(verified.out, ContainsSubstring("routed=yes"));
  CHECK_THAT(read_file("v.json"), ContainsSubstring("3 routed_linear"));
  CHECK(wbench("run --model mlp --n 3 --batch 5 --routed yes --strategy compiled " + kShort).code ==
        kSuccess);
  const Outcome trace = wbench("trace " + model + "--routed yes --times");
  CHECK(trace.code == kSuccess);
  CHECK_THAT(trace.out, ContainsSubstring("3 members, batch 15") &&
                            ContainsSubstring("input member_ids: int64 [15]"));
  const Outcome tuned = wbench("tune " + model + "--routed yes");
  CHECK(tuned.code == kNothingRan);
  CHECK_THAT(tuned.out, ContainsSubstring("tune --op top_k,routing,routed_linear,routed_mlp, and "
                                          "layernorm,rmsnorm,chain --routed yes: routing "));
  const Outcome images = wbench("verify --model convnet --routed yes --n 2 --batch 1 -d cpu");
  CHECK(images.code == kNothingRan);
  CHECK_THAT(images.err, ContainsSubstring("(conv2d): rows are routed to members"));
}

TEST_CASE("mixtures of experts: run, verify and trace have them, by any router") {
  const Folder folder;
  const std::string model = "--model mlp --hidden 24 --n 4 --batch 3 --choices 2 ";
  const Outcome verified = wbench("verify " + model +
                                  "--routed yes --router ids,gated_ids,scores --dtype fp32,bf16 "
                                  "-d cpu --all --json v.json");
  CHECK(verified.code == kSuccess);
  CHECK_THAT(verified.out, ContainsSubstring("router=scores dtype=bf16"));
  CHECK_THAT(read_file("v.json"), ContainsSubstring("1 top_k (wide)"));
  const Outcome run =
      wbench("run " + model + "--routed yes --router scores --strategy compiled " + kShort);
  CHECK(run.code == kSuccess);
  CHECK_THAT(run.out, ContainsSubstring("loop"));
  const Outcome trace = wbench("trace " + model + "--routed yes --router gated_ids -d cpu --times");
  CHECK(trace.code == kSuccess);
  CHECK_THAT(trace.out, ContainsSubstring("input member_ids: int64 [12, 2]") &&
                            ContainsSubstring("input gates: fp32 [12, 2]"));
  const Outcome unrouted = wbench("verify " + model + "-d cpu");
  CHECK(unrouted.code == kNothingRan);
  CHECK_THAT(unrouted.err, ContainsSubstring("expected 1 and ids, as rows are not routed"));
}

TEST_CASE("routed rows: what tune finds for the primitive is what the model's plan looks up") {
  const Folder folder;
  const std::string layer = "tune --op routed_linear --n 3 --batch 5 --spread 0 --scatter yes ";
  const Outcome tuned =
      wbench(layer + "--in 64 --out 128 --activation relu --tuning t.json " + kShort);
  CHECK(tuned.code == kSuccess);
  const Outcome trace =
      wbench("trace -m mlp --routed yes --n 3 --batch 5 -d cpu --tuning t.json --json t.trace");
  CHECK(trace.code == kSuccess);
  const std::string steps = read_file("t.trace");
  CHECK(steps.find("\"tuned\": true") != std::string::npos);
  CHECK(steps.find("\"tuned\": true") == steps.rfind("\"tuned\": true"));  // of fc1 alone
}

TEST_CASE("routed rows of a model: each member's are scattered over the batch") {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("model:mlp");
  const std::vector<std::pair<std::string, AxisValue>> values{
      {"n", int64_t{4}}, {"batch", int64_t{6}}, {"routed", "yes"}};
  const catalog::Case point = catalog::make_case(spec, values);
  const auto workload = spec.make_workload(Context::cpu(), point, {});
  const std::vector<catalog::WorkloadInput> inputs = workload->input_views();
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[1].name == "member_ids");
  const auto* ids = static_cast<const int64_t*>(inputs[1].tensor.data);
  std::vector<int64_t> all(ids, ids + 24);
  CHECK_FALSE(std::is_sorted(all.begin(), all.end()));
  for (int64_t m = 0; m < 4; ++m) CHECK(std::count(all.begin(), all.end(), m) == 6);
  CHECK(workload->rows(0) == 6);
}

TEST_CASE("exit codes of tune --model") {
  const auto [line, code, message] = GENERATE(table<std::string, int, std::string>({
      {"tune --model mlpp", kUsage, "did you mean mlp?"},
      {"tune --model mlp --strategy widee -d cpu", kUsage, "did you mean wide"},
      {"tune --model mlp --space conv2d/widee -d cpu", kUsage, "conv2d/wide"},
      {"tune --model mlp --n 2 -d cpu --space conv2d/sequential", kNothingRan, "no candidate ran"},
      {"tune --model mlp --n 2 -d cpu --skip sequential,wide", kNothingRan, "no strategy"},
      {"tune --model mlp --filter nothing_like_it -d cpu", kNothingRan, "--filter"},
      {"tune --model mlp --seq 4 -d cpu", kUsage, "--seq has no effect here"},
      {"trace --op linear --tuning t.json", kUsage, "trace: --tuning has no effect here"},
      {"trace -m mlp --compile none --tuning t.json", kUsage, "--tuning has no effect here"},
      {"trace -m mlp --compile safe --tuning t.json", kUsage, "--tuning has no effect here"},
  }));
  INFO(line);
  const Outcome o = wbench(line);
  CHECK(o.code == code);
  CHECK_THAT(o.err, ContainsSubstring(message));
}

}  // namespace
}  // namespace wide::bench
