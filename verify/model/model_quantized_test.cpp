// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models whose linear layers multiply by quantised weights: against plain loops over what the blobs
// stand for, and what of a model does not change by it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::ModelRun;
using test::small_model;

namespace {

/// CUDA multiplies 16 bits by quantised weights.
Dtype dtype_of(const Context& context) {
  return context.device().type == DeviceType::cpu ? Dtype::fp32 : Dtype::fp16;
}

double tolerance(Dtype dtype) {
  return dtype == Dtype::fp32 ? 2e-5 : 2e-2;
}

ModelOptions by_our_kernel(const Context& context) {
  if (context.device().type == DeviceType::cpu) return {};
  return {.strategies = {{"linear", "weight_only"}}};
}

int64_t count_of(const Graph& graph, std::string_view operation) {
  int64_t count = 0;
  for (const Node& node : graph.nodes()) count += operation_name(graph, node) == operation ? 1 : 0;
  return count;
}

/// Inputs and outputs that fill no group and no strip.
Graph two_layers(Dtype dtype) {
  GraphBuilder g("two", dtype);
  const Value x = g.input("x", {kBatch, 70});
  const Value h = layers::linear(g, "fc1", x, 33, {.activation = Activation::relu});
  g.output("y", layers::linear(g, "fc2", h, 20));
  return std::move(g).build();
}

void require_equal(const OwnedParameters& got, const MemberParameters& given) {
  REQUIRE(got.size() == given.size());
  for (const auto& [name, tensor] : got) {
    CAPTURE(name);
    CHECK(std::memcmp(tensor.data(), given.at(name).data, static_cast<size_t>(tensor.bytes())) ==
          0);
  }
}

}  // namespace

TEST_CASE("quantised model: every format gives what its codes stand for, for every member") {
  for (const Context& context : test::devices_at_hand()) {
    const Dtype dtype = dtype_of(context);
    for (const WeightFormat format : kAllWeightFormats) {
      if (format == WeightFormat::packed) continue;
      for (const char* name : {"mlp", "bert"}) {
        CAPTURE(to_string(context.device()), weight_format_name(format), name);
        const Graph dense = small_model(name, dtype);
        const Graph graph = with_quantized_weights(dense, {.format = format});
        CHECK(count_of(graph, "quantize") == count_of(dense, "linear"));
        ModelRun run(context, graph, {.num_members = 3, .batch = 2}, by_our_kernel(context));
        CHECK(run.worst_error(run.run()) < tolerance(dtype));
        CHECK(run.worst_error(run.replay()) < tolerance(dtype));
      }
    }
  }
}

TEST_CASE("quantised model: weights are rounded and decoded once only where that is allowed") {
  for (const Context& context : test::devices_at_hand()) {
    if (context.device().type == DeviceType::cpu) continue;
    const Graph graph = with_quantized_weights(two_layers(Dtype::fp16), {});
    ModelOptions options{.strategies = {{"linear", "decoded"}}};
    CHECK_THROWS_MATCHES(ModelRun(context, graph, {.num_members = 3, .batch = 5}, options), Error,
                         MessageMatches(ContainsSubstring("allow_rounded_weights does not allow")));
    options.allows_rounded_weights = true;
    ModelRun run(context, graph, {.num_members = 3, .batch = 5}, options);
    CHECK(run.worst_error(run.run()) < tolerance(Dtype::fp16));
    CHECK(run.worst_error(run.replay()) < tolerance(Dtype::fp16));
  }
  CHECK(model_options("fast").allows_rounded_weights);
  CHECK_FALSE(model_options("default").allows_rounded_weights);
}

TEST_CASE("quantised model: weights lose what a format of four bits loses, and take its bytes") {
  const Context context = Context::cpu();
  const Graph dense = small_model("mlp");
  const Graph graph = with_quantized_weights(dense, {.format = WeightFormat::int4});
  ModelRun all(context, dense, {.num_members = 2, .batch = 3});
  ModelRun few(context, graph, {.num_members = 2, .batch = 3});
  const double error = all.worst_error(few.run());
  CHECK((error > 1e-3 && error < 0.5));
  CHECK(few.plan().memory().weights_bytes < all.plan().memory().weights_bytes / 4);
  // The weights as they were given stay on the host, biases do not: they are stored so.
  int64_t given_bytes = 0;
  for (const ModelParameter& parameter : few.plan().parameters()) {
    if (parameter.shape.rank() == 2) given_bytes += 2 * num_elements(parameter.shape) * 4;
  }
  CHECK(all.plan().memory().host_bytes == 0);
  CHECK(few.plan().memory().host_bytes == given_bytes);
  const int64_t all_bytes = few.plan().memory().total_bytes() + given_bytes;
  CHECK(largest_num_members_that_fits(context, graph, 3, all_bytes) == 2);
  CHECK(largest_num_members_that_fits(context, graph, 3, all_bytes - 1) == 1);
  CHECK_THAT(to_string(graph, GraphStyle::list),
             ContainsSubstring("weights=int4") && ContainsSubstring("format=int4"));
}

TEST_CASE("quantised model: members are replaced, cloned and read back as they were loaded") {
  for (const Context& context : test::devices_at_hand()) {
    const Dtype dtype = dtype_of(context);
    const Graph graph = with_quantized_weights(two_layers(dtype), {.group_size = 64});
    ModelRun run(context, graph, {.num_members = 3, .batch = 5}, by_our_kernel(context));
    const ModelReplay replay(context, run.model(), run.arguments(), run.execution());
    run.replace(1, 9);
    run.poison();
    replay.run(run.stream());
    const auto replaced = run.read();
    CHECK(run.worst_error(replaced) < tolerance(dtype));
    require_equal(run.model().get(1, run.stream()), run.parameters_of(9));
    run.model().clone(1, 0, run.stream());
    require_equal(run.model().get(0, run.stream()), run.parameters_of(9));
    run.model().clone(2, 1, run.stream());
    run.model().replace(1, run.parameters_of(9), run.stream());
    CHECK(run.run().at("y")[1].values == replaced.at("y")[1].values);
  }
}

TEST_CASE("quantised model: layers by name, formats of their own, one blob for a tied weight") {
  GraphBuilder g("tied");
  const Value x = g.input("x", {kBatch, 16}), weight = g.parameter("w", {16, 16});
  Value h = g.append("a", LinearOp{.activation = Activation::relu}, {{"x", x}, {"weight", weight}});
  h = g.append("b", LinearOp{}, {{"x", h}, {"weight", weight}});
  h = layers::linear(g, "c", h, 8);
  g.output("y", layers::linear(g, "head", h, 4));
  Graph graph =
      with_quantized_weights(std::move(g).build(), {.format = WeightFormat::int8, .layers = {"c"}});
  CHECK(count_of(graph, "quantize") == 1);
  graph = with_quantized_weights(graph, {.format = WeightFormat::fp8_e4m3, .layers = {"a", "b"}});
  CHECK(count_of(graph, "quantize") == 2);
  ModelRun run(Context::cpu(), graph, {.num_members = 2, .batch = 3});
  CHECK(run.worst_error(run.run()) < 2e-5);
  CHECK(count_of(with_quantized_weights(graph, {}), "quantize") == 3);  // the head, too
}

TEST_CASE("quantised model: blobs as parameters are what quantising gives") {
  const Context context = Context::cpu();
  const QuantizedWeight how{WeightFormat::int4, 128, 20, 70};
  GraphBuilder g("blobs");
  const Value x = g.input("x", {kBatch, 70});
  g.output(
      "y",
      g.append("fc", LinearOp{.weight_format = how.format, .out_features = how.out_features},
               {{"x", x}, {"weight", g.parameter("blob", {quantized_bytes(how)}, Dtype::uint8)}}));
  const Graph with_blobs = std::move(g).build();
  GraphBuilder other("weights");
  const Value z = other.input("x", {kBatch, 70});
  other.output("y", layers::linear(other, "fc", z, 20, {.has_bias = false}));
  const Graph with_weights = with_quantized_weights(std::move(other).build(), {});

  const OwnedParameters weights = random_parameters(with_weights, 3, 0);
  const ConstTensorView weight = weights.at("fc.weight");
  Tensor blob(context, Dtype::uint8, {1, quantized_bytes(how)});
  quantize_weights(context, how, std::span(&weight, 1), blob, Stream::cpu());
  const ConstTensorView flat(blob.data(), Dtype::uint8, {quantized_bytes(how)}, Device{});
  const MemberParameters own{{"blob", flat}}, dense{{"fc.weight", weight}};
  const auto output_of = [&](const Graph& graph, const MemberParameters& parameters) {
    const ModelPlan plan = make_model_plan(context, graph, {.num_members = 1, .batch = 2});
    const Model model(context, plan, std::span(&parameters, 1));
    Tensor in(context, Dtype::fp32, {2, 70}), out(context, Dtype::fp32, {2, 20});
    for (int i = 0; i < 140; ++i) static_cast<float*>(in.data())[i] = static_cast<float>(i % 7 - 3);
    Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
    const ConstTensorView from = in;
    const TensorView to = out;
    model.run({std::span(&from, 1), std::span(&to, 1)},
              {Stream::cpu(), {workspace.data(), workspace.bytes()}});
    const auto* values = static_cast<const float*>(out.data());
    return std::vector<float>(values, values + 40);
  };
  CHECK(output_of(with_blobs, own) == output_of(with_weights, dense));
}

TEST_CASE("quantised model: shared inputs and weights, rows of members' own, a batchnorm behind") {
  for (const Context& context : test::devices_at_hand()) {
    const Dtype dtype = dtype_of(context);
    CAPTURE(to_string(context.device()));
    GraphBuilder g("net", dtype);
    const Value x = g.shared_input("x", {kBatch, 24});
    Value h = layers::linear(g, "trunk", x, 40);
    h = layers::linear(g, "fc", layers::relu(g, "act", h), 12);
    g.output("y", layers::batchnorm(g, "bn", h));
    const Graph graph = with_quantized_weights(std::move(g).build(), {});
    ModelRun own(context, graph, {.num_members = 3, .batch = 4}, by_our_kernel(context));
    CHECK(own.worst_error(own.run()) < tolerance(dtype));
    CHECK(own.plan().steps().back().primitive != "linear");
    ModelRun ragged(context, graph, {.num_members = 3, .batches = {2, 0, 5}},
                    by_our_kernel(context));
    CHECK(ragged.worst_error(ragged.run()) < tolerance(dtype));
    ModelOptions options = by_our_kernel(context);
    options.shared_parameters = {"trunk.weight", "trunk.bias"};
    const ModelPlan shared = make_model_plan(context, graph, {.num_members = 3}, options);
    CHECK(shared.steps().front().num_members == 1);
    CHECK(shared.memory().weights_bytes < own.plan().memory().weights_bytes);
  }
}

TEST_CASE("quantised model: what cannot be is refused, and says why") {
  const Graph graph = two_layers(Dtype::fp32);
  const auto refused = [&](const WeightQuantization& how, const char* words) {
    CHECK_THROWS_MATCHES(with_quantized_weights(graph, how), Error,
                         MessageMatches(ContainsSubstring(words)));
  };
  refused({.layers = {"fc3"}}, "two has no linear layer \"fc3\" whose weights could be quantised");
  refused({.format = WeightFormat::packed}, "format is packed, expected a quantised one");
  refused({.group_size = 32}, "group_size is 32, expected 64 or 128");
  const Graph all = with_quantized_weights(graph, {});
  CHECK_THROWS_MATCHES(with_quantized_weights(all, {}), Error,
                       MessageMatches(ContainsSubstring("two has no linear layer whose weights")));
  for (const Context& context : test::devices_at_hand()) {
    if (context.device().type == DeviceType::cpu) continue;
    CHECK_THROWS_MATCHES(
        make_model_plan(context, all, {}, by_our_kernel(context)), Error,
        MessageMatches(ContainsSubstring("fc1") && ContainsSubstring("multiplies fp16 and bf16")));
  }
}
