// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every allocation of a change of members fails once: then nothing was changed, neither what runs
// compute nor what is read back.
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "verify/support/allocations.hpp"
#include "verify/support/model_run.hpp"
#include "wide/layers.hpp"

using namespace wide;
using test::AllocationFailure;
using test::ModelRun;
using test::runs_out;

namespace {

constexpr int64_t kMembers = 3;

/// All that a change can change.
struct Snapshot {
  std::map<std::string, std::vector<std::vector<double>>> outputs;
  std::vector<std::map<std::string, std::vector<std::byte>>> parameters;
  std::vector<bool> is_masked;
  bool operator==(const Snapshot&) const = default;
};

Snapshot snapshot(ModelRun& run) {
  Snapshot s;
  for (const auto& [name, members] : run.run()) {
    for (const auto& member : members) s.outputs[name].push_back(member.values);
  }
  for (int64_t member = 0; member < kMembers; ++member) {
    auto& parameters = s.parameters.emplace_back();
    for (const auto& [name, tensor] : run.model().get(member, run.stream())) {
      const auto* bytes = static_cast<const std::byte*>(tensor.data());
      parameters[name].assign(bytes, bytes + tensor.bytes());
    }
    s.is_masked.push_back(run.model().is_masked(member));
  }
  return s;
}

/// In the end, when no allocation is left to fail, it does change something.
void check(ModelRun& run, const std::function<void()>& change) {
  const Snapshot before = snapshot(run);
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    bool has_failed = false, was_reached = false;
    {
      const AllocationFailure failure(k);
      has_failed = runs_out(change);
      was_reached = failure.was_reached();
    }
    REQUIRE(has_failed == was_reached);
    const Snapshot after = snapshot(run);
    if (was_reached) {
      REQUIRE(after == before);
      continue;
    }
    CHECK(k > 1);
    CHECK(after != before);
    return;
  }
}

/// Parameters that are kept as given beside what passes make of them, and some that are not.
Graph folded() {
  return test::small_model("resblock");
}
Graph quantized() {
  return with_quantized_weights(test::small_model("mlp"), {.format = WeightFormat::int4});
}
Graph dropping() {
  return test::built([](GraphBuilder& g) {
    const Value x = layers::linear(g, "fc", g.input("x", {kBatch, 16}), 64);
    const Value h = layers::relu(g, "act", layers::dropout(g, "one", x, 0.5f));
    g.output("y", layers::dropout(g, "two", h, 0.25f));
  });
}

}  // namespace

TEST_CASE("model out of memory: an allocation fails where it is told to, and none after it") {
  std::vector<bool> have_failed(3);
  bool was_reached = false;
  {
    const AllocationFailure failure(2);
    for (size_t i = 0; i < have_failed.size(); ++i) {
      have_failed[i] = runs_out([] { delete new int; });
    }
    was_reached = failure.was_reached();
  }
  CHECK(was_reached);
  CHECK(have_failed == std::vector<bool>{false, true, false});
}

TEST_CASE(
    "model out of memory: members that are replaced, cloned or compacted stay what they were") {
  for (const Graph& graph : {folded(), quantized()}) {
    CAPTURE(graph.name());
    const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
    ModelRun run(cpu, graph, {.num_members = kMembers, .batch = 2});
    Model& model = run.model();
    const MemberParameters other = run.parameters_of(9);
    check(run, [&] { model.replace(1, other, run.stream()); });
    check(run, [&] { model.clone(1, 2, run.stream()); });
    const MemberParameters third = run.parameters_of(5);
    for (const auto& [name, view] : third) {
      CAPTURE(name);
      check(run, [&] { model.set(2, name, view, run.stream()); });
    }
    model.mask(0, run.stream());
    check(run, [&] { (void)model.compact(run.stream()); });
  }
}

TEST_CASE("model out of memory: dropout draws what it drew") {
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  ModelRun run(cpu, dropping(), {.num_members = kMembers, .batch = 2}, {.drops_out = true});
  check(run, [&] { run.model().seed_dropout(5, 1, run.stream()); });
}
