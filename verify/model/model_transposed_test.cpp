// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolutions, depth_to_space and upsample: the judge against sums worked out by hand,
// and models of several members against the judge, whatever stride, kernel, padding and groups.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "host/model/conv_transpose.hpp"
#include "verify/model/model_case.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using catalog::Doubles;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using layers::ConvTransposeLayer;
using test::allowed_error, test::check_on_all_devices, test::ModelRun;

namespace {

/// One layer of 4 channels, and what reads it.
Graph graph_of(const Shape& x, const ConvTransposeLayer& layer, Dtype dtype = Dtype::fp32,
               int64_t channels = 4) {
  GraphBuilder g("transposed", dtype);
  const Value y = layers::conv_transpose(g, "up", g.input("x", x), channels, layer);
  g.output("y", layers::relu(g, "act", y));
  return std::move(g).build();
}

Doubles counted(std::vector<int64_t> shape) {
  Doubles values{std::move(shape), {}};
  int64_t count = 1;
  for (const int64_t extent : values.shape) count *= extent;
  values.values.resize(static_cast<size_t>(count));
  std::iota(values.values.begin(), values.values.end(), 1.0);
  return values;
}

std::vector<std::string> nodes_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    names.push_back(node.name + " " + std::string(operation_name(graph, node)));
  }
  return names;
}

}  // namespace

TEST_CASE("conv_transpose: sums that were worked out by hand") {
  // 1 2 3, each times 1 10 100, two apart.
  const auto sums = [](const ConvTransposeLayer& layer) {
    GraphBuilder g("by hand");
    g.output("y", layers::conv_transpose(g, "up", g.input("x", {kBatch, 1, 3}), 1, layer));
    return catalog::evaluate_graph(
               std::move(g).build(), {{"x", counted({1, 1, 3})}},
               {{"up.weight", {{1, 1, 3}, {1, 10, 100}}}, {"up.bias", {{1}, {0.5}}}})
        .at("y")
        .values;
  };
  using Values = std::vector<double>;
  CHECK(sums({.kernel = {1, 3}, .stride = {1, 2}}) ==
        Values{1.5, 10.5, 102.5, 20.5, 203.5, 30.5, 300.5});
  CHECK(sums({.kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}}) ==
        Values{10.5, 102.5, 20.5, 203.5, 30.5});
  CHECK(sums({.kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}, .output_padding = {0, 1}}) ==
        Values{10.5, 102.5, 20.5, 203.5, 30.5, 300.5});
  CHECK(sums({.kernel = {1, 3}, .stride = {1, 2}, .dilation = {1, 2}}) ==
        Values{1.5, 0.5, 12.5, 0.5, 123.5, 0.5, 230.5, 0.5, 300.5});
  CHECK(sums({.kernel = {1, 3}, .stride = {1, 2}, .output_padding = {0, -2}}) ==
        Values{1.5, 10.5, 102.5, 20.5, 203.5});
}

TEST_CASE("depth_to_space: elements whose places were worked out by hand") {
  GraphBuilder g("by hand");
  const Value x = g.input("x", {kBatch, 4, 1, 2});
  g.output("y", layers::depth_to_space(g, "shuffle", x, 2));
  g.output("cut", g.append("cut", DepthToSpaceOp{.first = {1, 1}, .size = {1, 2}}, {{"x", x}}));
  const auto y = catalog::evaluate_graph(std::move(g).build(), {{"x", counted({1, 4, 1, 2})}}, {});
  CHECK(y.at("y").shape == std::vector<int64_t>{1, 1, 2, 4});
  CHECK(y.at("y").values == std::vector<double>{1, 3, 2, 4, 5, 7, 6, 8});
  CHECK(y.at("cut").values == std::vector<double>{7, 6});
}

TEST_CASE("depth_to_space: groups of channels, and channels last, worked out by hand") {
  // Channel and place of each element as its digits: of 4 channels, 2 blocks, at positions 0 and 1.
  const Doubles first{{1, 8, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51, 60, 61, 70, 71}};
  const Doubles last{{1, 2, 8}, {0, 10, 20, 30, 40, 50, 60, 70, 1, 11, 21, 31, 41, 51, 61, 71}};
  using Values = std::vector<double>;
  const auto of = [&](int64_t groups, ChannelLayout layout) {
    GraphBuilder g("by hand");
    const bool is_last = layout == ChannelLayout::channels_last;
    const Value x = g.input("x", is_last ? Shape{kBatch, 2, 8} : Shape{kBatch, 8, 2});
    const DepthToSpaceOp op{.block = {1, 2}, .groups = groups, .layout = layout};
    g.output("y", g.append("y", op, {{"x", x}}));
    return catalog::evaluate_graph(std::move(g).build(), {{"x", is_last ? last : first}}, {})
        .at("y");
  };
  using enum ChannelLayout;
  const Values each{0, 10, 1, 11, 20, 30, 21, 31, 40, 50, 41, 51, 60, 70, 61, 71};
  CHECK(of(0, channels_first).values == each);
  CHECK(of(4, channels_first).values == each);
  CHECK(of(2, channels_first).values ==
        Values{0, 20, 1, 21, 10, 30, 11, 31, 40, 60, 41, 61, 50, 70, 51, 71});
  CHECK(of(1, channels_first).values ==
        Values{0, 40, 1, 41, 10, 50, 11, 51, 20, 60, 21, 61, 30, 70, 31, 71});
  CHECK(of(1, channels_last).shape == std::vector<int64_t>{1, 4, 4});
  CHECK(of(1, channels_last).values ==
        Values{0, 10, 20, 30, 40, 50, 60, 70, 1, 11, 21, 31, 41, 51, 61, 71});
  CHECK(of(0, channels_last).values ==
        Values{0, 20, 40, 60, 10, 30, 50, 70, 1, 21, 41, 61, 11, 31, 51, 71});
}

TEST_CASE("conv_transpose: every kernel, stride, padding and dilation of a signal") {
  for (const int64_t kernel : {1, 2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t padding : {0, 1, 4}) {
        for (const int64_t more : {-1, 0, 2, 7}) {
          const int64_t dilation = (kernel + padding) % 2 + 1;
          const int64_t out = 4 * stride - 2 * padding + dilation * (kernel - 1) + 1 + more;
          if (out < 1) continue;
          if (test::wants_small_cases() && (kernel + stride + padding + more) % 3 != 0) continue;
          CAPTURE(kernel, stride, padding, more, dilation);
          check_on_all_devices(graph_of({kBatch, 6, 5}, {.kernel = {1, kernel},
                                                         .stride = {1, stride},
                                                         .padding = {0, padding},
                                                         .dilation = {1, dilation},
                                                         .output_padding = {0, more},
                                                         .groups = kernel == 2 ? 2 : 1,
                                                         .has_bias = kernel != 3}));
        }
      }
    }
  }
}

TEST_CASE("conv_transpose: images and volumes of every dtype, groups and axes that differ") {
  struct Case {
    const char* name;
    Shape x;
    ConvTransposeLayer layer;
  };
  ConvTransposeLayer volumes{.kernel = {2, 3}, .stride = {2, 1}, .padding = {0, 1}};
  volumes.depth = {.kernel = 3, .stride = 2, .padding = 1};
  volumes.depth_output_padding = 1;
  const Case cases[] = {
      {"twice the size", {kBatch, 6, 4, 3}, {.kernel = {2, 2}, .stride = {2, 2}}},
      {"overlapping",
       {kBatch, 6, 3, 4},
       {.kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}, .groups = 2}},
      {"with output padding",
       {kBatch, 6, 4, 3},
       {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}}},
      {"as large", {kBatch, 6, 5, 3}, {.kernel = {3, 3}, .padding = {1, 1}, .groups = 2}},
      {"axes that differ",
       {kBatch, 6, 3, 4},
       {.kernel = {3, 5}, .stride = {3, 1}, .padding = {0, 3}, .dilation = {1, 2}}},
      {"volumes", {kBatch, 6, 2, 3, 3}, volumes}};
  for (const Case& c : cases) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      CAPTURE(c.name, dtype_name(dtype));
      check_on_all_devices(graph_of(c.x, c.layer, dtype), allowed_error(dtype));
    }
  }
}

TEST_CASE("conv_transpose: a batchnorm is folded, an activation fused, a convolution named") {
  GraphBuilder g("generator");
  Value x = g.input("x", {kBatch, 6, 3, 3});
  x = layers::conv_transpose(g, "up", x, 4,
                             {.kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}, .groups = 2});
  x = layers::relu(g, "act", layers::batchnorm(g, "bn", x));
  x = layers::conv_transpose(g, "flat", x, 2, {.kernel = {3, 3}, .padding = {1, 1}});
  g.output("y", layers::add(g, "skip", x, g.input("other", {kBatch, 2, 6, 6})));
  const Graph graph = std::move(g).build();
  check_on_all_devices(graph);
  const Context cpu = Context::cpu();
  const ModelPlan plan = make_model_plan(cpu, graph, {.num_members = 3, .batch = 2},
                                         {.strategies = {{"up", "sequential"}}});
  CHECK(nodes_of(plan.graph()) ==
        std::vector<std::string>{"bn.folded_weight fold_batchnorm", "bn.folded_bias fold_batchnorm",
                                 "up.phases_weight conv_phases", "up.phases_bias conv_phases",
                                 "up conv2d", "up.interleaved depth_to_space",
                                 "flat.phases_weight conv_phases", "flat.phases_bias conv_phases",
                                 "flat conv2d", "skip binary"});
  CHECK(plan.steps()[0].strategy == "sequential");
  const auto notes = plan.notes();
  CHECK(std::count(notes.begin(), notes.end(),
                   "up: transposed, run as a convolution to 4 times the channels, interleaved") ==
        1);
  CHECK(std::count(notes.begin(), notes.end(), "flat: transposed, run as a convolution") == 1);
  CHECK(std::count(notes.begin(), notes.end(), "bn: folded into up") == 1);
}

TEST_CASE("conv_transpose: members are replaced and read back as they were given") {
  const Graph graph = graph_of({kBatch, 6, 3, 3}, {.kernel = {3, 3}, .stride = {2, 2}});
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, {.num_members = 3, .batch = 2});
    CHECK(run.worst_error(run.replay()) < 2e-5);
    run.replace(1, 9);
    CHECK(run.worst_error(run.replay()) < 2e-5);
    const MemberParameters given = run.parameters_of(9);
    const ConstTensorView& weight = given.at("up.weight");
    const Context cpu = Context::cpu();
    Tensor back(cpu, weight.dtype, weight.shape);
    run.model().get(1, "up.weight", back, run.stream());
    run.context().synchronize(run.stream());
    const Doubles got = catalog::to_doubles(back), expected = catalog::to_doubles(weight);
    CHECK(got.values == expected.values);
  }
}

TEST_CASE("conv_transpose: what all members share is computed once") {
  GraphBuilder g("shared");
  const Value x = g.shared_input("x", {kBatch, 6, 3, 3});
  g.output("y", layers::conv_transpose(g, "up", x, 4, {.kernel = {2, 2}, .stride = {2, 2}}));
  g.output("z", layers::conv_transpose(g, "own", x, 4, {.kernel = {3, 3}, .stride = {2, 2}}));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, {.num_members = 3, .batch = 2},
                 {.shared_parameters = {"up.weight", "up.bias"}});
    CHECK(run.worst_error(run.run()) < 2e-5);
    CHECK(run.plan().steps()[0].num_members == 1);
  }
}

TEST_CASE("depth_to_space: blocks of signals, images and volumes of every dtype") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    GraphBuilder g("blocks", dtype);
    const Value signal = g.input("signal", {kBatch, 12, 5}),
                image = g.input("image", {kBatch, 12, 3, 4}),
                volume = g.input("volume", {kBatch, 16, 2, 3, 2});
    g.output("a", layers::depth_to_space(g, "a", signal, 3));
    g.output("b", layers::depth_to_space(g, "b", image, 2));
    g.output("c", layers::depth_to_space(g, "c", volume, 2));
    g.output("d", g.append("d", DepthToSpaceOp{.block = {3, 2}, .first = {4, 1}, .size = {5, 0}},
                           {{"x", image}}));
    g.output("e", g.append("e", DepthToSpaceOp{.block = {1, 1}, .first = {1, 0}}, {{"x", image}}));
    check_on_all_devices(std::move(g).build(), 1e-30);
  }
}

TEST_CASE("depth_to_space and upsample: channels last, and groups of channels") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    for (const int64_t groups : {0, 1, 2, 4}) {
      for (const ChannelLayout layout :
           {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
        CAPTURE(dtype_name(dtype), groups, layout);
        GraphBuilder g("blocks", dtype);
        const auto input = [&](const char* name, int64_t channels, std::vector<int64_t> positions) {
          const bool is_last = layout == ChannelLayout::channels_last;
          positions.insert(is_last ? positions.end() : positions.begin(), channels);
          positions.insert(positions.begin(), kBatch);
          return g.input(name, Shape(positions));
        };
        const Value signal = input("signal", 12, {5}), image = input("image", 24, {3, 4}),
                    volume = input("volume", 32, {2, 3, 2});
        const auto blocks = [&](const char* name, DepthToSpaceOp op, Value x) {
          op.groups = groups;
          op.layout = layout;
          g.output(name, g.append(name, op, {{"x", x}}));
        };
        blocks("a", {.block = {1, 3}}, signal);
        blocks("b", {.block = {2, 3}}, image);
        blocks("c", {.block = {2, 2}, .depth_block = 2}, volume);
        blocks("d", {.block = {3, 2}, .first = {4, 1}, .size = {4, 0}}, image);
        const auto upsampled = [&](const char* name, UpsampleOp op, Value x) {
          op.layout = layout;
          g.output(name, g.append(name, op, {{"x", x}}));
        };
        upsampled("e", {.factor = {1, 3}}, signal);
        upsampled("f", {.factor = {2, 3}}, image);
        upsampled("g", {.depth_factor = 2}, volume);
        const Graph graph = std::move(g).build();
        check_on_all_devices(graph, 1e-30);
        // Images are one copy, whatever lies between which phases.
        const ModelPlan plan =
            make_model_plan(Context::cpu(), graph, {.num_members = 3, .batch = 2});
        for (const char* name : {"a", "b", "e", "f"}) {
          const auto steps = plan.steps();
          CHECK(std::count_if(steps.begin(), steps.end(),
                              [&](const ModelStep& step) { return step.node == name; }) == 1);
        }
      }
    }
  }
}

TEST_CASE("upsample: the nearest elements of signals, images and volumes") {
  GraphBuilder hand("by hand");
  hand.output("y", layers::upsample(hand, "up", hand.input("x", {kBatch, 1, 1, 2}), 2));
  const auto y =
      catalog::evaluate_graph(std::move(hand).build(), {{"x", counted({1, 1, 1, 2})}}, {});
  CHECK(y.at("y").values == std::vector<double>{1, 1, 2, 2, 1, 1, 2, 2});
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    GraphBuilder g("upsampled", dtype);
    const Value signal = g.input("signal", {kBatch, 3, 5}),
                image = g.input("image", {kBatch, 3, 3, 4}),
                volume = g.shared_input("volume", {kBatch, 2, 2, 3, 2});
    g.output("a", layers::upsample(g, "a", signal, 3));
    g.output("b", layers::relu(g, "act", layers::upsample(g, "b", image, 2)));
    g.output("c", layers::upsample(g, "c", volume, 2));
    g.output("d", g.append("d", UpsampleOp{.factor = {1, 3}}, {{"x", image}}));
    const Graph graph = std::move(g).build();
    check_on_all_devices(graph, 1e-30);
    const ModelPlan plan = make_model_plan(Context::cpu(), graph, {.num_members = 3, .batch = 2});
    const auto steps = plan.steps();
    CHECK(std::count_if(steps.begin(), steps.end(), [](const ModelStep& step) {
            return step.node == "b" && step.primitive == "copy";
          }) == 1);
  }
}

TEST_CASE("conv_transpose: a convolution's positions include all of the result's, and few more") {
  for (const int64_t kernel : {1, 2, 3, 4, 7}) {
    for (const int64_t stride : {1, 2, 3, 5}) {
      for (const int64_t padding : {0, 1, 2, 6}) {
        for (const int64_t dilation : {1, 2, 3}) {
          for (const int64_t more : {-2, 0, 1, 9}) {
            const TransposedAxis a{6, kernel, stride, padding, dilation, more};
            if (a.out() < 1) continue;
            CAPTURE(kernel, stride, padding, dilation, more);
            CHECK(a.conv_padding() >= 0);
            CHECK(a.first() >= 0);
            CHECK(a.first() + a.out() <= a.conv_outputs() * stride);
            // Without a padding to be spared on one side, none is left on both.
            const bool is_least = a.conv_padding() == 0 || a.first() < stride ||
                                  a.conv_outputs() * stride - a.first() - a.out() < stride;
            CHECK(is_least);
          }
        }
      }
    }
  }
}

TEST_CASE("conv_transpose: what cannot be is refused with what was got and what is expected") {
  const auto refused = [](const std::string& message,
                          const std::function<void(GraphBuilder&)>& add) {
    GraphBuilder g("refused");
    CAPTURE(message);
    CHECK_THROWS_MATCHES(add(g), Error, MessageMatches(ContainsSubstring(message)));
  };
  const auto layer = [](const ConvTransposeLayer& of, const Shape& x = {kBatch, 6, 4, 4}) {
    return [=](GraphBuilder& g) { (void)layers::conv_transpose(g, "up", g.input("x", x), 4, of); };
  };
  refused("up: groups is 3, expected a divisor of out_channels = 4", layer({.groups = 3}));
  refused("up: groups is 4, expected a divisor of in_channels = 6", layer({.groups = 4}));
  refused("stride is 0, dilation 1, padding 0, kernel 3, expected strides",
          layer({.stride = {0, 1}}));
  refused("padding -1, kernel 3", layer({.padding = {0, -1}}));
  refused("x [B, 6, 4, 4] and the kernel [6, 4, 3, 3] leave -4 positions within the padding",
          layer({.padding = {5, 0}}));
  refused("channels times strides are above 2^30", layer({.stride = {1 << 15, 1 << 14}}));
  refused("is above 2^30", layer({.output_padding = {0, int64_t{1} << 40}}));
  refused("expected 3 to 5 axes", layer({}, {kBatch, 6}));
  const auto shuffle = [](const DepthToSpaceOp& op) {
    return [=](GraphBuilder& g) {
      (void)g.append("cut", op, {{"x", g.input("x", {kBatch, 12, 2, 2})}});
    };
  };
  refused("x has 12 channels, expected a multiple of the blocks' 5x1", shuffle({.block = {5, 1}}));
  refused("multiple of the blocks' 1073741824x1073741824", shuffle({.block = {1 << 30, 1 << 30}}));
  refused("block is 0, expected 1 to 2^30", shuffle({.block = {0, 2}}));
  refused("first is 4 and size 0 of 4 positions, expected some of them",
          shuffle({.first = {4, 0}}));
  refused("first is 1 and size 4 of 4 positions", shuffle({.first = {0, 1}, .size = {0, 4}}));
  refused("groups is 5, expected 0 or a divisor of y's channels, 3", shuffle({.groups = 5}));
  refused("groups is -1, expected 0 or a divisor", shuffle({.groups = -1}));
  refused("factor is 0, expected 1 to 2^30", [](GraphBuilder& g) {
    (void)layers::upsample(g, "up", g.input("x", {kBatch, 2, 3}), 0);
  });
  const Shape endless{kBatch, 6, int64_t{1} << 40};
  const char* at_most = "expected at most 2^30 positions on an axis";
  refused(at_most, layer({}, endless));
  refused(at_most, [&](GraphBuilder& g) {
    (void)layers::upsample(g, "up", g.input("x", endless), 1 << 24);
  });
  refused(at_most, [&](GraphBuilder& g) {
    (void)layers::depth_to_space(g, "shuffle", g.input("x", endless), 2);
  });
  const auto phases = [](const ConvPhasesOp& op, const char* operand, const Shape& shape) {
    return [=](GraphBuilder& g) {
      (void)g.append("phases", op, {{operand, g.parameter("p", shape)}});
    };
  };
  refused("weight is [4, 4], expected 3 to 5 axes", phases({}, "weight", {4, 4}));
  refused("bias is [4, 4], expected one axis", phases({}, "bias", {4, 4}));
  refused("groups is 3, expected a divisor of weight's first extent, 4",
          phases({.groups = 3}, "weight", {4, 4, 2}));
  refused("groups is 3, expected a divisor of bias's first extent, 4",
          phases({.groups = 3}, "bias", {4}));
  refused("stride is 0", phases({.stride = {0, 1}}, "bias", {4}));
  refused("channels times strides", phases({.stride = {1 << 20, 1 << 20}}, "weight", {4, 4, 2, 2}));
}
