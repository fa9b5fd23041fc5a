// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parts of a concat that are copied to where they lie are copied into it at once, where nothing
// else reads them.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>
#include <utility>

#include "verify/model/model_case.hpp"
#include "wide/layers.hpp"

using namespace wide;

namespace {

const Shape kImage{kBatch, 4, 3, 5};

using Build = std::function<void(GraphBuilder&)>;

/// Right on all devices; nodes of its copies.
std::string copies(const char* name, const Build& build) {
  test::check_on_all_devices(name, build);
  GraphBuilder g(name);
  build(g);
  const ModelPlan plan =
      make_model_plan(Context::cpu(), std::move(g).build(), {.num_members = 3, .batch = 1});
  std::string nodes;
  for (const ModelStep& step : plan.steps()) {
    if (step.primitive == "copy") nodes += (nodes.empty() ? "" : ", ") + step.node;
  }
  return nodes;
}

Value join(GraphBuilder& g, const std::string& name, std::initializer_list<Value> parts,
           int axis = 1) {
  return layers::concat(g, name, parts, axis);
}
Value turned(GraphBuilder& g, const std::string& name, Value x) {
  return layers::transpose(g, name, x, {0, 1, 3, 2});
}

}  // namespace

TEST_CASE("model concat: phases, rows and columns are copied there at once") {
  CHECK(copies("up", [](GraphBuilder& g) {
          const Value x = g.input("x", kImage), skip = g.input("skip", {kBatch, 2, 6, 10});
          const Value y = join(g, "joined", {skip, layers::upsample(g, "up", x, 2)});
          g.output("y", layers::relu(g, "act", y));
        }) == "up, joined");
  CHECK(copies("phases", [](GraphBuilder& g) {
          const Value x = g.input("x", kImage), skip = g.input("skip", {kBatch, 2, 6, 10});
          g.output("y", join(g, "joined", {layers::depth_to_space(g, "phases", x, 2), skip}));
        }) == "phases, joined");
  CHECK(copies("learned", [](GraphBuilder& g) {
          const Value x = g.input("x", {kBatch, 4, 5}), first = g.parameter("first", {3, 10});
          g.output("y", join(g, "joined", {first, layers::upsample(g, "up", x, 2)}));
        }) == "up, joined");
  CHECK(copies("signals", [](GraphBuilder& g) {
          const Value x = g.input("x", {kBatch, 4, 5}), skip = g.input("skip", {kBatch, 2, 10});
          g.output("y", join(g, "joined", {skip, layers::upsample(g, "up", x, 2), skip}));
        }) == "up, joined, joined");
  CHECK(copies("turned", [](GraphBuilder& g) {
          const Value x = g.input("x", kImage), z = g.input("z", {kBatch, 4, 7, 5});
          g.output("y", join(g, "joined", {turned(g, "a", x), turned(g, "b", z)}, 3));
        }) == "a, b");
  CHECK(copies("inner", [](GraphBuilder& g) {  // which lies in the outer one
          const Value x = g.input("x", kImage), z = g.input("z", {kBatch, 1, 5, 3});
          const Value inner = join(g, "inner", {z, turned(g, "a", x)});
          g.output("y", join(g, "outer", {z, inner, z}));
        }) == "a, inner, outer, outer");
}

TEST_CASE("model concat: with channels last, and of transposed convolutions") {
  // Of groups the members are one axis more than a copy has.
  for (const auto& [groups, nodes] :
       {std::pair{0, "phases, joined"}, {1, "phases, joined"}, {2, "phases, phases, joined"}}) {
    CAPTURE(groups);
    CHECK(copies("last", [&](GraphBuilder& g) {
            const Value x = g.input("x", {kBatch, 3, 5, 16}),
                        skip = g.input("skip", {kBatch, 6, 10, 3});
            const DepthToSpaceOp op{.groups = groups, .layout = ChannelLayout::channels_last};
            const Value y = g.append("phases", op, {{"x", x}});
            g.output("y", join(g, "joined", {skip, y}, 3));
          }) == nodes);
  }
  const std::string nodes = copies("convolution", [](GraphBuilder& g) {
    const Value x = g.input("x", kImage), skip = g.input("skip", {kBatch, 3, 6, 10});
    const Value up = layers::conv_transpose(g, "up", x, 6, {.kernel = {2, 2}, .stride = {2, 2}});
    g.output("y", join(g, "joined", {skip, up}));
  });
  CHECK(std::count(nodes.begin(), nodes.end(), ',') == 1);
}

TEST_CASE("model concat: what others read, too, or what lies otherwise is copied as before") {
  CHECK(copies("twice", [](GraphBuilder& g) {
          const Value a = turned(g, "a", g.input("x", kImage));
          g.output("y", join(g, "joined", {a, a}));
        }) == "a, joined, joined");
  CHECK(copies("read", [](GraphBuilder& g) {
          const Value a = turned(g, "a", g.input("x", kImage)), z = g.input("z", {kBatch, 4, 5, 3});
          g.output("y", join(g, "joined", {z, a}));
          g.output("w", layers::relu(g, "act", a));
        }) == "a, joined, joined");
  CHECK(copies("output", [](GraphBuilder& g) {
          const Value a = turned(g, "a", g.input("x", kImage)), z = g.input("z", {kBatch, 4, 5, 3});
          g.output("y", join(g, "joined", {z, a}));
          g.output("w", a);
        }) == "a, joined, joined");
  CHECK(copies("shared", [](GraphBuilder& g) {  // one for all members
          const Value a = turned(g, "a", g.shared_input("x", kImage));
          g.output("y", join(g, "joined", {g.input("z", {kBatch, 4, 5, 3}), a}));
        }) == "a, joined, joined");
  CHECK(copies("all shared", [](GraphBuilder& g) {
          const Value a = turned(g, "a", g.shared_input("x", kImage));
          g.output("y", join(g, "joined", {g.shared_input("z", {kBatch, 4, 5, 3}), a}));
        }) == "a, joined");
  CHECK(copies("volumes",
               [](GraphBuilder& g) {  // whose phases would be a copy each
                 const Value x = g.input("x", {kBatch, 2, 2, 3, 2});
                 const Value y = join(g, "joined", {layers::upsample(g, "up", x, 2)});
                 g.output("y", layers::relu(g, "act", y));
               })
            .ends_with(", joined"));
}
