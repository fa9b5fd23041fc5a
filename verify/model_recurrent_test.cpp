// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers in models of several members: both cells, stacked, in both directions, with
// states that come and go, on inputs of their own and shared; each against plain loops. And what
// graphs refuse of them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <string>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::ModelRun;

namespace {

void check(const char* name, const std::function<void(GraphBuilder&)>& build,
           const std::vector<std::string>& shared = {}) {
  GraphBuilder g(name);
  build(g);
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    const bool on_cpu = context.device().type == DeviceType::cpu;
    for (const char* strategy : {"auto", "fused", "stepwise"}) {
      if (on_cpu != (std::string(strategy) == "auto")) continue;
      CAPTURE(name, strategy, to_string(context.device()));
      ModelOptions options;
      if (!on_cpu) options.strategies = {{"recurrent", strategy}, {"linear", "simt"}};
      options.shared_parameters = shared;
      // What is shared must be the same in all members.
      const std::vector<int64_t> ids =
          shared.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{4, 4, 4};
      ModelRun run(context, graph, {.num_members = 3, .batch = 2}, options, 7, ids);
      CHECK(run.worst_error(run.run()) < 2e-5);
      ModelRun ragged(context, graph, {.num_members = 3, .batches = {1, 0, 3}}, options, 7, ids);
      CHECK(ragged.worst_error(ragged.run()) < 2e-5);
    }
  }
}

std::string refusal(const std::function<void(GraphBuilder&)>& build) {
  GraphBuilder g("refused");
  try {
    build(g);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("model: layers of both cells, one on top of the other, and both directions") {
  check("stacked", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 4, 6});
    Value h = layers::lstm(g, "lstm", x, 8);
    h = layers::gru(g, "gru", h, 5, {.is_reversed = true});
    h = layers::bidirectional(g, "both", h, 7, RecurrentCell::lstm);
    const Value last = layers::slice(g, "last", h, 1, 3, 1);
    g.output("y", layers::linear(g, "head", layers::flatten(g, "flat", last), 3));
    g.output("all", h);
  });
}

TEST_CASE("model: states come from outside and go there again") {
  check("states", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 4}), h0 = g.input("h0", {kBatch, 6}),
                c0 = g.input("c0", {kBatch, 6}, Dtype::fp32);
    const auto [y, cell] = g.append_two("lstm", RecurrentOp{.writes_cell = true},
                                        {{"x", x},
                                         {"input_weight", g.parameter("wi", {24, 4})},
                                         {"hidden_weight", g.parameter("wh", {24, 6})},
                                         {"first_hidden", h0},
                                         {"first_cell", c0}});
    g.output("y", y);
    g.output("cell", cell);
    g.output("gru", layers::gru(g, "gru", y, 6, {.first_hidden = h0}));
  });
}

TEST_CASE("model: members share x, or a layer") {
  const auto build = [](GraphBuilder& g) {
    const Value x = g.shared_input("x", {kBatch, 3, 4});
    const Value h = layers::gru(g, "first", x, 6);
    g.output("y", layers::lstm(g, "second", h, 5, {.has_bias = false}));
  };
  check("shared input", build);
  check("shared layer", build,
        {"first.weight_ih_l0", "first.weight_hh_l0", "first.bias_ih_l0", "first.bias_hh_l0"});
}

TEST_CASE("model: recurrent layers that do not fit are refused by their names") {
  CHECK_THAT(refusal([](GraphBuilder& g) {
               const Value x = g.input("x", {kBatch, 3, 4}), h = g.input("h", {kBatch, 6});
               layers::lstm(g, "rnn", x, 6, {.first_hidden = h});
             }),
             ContainsSubstring("graph: rnn: first_hidden or first_cell is absent, expected both or "
                               "none"));
  CHECK_THAT(refusal([](GraphBuilder& g) {
               const Value x = g.input("x", {kBatch, 3, 4}), h = g.input("h", {kBatch, 5});
               layers::gru(g, "rnn", x, 6, {.first_hidden = h});
             }),
             ContainsSubstring("graph: rnn: first_hidden is fp32 [B, 5], expected fp32 [B, 6]"));
  CHECK_THAT(refusal([](GraphBuilder& g) {
               const Value x = g.input("x", {kBatch, 3, 4});
               g.append("rnn", RecurrentOp{.cell = RecurrentCell::gru},
                        {{"x", x},
                         {"input_weight", g.parameter("wi", {24, 4})},
                         {"hidden_weight", g.parameter("wh", {24, 6})}});
             }),
             ContainsSubstring("graph: rnn: hidden_weight is [24, 6], expected [18, 6]"));
  CHECK_THAT(refusal([](GraphBuilder& g) {
               const Value x = g.input("x", {kBatch, 3, 4}), h = g.input("h", {kBatch, 6});
               layers::bidirectional(g, "rnn", x, 6, RecurrentCell::gru, {.first_hidden = h});
             }),
             ContainsSubstring("both directions would begin with it"));
}
