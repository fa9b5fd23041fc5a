// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers in models of several members: both cells, stacked, in both directions, with
// states that come and go, on inputs of their own and shared; each against plain loops. And what
// graphs refuse of them.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

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
    const auto [y, hidden, cell] = layers::recurrent(g, "lstm", x, 6, RecurrentCell::lstm,
                                                     {.first_hidden = h0, .first_cell = c0});
    g.output("y", y);
    g.output("cell", cell);
    g.output("hidden", hidden);
    const auto back = layers::recurrent(g, "back", x, 5, RecurrentCell::gru, {.is_reversed = true});
    g.output("back", back.hidden);
    CHECK(back.cell.is_absent());
    g.output("gru", layers::gru(g, "gru", y, 6, {.first_hidden = h0}));
  });
}

TEST_CASE("model: a sequence in two parts, whose states go on, is the whole sequence") {
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    GraphBuilder g("parts");
    const Value x = g.input("x", {kBatch, 5, 4});
    const auto part = [&](const char* name, Value steps, const layers::RecurrentLayer& layer) {
      return layers::recurrent(g, name, steps, 6, cell, layer);
    };
    const auto whole = part("whole", x, {});
    const auto first = part("first", layers::slice(g, "x1", x, 1, 0, 2), {});
    const auto second = part("second", layers::slice(g, "x2", x, 1, 2, 3),
                             {.first_hidden = first.hidden, .first_cell = first.cell});
    g.output("difference",
             layers::binary(g, "d", whole.hidden, second.hidden, BinaryFunction::subtract));
    g.output("hidden", whole.hidden);
    const Graph graph = std::move(g).build();
    OwnedParameters owned = random_parameters(graph, 5, 0);
    for (const char* name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
      const Tensor& from = owned.at(std::string("whole.") + name);
      for (const char* to : {"first.", "second."})
        std::memcpy(owned.at(to + std::string(name)).data(), from.data(),
                    static_cast<size_t>(from.bytes()));
    }
    const std::vector<MemberParameters> members{views_of(owned)};
    const Context cpu = Context::cpu();
    const Model model(cpu, make_model_plan(cpu, graph, {.num_members = 1, .batch = 2}), members);
    std::array<float, 2 * 5 * 4> in{};
    std::array<float, 2 * 6> difference{}, hidden{};
    for (size_t i = 0; i < in.size(); ++i) in[i] = std::sin(static_cast<float>(i));
    const ConstTensorView in_view(in.data(), Dtype::fp32, {2, 5, 4}, cpu.device());
    const std::array<TensorView, 2> out{
        TensorView(difference.data(), Dtype::fp32, {2, 6}, cpu.device()),
        TensorView(hidden.data(), Dtype::fp32, {2, 6}, cpu.device())};
    Tensor workspace(cpu, Dtype::uint8, {model.plan().workspace_bytes()});
    model.run({{&in_view, 1}, out}, {Stream::cpu(), {workspace.data(), workspace.bytes()}});
    for (size_t i = 0; i < hidden.size(); ++i) {
      CHECK(std::abs(hidden[i]) > 1e-3f);
      CHECK(std::abs(difference[i]) < 1e-6f);
    }
  }
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
