// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operations that no named model has, in models of several members: each against plain loops.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "verify/model/model_case.hpp"
#include "verify/support/tensors.hpp"
#include "wide/flash_attention.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::check_on_all_devices;
using test::ModelRun;

namespace {

Value pointwise(GraphBuilder& g, const std::string& name, Value x, const PointwiseOp& op) {
  return g.append(name, op, {{"x", x}});
}

}  // namespace

TEST_CASE("model: norms, pools and factors of channels") {
  check_on_all_devices("channels", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 6, 7, 5});
    Value h = layers::groupnorm(g, "group", x, 3);
    h = layers::pointwise(g, "prelu", h, PointwiseFunction::prelu);
    h = layers::instancenorm(g, "instance", h);
    h = g.append("scale", BinaryOp{.function = BinaryFunction::multiply},
                 {{"x", h}, {"other", g.parameter("factors", {6, 1, 1})}});
    h = g.append("pool",
                 PoolingOp{.mode = PoolingMode::average,
                           .rows = {.kernel = 3, .stride = 2, .padding = 1},
                           .columns = {.kernel = 2, .stride = 1, .padding = 0},
                           .counts_padding = false},
                 {{"x", h}});
    g.output("y", h);
    const Value more = layers::conv(g, "conv", h, 4, {.kernel = {1, 1}, .groups = 2});
    const Value both = layers::concat(g, "both", {h, more}, 1);
    g.output("cut", layers::relu(g, "act", layers::slice(g, "slice", both, 1, 3, 5)));
  });
}

TEST_CASE("model: signals, dilated and grouped, and vectors of channels") {
  check_on_all_devices("signals", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 4, 12});
    Value h = layers::conv(
        g, "conv", x, 8,
        {.kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 2}, .dilation = {1, 2}, .groups = 2});
    h = layers::batchnorm(g, "bn", h);
    h = layers::max_pool(g, "pool", h, {.kernel = 2});
    h = layers::flatten(g, "flat", h);
    g.output("y", layers::batchnorm(g, "bn1", layers::linear(g, "fc", h, 5)));
  });
}

TEST_CASE("model: volumes, their norms and epilogues, in both layouts, and pools of their planes") {
  check_on_all_devices("volumes", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 4, 6, 5});
    Value h =
        layers::conv(g, "conv", x, 6, {.padding = {1, 1}, .depth = {.kernel = 3, .padding = 1}});
    h = pointwise(g, "act", layers::batchnorm(g, "bn", h), {.function = PointwiseFunction::relu});
    const Value more = layers::conv(g, "more", h, 6,
                                    {.kernel = {3, 1},
                                     .padding = {1, 0},
                                     .depth = {.kernel = 2, .padding = 2, .dilation = 4},
                                     .groups = 3});
    h = layers::add(g, "add", more, h);
    const Value planes = layers::reshape(g, "planes", h, {kBatch, 24, 6, 5});
    const Value pooled = layers::max_pool(g, "pool", planes, {.kernel = 2});
    g.output("y", layers::linear(g, "fc", layers::flatten(g, "flat", pooled), 5));
  });
  check_on_all_devices("volumes, channels last", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 4, 6, 5});
    const Value h = layers::conv(g, "conv", x, 8,
                                 {.stride = {2, 1},
                                  .depth = {.kernel = 2, .stride = 2},
                                  .layout = ChannelLayout::channels_last,
                                  .x_layout = ChannelLayout::channels_first});
    g.output("y", layers::conv(g, "next", h, 4,
                               {.kernel = {1, 2},
                                .depth = {.kernel = 2, .padding = 1},
                                .layout = ChannelLayout::channels_last}));
  });
}

TEST_CASE("model: rows with residuals, sums and chains") {
  check_on_all_devices("rows", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 4, 12}), r = g.input("r", {kBatch, 4, 12});
    const auto [a, sum] =
        g.append_two("rms", RmsnormOp{.writes_sum = true},
                     {{"x", x}, {"gamma", g.parameter("g", {12})}, {"residual", r}});
    const auto [b, chained] = g.append_two(
        "chain",
        ChainOp{.activation = Activation::gelu, .norm = ChainNorm::layernorm, .writes_sum = true},
        {{"x", a},
         {"bias", g.parameter("bias", {12})},
         {"residual", sum},
         {"gamma", g.parameter("gamma", {12})},
         {"beta", g.parameter("beta", {12})}});
    Value h = g.append("divide", BinaryOp{.function = BinaryFunction::divide},
                       {{"x", b}, {"other", g.parameter("gain", {1})}});
    h = g.append("subtract", BinaryOp{.function = BinaryFunction::subtract},
                 {{"x", h}, {"other", chained}});
    g.output("y", layers::log_softmax(g, "log", h));
    g.output("probabilities", layers::softmax(g, "soft", h));
    const Value both = layers::concat(g, "both", {x, h}, 2);
    g.output("features", layers::slice(g, "slice", both, 2, 7, 9));
  });
}

TEST_CASE("model: attention over other positions, with shared heads and lengths") {
  check_on_all_devices("attention", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 8}), other = g.input("other", {kBatch, 5, 6});
    const Value lengths = g.input("lengths", {kBatch}, Dtype::int32);
    Value h = layers::attention(g, "cross", x, 2, {.key = other});
    h = layers::attention(g, "same", h, 2, {.has_bias = false, .key = x, .value = h});
    const Value k = layers::linear(g, "keys", h, 4), v = layers::linear(g, "values", h, 4);
    h = layers::flash_attention(g, "flash", h, k, v, 4,
                                {.kv_heads = 2, .is_causal = true, .scale = 0.7f});
    g.output("y", layers::attention(g, "self", h, 2, {.key_lengths = lengths}));
  });
}

TEST_CASE("model: layers of attention name their parameters as PyTorch does") {
  GraphBuilder g("names");
  const Value x = g.input("x", {kBatch, 3, 8}), other = g.input("other", {kBatch, 5, 6});
  g.output("a", layers::attention(g, "self", x, 2));
  g.output("b", layers::attention(g, "cross", x, 2, {.has_bias = false, .key = other}));
  g.output("c", layers::attention(g, "same", x, 2, {.has_bias = false, .key = x}));
  CHECK_THROWS_WITH(layers::attention(g, "half", x, 2, {.value = other}),
                    ContainsSubstring("half: value is present, expected a key with it"));
  const Graph graph = std::move(g).build();
  std::vector<std::string> names;
  for (const Value parameter : graph.parameters())
    names.push_back(graph.name(parameter) + " " + to_string(graph.type(parameter)));
  CHECK(names == std::vector<std::string>{
                     "self.in_proj_weight fp32 [24, 8]", "self.out_proj.weight fp32 [8, 8]",
                     "self.in_proj_bias fp32 [24]", "self.out_proj.bias fp32 [8]",
                     "cross.q_proj_weight fp32 [8, 8]", "cross.k_proj_weight fp32 [8, 6]",
                     "cross.v_proj_weight fp32 [8, 6]", "cross.out_proj.weight fp32 [8, 8]",
                     "same.in_proj_weight fp32 [24, 8]", "same.out_proj.weight fp32 [8, 8]"});
}

TEST_CASE("model: a cross attention to x is the attention of x") {
  GraphBuilder g("both");
  const Value x = g.input("x", {kBatch, 3, 8});
  g.output("self", layers::attention(g, "a", x, 2));
  g.output("cross", layers::attention(g, "b", x, 2, {.key = x}));
  const Graph graph = std::move(g).build();
  OwnedParameters owned = random_parameters(graph, 5, 0);
  for (const auto& [name, tensor] : owned) {
    if (name.starts_with("a."))
      std::memcpy(owned.at("b." + name.substr(2)).data(), tensor.data(),
                  static_cast<size_t>(tensor.bytes()));
  }
  const std::vector<MemberParameters> members{views_of(owned)};
  const Context cpu = Context::cpu();
  const Model model(cpu, make_model_plan(cpu, graph, {.num_members = 1, .batch = 2}), members);
  std::vector<float> in(2 * 3 * 8), self(in.size()), cross(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = std::sin(static_cast<float>(i));
  const Shape shape{2, 3, 8};
  const ConstTensorView in_view(in.data(), Dtype::fp32, shape, cpu.device());
  const std::array<TensorView, 2> out{TensorView(self.data(), Dtype::fp32, shape, cpu.device()),
                                      TensorView(cross.data(), Dtype::fp32, shape, cpu.device())};
  Tensor workspace(cpu, Dtype::uint8, {model.plan().workspace_bytes()});
  model.run({{&in_view, 1}, out}, {Stream::cpu(), {workspace.data(), workspace.bytes()}});
  for (size_t i = 0; i < in.size(); ++i) {
    CHECK(std::abs(self[i]) > 1e-4f);
    CHECK(std::abs(self[i] - cross[i]) < 1e-6f);
  }
}

TEST_CASE("model: what reads channels reads some of the last axis by a copy") {
  check_on_all_devices("columns", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 4, 5, 3});
    const Value column =
        layers::reshape(g, "column", layers::slice(g, "slice", x, 3, 1, 1), {kBatch, 4, 5});
    g.output("a", layers::conv(g, "conv", column, 6, {.kernel = {1, 3}, .padding = {0, 1}}));
    g.output("b", layers::batchnorm(g, "batchnorm", column));
    g.output("c", layers::groupnorm(g, "groupnorm", column, 2));
    g.output("d", layers::max_pool(g, "pool", column, {.kernel = 2}));
    g.output("e", layers::global_average_pool(g, "mean", column));
  });
}

TEST_CASE("model: names that passes would give are a graph's own") {
  check_on_all_devices("names", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 4, 5, 3});
    Value h = layers::conv(g, "conv", x, 4, {.padding = {1, 1}, .has_bias = false});
    h = layers::batchnorm(g, "bn", h);
    h = layers::relu(g, "bn.folded_weight", h);
    h = layers::relu(g, "bn.folded_bias", h);
    const Value column = layers::slice(g, "slice", h, 3, 1, 1);
    h = layers::conv(g, "last", layers::reshape(g, "column", column, {kBatch, 4, 5}), 3,
                     {.kernel = {1, 1}});
    g.output("y", layers::relu(g, "last.copy", h));
  });
}

TEST_CASE("model: what is added to attention's scores, of each member, of all, and learned") {
  for (const bool is_shared : {false, true}) {
    check_on_all_devices("bias", [&](GraphBuilder& g) {
      const Value x = g.input("x", {kBatch, 3, 8}), other = g.input("other", {kBatch, 5, 4});
      const auto input = [&](const char* name, const Shape& shape) {
        return is_shared ? g.shared_input(name, shape) : g.input(name, shape);
      };
      const auto attend = [&](const char* name, Value bias) {
        g.output(name, layers::flash_attention(g, std::string(name) + "_node", x, other, other, 4,
                                               {.kv_heads = 2, .scale = 0.7f, .bias = bias}));
      };
      attend("of_keys", layers::reshape(g, "keys", input("mask", {kBatch, 5}), {kBatch, 1, 1, 5}));
      attend("of_rows", input("rows", {kBatch, 1, 3, 5}));
      attend("of_heads", layers::relu(g, "act", input("heads", {kBatch, 4, 1, 5})));
      attend("of_all", input("all", {kBatch, 4, 3, 5}));
      attend("learned", g.parameter("learned_bias", {4, 3, 5}));
      attend("learned_row", g.parameter("learned_row_bias", {1, 1, 5}));
    });
  }
  GraphBuilder g("wrong");
  const Value x = g.input("x", {kBatch, 3, 8});
  CHECK_THROWS_WITH(g.append("attend", FlashAttentionOp{.heads = 4},
                             {{"q", x}, {"k", x}, {"v", x}, {"bias", g.parameter("b", {2, 3, 3})}}),
                    ContainsSubstring("attend: bias is fp32 [2, 3, 3], expected q's dtype and [1 "
                                      "or 4, 1 or 3, 3]"));
}

TEST_CASE("model: attention to near keys, with capped scores, and slopes of each member") {
  check_on_all_devices("scores", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 5, 8}), other = g.input("other", {kBatch, 7, 4});
    const Value lengths = g.input("lengths", {kBatch}, Dtype::int32);
    const Value slopes = g.parameter("slopes", {4}, Dtype::fp32);
    const auto attend = [&](const std::string& name, layers::FlashAttentionLayer layer) {
      layer.kv_heads = 2;
      g.output(name, layers::flash_attention(g, name + "_node", x, other, other, 4, layer));
    };
    attend("near", {.window = 2});
    attend("before", {.is_causal = true, .window = 3});
    attend("capped", {.scale = 3.0f, .soft_cap = 0.5f});
    attend("sloped", {.slopes = slopes});
    attend("all", {.is_causal = true,
                   .scale = 2.0f,
                   .window = 4,
                   .soft_cap = 1.5f,
                   .key_lengths = lengths,
                   .bias = g.parameter("bias", {4, 5, 7}),
                   .slopes = slopes});
    attend("cached", {.is_causal = true,
                      .window = 3,
                      .key_lengths = lengths,
                      .slopes = slopes,
                      .aligns_to_lengths = true});
  });
  GraphBuilder g("wrong");
  const Value x = g.input("x", {kBatch, 3, 8});
  CHECK_THROWS_WITH(layers::flash_attention(g, "attend", x, x, x, 2, {.aligns_to_lengths = true}),
                    ContainsSubstring("attend: aligns_to_lengths is true without key_lengths"));
}

TEST_CASE("model: attention's scores are those of the primitive, bit for bit") {
  const FlashAttentionOp op{
      .heads = 4, .is_causal = true, .scale = 2.0f, .window = 4, .soft_cap = 1.5f};
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  GraphBuilder g("scores");
  const Value q = g.input("q", {kBatch, 5, 8}, dtype), k = g.input("k", {kBatch, 7, 8}, dtype);
  g.output(
      "y",
      g.append(
          "node", op,
          {{"q", q}, {"k", k}, {"v", k}, {"slopes", g.parameter("slopes", {4}, Dtype::fp32)}}));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(dtype_name(dtype), to_string(context.device()));
    ModelOptions options;
    if (dtype == Dtype::bf16 && context.device().type == DeviceType::cuda) {
      options.strategies = {{"flash_attention", "tensor_core"}};
    }
    ModelRun run(context, graph, {.num_members = 3, .batch = 2}, options);
    const ModelRun::Outputs outputs = run.run();
    std::vector<double> slopes;
    for (int64_t m = 0; m < 3; ++m) {
      const auto* own = static_cast<const float*>(run.parameters_of(m).at("slopes").data);
      slopes.insert(slopes.end(), own, own + 4);
    }
    const Tensor of_members = test::upload(context, Dtype::fp32, {3, 4}, slopes);
    const ConstTensorView q_view = run.arguments().inputs[0], k_view = run.arguments().inputs[1];
    Tensor y(context, dtype, q_view.shape);
    const FlashAttentionArguments arguments{
        .q = q_view, .k = k_view, .v = k_view, .slopes = of_members.view(), .y = y.view()};
    FlashAttentionProblem like;
    like.num_members = 3;
    like.heads = op.heads;
    like.is_causal = op.is_causal;
    like.scale = op.scale;
    like.window = op.window;
    like.soft_cap = op.soft_cap;
    const FlashAttentionPlan plan =
        make_flash_attention_plan(context, describe_flash_attention(arguments, like),
                                  {.strategy = run.plan().steps()[0].strategy});
    Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
    Execution execution = run.execution();
    execution.workspace = {workspace.data(), workspace.bytes()};
    plan.run(arguments, execution);
    context.synchronize(run.stream());
    const std::vector<double> expected = test::download(context, y);
    for (size_t row = 0; row < 2 * 5; ++row) {  // [B, T, N, heads*D]
      for (size_t m = 0; m < 3; ++m) {
        const auto got = outputs.at("y")[m].values.begin() + static_cast<std::ptrdiff_t>(row * 8);
        const auto want = expected.begin() + static_cast<std::ptrdiff_t>((row * 3 + m) * 8);
        CHECK(std::equal(want, want + 8, got));
      }
    }
  }
}

TEST_CASE("model: axes that change their places, and values that two readers want elsewhere") {
  check_on_all_devices("moves", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 3, 4, 5});
    const Value h = layers::conv(g, "conv", x, 6, {.padding = {1, 1}});
    // Channels of the convolution as features of rows, and its columns as well.
    const Value turned = layers::transpose(g, "turn", h, {0, 2, 3, 1});
    g.output("rows", layers::linear(g, "features", turned, 7));
    g.output("columns", layers::linear(g, "columns_fc", h, 4));
    g.output("y", layers::pointwise(g, "act", h, PointwiseFunction::tanh));
  });
  check_on_all_devices(
      "parts", [](GraphBuilder& g) {  // a part that is reshaped, of all members, and of one
        const Value x = g.input("x", {kBatch, 5, 6}), s = g.shared_input("s", {kBatch, 5, 6});
        const Value part = layers::slice(g, "slice", layers::relu(g, "act", x), 1, 1, 3);
        g.output("y", layers::linear(g, "fc", layers::flatten(g, "flat", part), 4));
        const Value turned = layers::transpose(g, "turn", layers::relu(g, "one", s), {0, 2, 1});
        g.output("z", layers::linear(g, "fc2", turned, 4));
      });
}

TEST_CASE("model: copies between layouts are noted, or refused where nothing may be moved") {
  GraphBuilder g("moved");
  const Value h = layers::conv(g, "conv", g.input("x", {kBatch, 3, 4, 5}), 6, {.padding = {1, 1}});
  g.output("y", layers::linear(g, "fc", h, 4));
  const Graph graph = std::move(g).build();
  const ModelPlan plan = make_model_plan(Context::cpu(), graph, {.num_members = 3, .batch = 2});
  CHECK_THAT(plan.explain(), ContainsSubstring("fc: x is copied, to lie as the node reads it"));
  CHECK(plan.steps()[1].primitive == "copy");
  ModelOptions strict;
  strict.moves_data = false;
  CHECK_THROWS_WITH(make_model_plan(Context::cpu(), graph, {.num_members = 3, .batch = 2}, strict),
                    ContainsSubstring("fc (linear): conv") && ContainsSubstring("would move data"));
}

TEST_CASE("model: every function of an element") {
  check_on_all_devices("pointwise", [](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 9});
    for (const PointwiseFunction function : kAllPointwiseFunctions) {
      if (function == PointwiseFunction::prelu) continue;  // among channels
      const std::string name(pointwise_function_name(function));
      g.output(name, pointwise(g, name + "_node", x,
                               {.function = function,
                                .slope = 0.2f,
                                .alpha = 0.7f,
                                .beta = 1.5f,
                                .low = -0.3f,
                                .high = 0.4f}));
    }
  });
}

TEST_CASE(
    "model: an image for all members is one convolution over it, and what nobody tells apart "
    "runs once") {
  GraphBuilder g("shared");
  const Value x = g.shared_input("x", {kBatch, 3, 6, 6});
  Value h = layers::relu(g, "once", x);
  h = layers::conv(g, "conv", h, 4, {.padding = {1, 1}});
  g.output("y", h);
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    ModelRun run(context, graph, {.num_members = 3, .batch = 2});
    CHECK(run.plan().steps()[0].num_members == 1);
    CHECK(run.worst_error(run.run()) < 2e-5);
  }
}
