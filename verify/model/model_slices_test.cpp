// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parts of sequences and of channels as operands of what reads rows of one stride: copied where
// they do not lie so, which hangs on the batch, and refused where nothing may be moved.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <string>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::ModelRun;

namespace {

const Shape kPositions{kBatch, 6, 8};

using Build = std::function<Value(GraphBuilder&)>;

Graph graph_of(const Build& build) {
  GraphBuilder g("slices");
  g.output("y", build(g));
  return std::move(g).build();
}

/// x[:, 1:5]
Value part(GraphBuilder& g, Value x, const std::string& name = "part") {
  return layers::slice(g, name, x, 1, 1, 4);
}

int64_t num_copies(const ModelPlan& plan) {
  const auto steps = plan.steps();
  return std::count_if(steps.begin(), steps.end(),
                       [](const ModelStep& step) { return step.primitive == "copy"; });
}

/// Computes what it should, with so many copies of more rows than one, and of one.
void check(const char* name, int64_t copies, int64_t copies_of_one, const Build& build) {
  CAPTURE(name);
  const Graph graph = graph_of(build);
  for (const Context& context : test::devices_at_hand()) {
    for (const ModelProblem& problem :
         {ModelProblem{.num_members = 3, .batch = 2}, ModelProblem{.num_members = 1, .batch = 3},
          ModelProblem{.num_members = 2, .batch = 1}}) {
      CAPTURE(to_string(context.device()), problem.num_members, problem.batch);
      ModelRun run(context, graph, problem);
      CHECK(run.worst_error(run.run()) < 2e-5);
      CHECK(num_copies(run.plan()) == (problem.batch == 1 ? copies_of_one : copies));
    }
    ModelRun ragged(context, graph, {.num_members = 3, .batches = {1, 0, 3}});
    CHECK(ragged.worst_error(ragged.run()) < 2e-5);
  }
}

/// Of a cut input, then refused where nothing may be moved, as unsupported.
void check_refused(const Build& build) {
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  const Graph graph = graph_of(build);
  ModelOptions strict;
  strict.moves_data = false;
  CHECK_NOTHROW(make_model_plan(cpu, graph, {.num_members = 2, .batch = 1}, strict));
  try {
    (void)make_model_plan(cpu, graph, {.num_members = 2, .batch = 2}, strict);
    FAIL("a plan was made");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK_THAT(error.what(),
               ContainsSubstring("model: node") && ContainsSubstring("this would move data"));
  }
}

Value flash(GraphBuilder& g, Value q, Value k, Value v) {
  return g.append("node", FlashAttentionOp{.heads = 2}, {{"q", q}, {"k", k}, {"v", v}});
}

}  // namespace

TEST_CASE("model slices: attention to and of a part of a sequence") {
  check("attention", 1, 0, [](GraphBuilder& g) {
    const Value x = layers::layernorm(g, "norm", g.input("x", kPositions));
    return layers::attention(g, "node", part(g, x), 2);
  });
  check("of an input", 1, 0, [](GraphBuilder& g) {
    return layers::attention(g, "node", part(g, g.input("x", kPositions)), 2);
  });
  check("of one for all members", 1, 0, [](GraphBuilder& g) {
    return layers::attention(g, "node", part(g, g.shared_input("x", kPositions)), 2);
  });
  check("queries", 1, 0, [](GraphBuilder& g) {
    const Value x = g.input("x", kPositions);
    return flash(g, part(g, x), x, x);
  });
  check("keys and values", 1, 0, [](GraphBuilder& g) {
    const Value x = g.input("x", kPositions), keys = part(g, x);
    return flash(g, x, keys, keys);
  });
  check("all three", 3, 0, [](GraphBuilder& g) {
    const Value x = g.input("x", kPositions);
    return flash(g, part(g, x, "q"), part(g, x, "k"), part(g, x, "v"));
  });
}

TEST_CASE("model slices: recurrent layers of a part of a sequence") {
  check("lstm", 1, 0, [](GraphBuilder& g) {
    return layers::lstm(g, "node", part(g, g.input("x", kPositions)), 5);
  });
  check("gru of a layer's steps", 1, 0, [](GraphBuilder& g) {
    const Value h = layers::gru(g, "first", g.input("x", kPositions), 5);
    return layers::gru(g, "node", part(g, h), 4);
  });
  check("of one for all members", 1, 0, [](GraphBuilder& g) {
    return layers::lstm(g, "node", part(g, g.shared_input("x", kPositions)), 5);
  });
}

TEST_CASE("model slices: elements of the last axis that lie apart") {
  // Every second element of what is one axis less.
  const auto second = [](GraphBuilder& g, Value x, const Shape& shape) {
    const int last = g.type(x).shape.rank() - 1;
    return layers::reshape(g, "view", layers::slice(g, "cut", x, last, 1, 1), shape);
  };
  check("ids", 1, 1, [&](GraphBuilder& g) {
    const Value ids = second(g, g.input("ids", {kBatch, 6, 2}, Dtype::int32), {kBatch, 6});
    return layers::embedding(g, "node", ids, 9, 4);
  });
  check("features", 1, 1, [&](GraphBuilder& g) {
    const Value x = second(g, g.input("x", {kBatch, 6, 8, 2}), kPositions);
    return layers::attention(g, "node", x, 2);
  });
  check("lengths", 1, 0, [&](GraphBuilder& g) {
    const Value lengths = second(g, g.input("lengths", {kBatch, 2}, Dtype::int32), {kBatch});
    return layers::attention(g, "node", g.input("x", kPositions), 2, {.key_lengths = lengths});
  });
}

TEST_CASE("model slices: norms of some rows of a volume's planes") {
  const auto rows = [](GraphBuilder& g) {
    return layers::slice(g, "part", g.input("x", {kBatch, 4, 3, 4, 2}), 3, 1, 2);
  };
  check("batchnorm", 1, 1, [&](GraphBuilder& g) { return layers::batchnorm(g, "node", rows(g)); });
  check("groupnorm", 1, 1,
        [&](GraphBuilder& g) { return layers::groupnorm(g, "node", rows(g), 2); });
  check("instancenorm", 1, 1,
        [&](GraphBuilder& g) { return layers::instancenorm(g, "node", rows(g)); });
}

TEST_CASE("model slices: factors of some channels") {
  const Build build = [](GraphBuilder& g) {
    const Value x = part(g, g.input("x", {kBatch, 6, 4, 3}));
    return layers::binary(g, "node", x, g.parameter("factors", {4, 1, 1}),
                          BinaryFunction::multiply);
  };
  const Graph graph = graph_of(build);
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t members : {1, 3}) {
      ModelRun run(context, graph, {.num_members = members, .batch = 2});
      CHECK(run.worst_error(run.run()) < 2e-5);
      CHECK(num_copies(run.plan()) == (members == 1 ? 0 : 1));
    }
  }
}

TEST_CASE("model slices: where nothing may be moved, batches of one row are the largest") {
  const Build attention = [](GraphBuilder& g) {
    return layers::attention(g, "node", part(g, g.input("x", kPositions)), 2);
  };
  check_refused(attention);
  check_refused([](GraphBuilder& g) {
    return layers::lstm(g, "node", part(g, g.input("x", kPositions)), 5);
  });

  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  const Graph graph = graph_of(attention);
  ModelOptions strict;
  strict.moves_data = false;
  constexpr int64_t kBytes = int64_t{1} << 40;
  CHECK(largest_batch_that_fits(cpu, graph, 2, kBytes, 8, strict) == 1);
  CHECK(largest_batch_that_fits(cpu, graph, 2, kBytes, 8) == 8);
  // Where one row cannot run either it is not the batch.
  strict.strategies = {{"attention", "no-such"}};
  CHECK_THROWS_WITH(largest_batch_that_fits(cpu, graph, 2, kBytes, 8, strict),
                    ContainsSubstring("strategy is \"no-such\""));
  CHECK_THROWS_WITH(largest_num_members_that_fits(cpu, graph, 1, kBytes, strict),
                    ContainsSubstring("strategy is \"no-such\""));
}
