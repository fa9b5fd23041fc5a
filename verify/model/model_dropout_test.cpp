// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a model's dropouts draw, and Monte Carlo dropout by replays.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/chunked_model.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::ModelRun;

namespace {

const ModelOptions kDrops{.drops_out = true};

/// Two dropouts, one of which has members' own probabilities.
Graph two_dropouts() {
  return test::built([](GraphBuilder& g) {
    Value x = layers::relu(g, "act", layers::linear(g, "fc", g.input("x", {kBatch, 12}), 20));
    x = layers::dropout(g, "drop_a", x, 0.5f);
    g.output("y", layers::dropout(g, "drop_b", layers::linear(g, "out", x, 9)));
  });
}

using Pass = std::vector<std::vector<double>>;  ///< of every member

Pass values_of(const ModelRun::Outputs& outputs) {
  Pass pass;
  for (const auto& member : outputs.at("y")) pass.push_back(member.values);
  return pass;
}

/// The passes that seed_dropout(seed, first) and the sequences after that give.
std::vector<Pass> seeded_passes(ModelRun& run, uint64_t seed, uint64_t first, int count) {
  std::vector<Pass> passes;
  for (int k = 0; k < count; ++k) {
    run.model().seed_dropout(seed, first + static_cast<uint64_t>(k), run.stream());
    passes.push_back(values_of(run.run()));
  }
  return passes;
}

}  // namespace

TEST_CASE("model dropout: drops where that is asked for, and draws what seed and sequence say") {
  GraphBuilder g("mc");
  Value x = g.shared_input("x", {kBatch, 32});
  x = layers::relu(g, "act", layers::linear(g, "fc", x, 256));
  g.output("y", layers::dropout(g, "drop", x, 0.5f));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    ModelRun plain(context, graph, {.num_members = 3, .batch = 4}, {}, 7, {1, 1, 1});
    CHECK(plain.worst_error(plain.run()) < 2e-5);
    ModelRun run(context, graph, {.num_members = 3, .batch = 4}, {.drops_out = true}, 7, {1, 1, 1});
    const auto expected = plain.run().at("y"), first = run.run().at("y");
    // Equal members, other masks: what is kept is doubled.
    CHECK(first[0].values != first[1].values);
    int64_t kept = 0, positive = 0;
    for (size_t i = 0; i < first[0].values.size(); ++i) {
      const double was = expected[0].values[i], is = first[0].values[i];
      positive += was > 0;
      kept += is > 0;
      CHECK((is == 0 || std::abs(is - 2 * was) <= 1e-5 * was));
    }
    CHECK(kept > positive * 2 / 5);
    CHECK(kept < positive * 3 / 5);
    run.model().seed_dropout(0, 1, run.stream());
    const auto second = run.run().at("y");
    CHECK(second[0].values != first[0].values);
    run.model().seed_dropout(0, 0, run.stream());
    CHECK(run.run().at("y")[0].values == first[0].values);
    // Near seeds are other members' masks; who has the same seed drops the same.
    run.model().seed_dropout(1, 0, run.stream());
    CHECK(run.run().at("y")[0].values == first[1].values);
    const std::vector<uint64_t> seeds{2, 0, 2};
    run.model().seed_dropout(seeds, 0, run.stream());
    const auto own = run.run().at("y");
    CHECK(own[0].values == first[2].values);
    CHECK(own[1].values == first[0].values);
    CHECK(own[2].values == first[2].values);
    CHECK_THROWS_WITH(run.model().seed_dropout(std::span(seeds).first(2), 0, run.stream()),
                      ContainsSubstring("seed_dropout: 2 seeds, expected one for each member = 3"));
    // Masks go by the row of a run: every chunk would have the same.
    CHECK_THROWS_WITH(
        ChunkedModel(run.model(), 8),
        ContainsSubstring("model: drops_out is set, expected none of a model that runs in "
                          "chunks"));
    CHECK_NOTHROW(ChunkedModel(plain.model(), 8));
  }
}

TEST_CASE("model dropout: those of a graph share no sequence, up to the last") {
  GraphBuilder g("mc");
  Value x = g.input("x", {kBatch, 256});
  g.output("a", layers::dropout(g, "drop_a", x, 0.5f));
  g.output("b", layers::dropout(g, "drop_b", x, 0.5f));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, {.num_members = 2, .batch = 1}, {.drops_out = true});
    constexpr uint64_t kLast = (uint64_t{1} << 63) - 1;
    std::set<std::vector<double>> seen;
    for (const uint64_t sequence : {uint64_t{7}, kLast / 2 + 8, kLast}) {
      run.model().seed_dropout(3, sequence, run.stream());
      const auto drawn = run.run();
      CHECK(seen.insert(drawn.at("a")[0].values).second);
      CHECK(seen.insert(drawn.at("b")[0].values).second);
    }
    for (const uint64_t sequence : {kLast + 1, kLast + 8, ~uint64_t{0}}) {
      CHECK_THROWS_WITH(
          run.model().seed_dropout(3, sequence, run.stream()),
          ContainsSubstring("model: seed_dropout: sequence is " + std::to_string(sequence) +
                            ", expected at most 9223372036854775807 with 2 dropouts"));
    }
  }
}

TEST_CASE("model dropout: after the last sequence comes the first, for each of a graph's") {
  const Graph graph = test::built([](GraphBuilder& g) {
    Value x = g.input("x", {kBatch, 64});
    for (const char* name : {"a", "b", "c"}) {
      g.output(name, layers::dropout(g, std::string("drop_") + name, x, 0.5f));
    }
  });
  // Numbers of three dropouts do not wrap at a multiple of three.
  constexpr uint64_t kLast = ~uint64_t{0} / 3 - 1;
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, {.num_members = 2, .batch = 1}, kDrops);
    const auto drawn = [&] {
      const ModelRun::Outputs outputs = run.run();
      Pass pass;
      for (const char* name : {"a", "b", "c"}) {
        for (const auto& member : outputs.at(name)) pass.push_back(member.values);
      }
      return pass;
    };
    const auto seeded = [&](uint64_t sequence) {
      run.model().seed_dropout(3, sequence, run.stream());
      return drawn();
    };
    const Pass first = seeded(0), second = seeded(1), last = seeded(kLast);
    CHECK(seeded(kLast - 1) != last);
    for (const Pass& expected : {last, first, second}) {
      run.model().advance_dropout(run.stream());
      CHECK(drawn() == expected);
    }
  }
}

TEST_CASE("model dropout: each replay after an advance is the pass of the next sequence") {
  const std::vector<ModelProblem> problems{{.num_members = 3, .batch = 4},
                                           {.num_members = 3, .batches = {2, 0, 5}}};
  for (const Context& context : test::devices_at_hand()) {
    for (const ModelProblem& problem : problems) {
      CAPTURE(to_string(context.device()), problem.batches.size());
      ModelRun run(context, two_dropouts(), problem, kDrops);
      const std::vector<Pass> expected = seeded_passes(run, 40, 6, 4);
      CHECK(std::set<Pass>(expected.begin(), expected.end()).size() == 4);
      const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
      run.model().seed_dropout(40, 6, run.stream());
      for (size_t k = 0; k < expected.size(); ++k) {
        if (k > 0) run.model().advance_dropout(run.stream());
        run.poison();
        replay.run(run.stream());
        CHECK(values_of(run.read()) == expected[k]);
      }
      // The replay may advance on its own: a launch per pass.
      const ModelReplay advancing(context, run.model(), run.arguments(), run.execution(),
                                  {.advances_dropout = true});
      run.model().seed_dropout(40, 6, run.stream());
      for (size_t k = 1; k < expected.size(); ++k) {
        run.poison();
        advancing.run(run.stream());
        CHECK(values_of(run.read()) == expected[k]);
      }
      // Seeds of its own for each member stay its own.
      const std::vector<uint64_t> seeds{42, 7, 40};
      run.model().seed_dropout(seeds, 7, run.stream());
      run.model().advance_dropout(run.stream());
      const Pass own = values_of(run.run());
      if (problem.batches.empty()) CHECK(own[1] != expected[2][1]);
      run.model().seed_dropout(seeds, 8, run.stream());
      CHECK(values_of(run.run()) == own);
    }
  }
}

TEST_CASE("model dropout: more members than a launch has room for, and the first of them alone") {
  constexpr int64_t kMembers = 259;  // 256 seeds are in a launch's parameters
  const Graph graph = test::built([](GraphBuilder& g) {
    const Value x = layers::dropout(g, "a", g.shared_input("x", {kBatch, 64}), 0.5f);
    g.output("y", layers::dropout(g, "b", x, 0.25f));
  });
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, {.num_members = kMembers, .batch = 1}, kDrops);
    ModelRun alone(context, graph, {.num_members = 1, .batch = 1}, kDrops);
    run.model().seed_dropout(5, 1, run.stream());
    const auto check_members = [&](uint64_t sequence_of_first, uint64_t sequence_of_others) {
      const Pass pass = values_of(run.run());
      REQUIRE(pass.size() == kMembers);
      for (const size_t m : {size_t{0}, size_t{1}, size_t{255}, size_t{256}, size_t{258}}) {
        CAPTURE(m);
        alone.model().seed_dropout(5 + m, m < 2 ? sequence_of_first : sequence_of_others,
                                   alone.stream());
        CHECK(pass[m] == values_of(alone.run())[0]);
      }
    };
    check_members(1, 1);
    run.model().advance_dropout(run.stream());
    check_members(2, 2);
    // Others than those that run are not changed.
    Model first = run.model().with_num_members(2);
    first.advance_dropout(run.stream());
    check_members(3, 2);
    first.seed_dropout(5, 9, run.stream());
    check_members(9, 2);
  }
}

TEST_CASE("model dropout: what is one for all stays so where nothing is dropped") {
  const Graph graph = test::built([](GraphBuilder& g) {
    g.output("y", layers::dropout(g, "drop", g.shared_input("x", {kBatch, 5})));
  });
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, {.num_members = 3, .batch = 2});
    CHECK(run.plan().outputs()[0].member_axis == -1);
    CHECK(run.worst_error(run.run()) == 0);
  }
}

TEST_CASE("model dropout: nothing to advance where nothing is dropped") {
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, two_dropouts(), {.num_members = 2, .batch = 1});
    CHECK_THROWS_WITH(
        run.model().advance_dropout(run.stream()),
        ContainsSubstring("model: advance_dropout: nothing is dropped, expected a plan with "
                          "drops_out"));
    CHECK_THROWS_WITH(
        ModelReplay(context, run.model(), run.arguments(), run.execution(),
                    {.advances_dropout = true}),
        ContainsSubstring("advances_dropout: nothing is dropped, expected a plan with "
                          "drops_out"));
  }
}
