// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters one by one: set, whatever passes made of them, as if the member had been replaced as a
// whole, and read back into memory of the caller's.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/error_of.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/tensors.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::ModelRun;

namespace {

constexpr ModelProblem kProblem{.num_members = 3, .batch = 2};

bool is_same(const OwnedParameters& got, const MemberParameters& given) {
  for (const auto& [name, tensor] : got) {
    if (std::memcmp(tensor.data(), given.at(name).data, static_cast<size_t>(tensor.bytes())) != 0)
      return false;
  }
  return got.size() == given.size();
}

bool is_same(const ModelRun::Outputs& a, const ModelRun::Outputs& b) {
  for (const auto& [name, members] : a) {
    for (size_t m = 0; m < members.size(); ++m) {
      if (members[m].values != b.at(name)[m].values) return false;
    }
  }
  return a.size() == b.size();
}

/// From one set of parameters to another, name by name, against whole replacements.
void check(const Context& context, const Graph& graph, const ModelOptions& options = {}) {
  ModelRun one(context, graph, kProblem, options), whole(context, graph, kProblem, options);
  const ModelReplay replay(context, one.model(), one.arguments(), one.execution());
  MemberParameters mixed = one.parameters_of(1);
  const MemberParameters other = one.parameters_of(9);
  for (const auto& [name, view] : other) {
    CAPTURE(name);
    mixed[name] = view;
    one.model().set(1, name, view, one.stream());
    whole.model().replace(1, mixed, whole.stream());
    CHECK(is_same(one.model().get(1, one.stream()), mixed));
    one.poison();
    replay.run(one.stream());
    CHECK(is_same(one.read(), whole.run()));
  }
  CHECK(is_same(one.model().get(0, one.stream()), one.parameters_of(0)));
}

std::string error_of(const std::function<void()>& call) {
  return test::error_of(call, ErrorCode::invalid_argument);
}

}  // namespace

TEST_CASE("model: what is computed of parameters alone is no step") {
  GraphBuilder g("net");
  CHECK_THAT(error_of([&] { (void)layers::linear(g, "fc", Value{}, 4); }),
             ContainsSubstring("graph: fc: x is absent, expected one"));
  const Value sum =
      layers::binary(g, "sum", g.parameter("a", {8}), g.parameter("b", {8}), BinaryFunction::add);
  Value one = layers::binary(g, "one", sum, sum, BinaryFunction::divide);
  for (int i = 0; i < 48; ++i) {  // each read twice, and computed once
    one = layers::binary(g, "one" + std::to_string(i), one, one, BinaryFunction::multiply);
  }
  const Value same = layers::binary(g, "same", one, sum, BinaryFunction::multiply);
  g.output("y",
           layers::binary(g, "node", g.input("x", {kBatch, 8}), same, BinaryFunction::multiply));
  const Graph graph = std::move(g).build();
  for (const Context& context : test::devices_at_hand()) {
    for (const ModelProblem& problem : {ModelProblem{.num_members = 2, .batch = 3},
                                        ModelProblem{.num_members = 2, .batches = {1, 2}}}) {
      ModelRun run(context, graph, problem);
      CHECK(run.worst_error(run.run()) < 2e-5);
      for (const ModelStep& step : run.plan().steps()) CHECK(step.node == "node");
    }
  }
}

TEST_CASE("model parameters: one by one they make what all at once make") {
  for (const Context& context : test::devices_at_hand()) {
    for (const char* name : {"mlp", "resblock"}) {  // as they are, and folded
      CAPTURE(name, to_string(context.device()));
      check(context, test::small_model(name));
    }
  }
}

TEST_CASE("model parameters: also where passes made others of them") {
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  SECTION("quantised") {
    check(cpu, with_quantized_weights(test::small_model("mlp"), {.format = WeightFormat::int4}));
  }
  SECTION("packed as one mlp") {
    check(cpu, test::small_model("mlp"), {.strategies = {{"mlp", "wide"}}});
  }
  SECTION("in another order of axes, and in two") {
    check(cpu, test::small_model("resblock"), {.channel_layout = ChannelLayout::channels_last});
    check(cpu, test::built([](GraphBuilder& g) {
            const Value w = g.parameter("w", {4, 3, 3, 3}), b = g.input("b", {kBatch, 5, 5, 3});
            const Value a = g.input("a", {kBatch, 3, 5, 5});
            g.output("y", g.append("first", ConvOp{}, {{"x", a}, {"weight", w}}));
            g.output("z", g.append("last", ConvOp{.layout = ChannelLayout::channels_last},
                                   {{"x", b}, {"weight", w}}));
          }));
  }
  SECTION("read by nobody") {
    check(cpu, test::built([](GraphBuilder& g) {
            (void)g.parameter("dead", {3});
            g.output("y", layers::linear(g, "fc", g.input("x", {kBatch, 8}), 4));
          }));
  }
}

TEST_CASE("model parameters: from and into memory of the device, rounded where dtypes differ") {
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, test::small_model("mlp", Dtype::bf16), kProblem);
    Model& model = run.model();
    const std::vector<double> values{1, -2.5, 1.00390625, 0.333251953125};  // of fp16
    const std::vector<double> rounded{1, -2.5, 1, 0.333984375};             // to bf16, to even
    std::vector<double> given, expected;
    for (size_t i = 0; i < 48; ++i) {
      given.push_back(values[i % 4]);
      expected.push_back(rounded[i % 4]);
    }
    Tensor bias = test::upload(context, Dtype::fp16, {48}, given);
    model.set(2, "fc1.bias", bias, run.stream());
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      Tensor got(context, dtype, {48});
      model.get(2, "fc1.bias", got, run.stream());
      CHECK(test::download(context, got) == expected);
    }
    std::vector<float> on_host(48);
    model.get(2, "fc1.bias", TensorView(on_host.data(), Dtype::fp32, {48}, Device{}), run.stream());
    CHECK(std::vector<double>(on_host.begin(), on_host.end()) == expected);
  }
}

TEST_CASE("model parameters: of any dtype and strides, each element rounded as if alone") {
  constexpr Dtype kDtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
  constexpr int64_t kOut = 70, kIn = 600;  // several chunks and tasks, no multiple of a square
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  std::vector<double> values = test::uniform(kOut * 650, -4, 4, 1);
  const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 65520, 1e-40, 6e-8, 1.00390625, 3e38};
  for (size_t i = 0; i < values.size(); i += 7) values[i] = special[i % std::size(special)];
  for (const Dtype to : kDtypes) {
    ModelRun run(cpu, test::built([&](GraphBuilder& g) {
                   const Value x = g.input("x", {kBatch, kIn}, to);
                   g.output("y", layers::linear(g, "fc", x, kOut, {.has_bias = false}));
                 }),
                 kProblem);
    for (const Dtype from : kDtypes) {
      const Tensor there = test::upload(cpu, from, {kOut * 650}, values);
      for (const Strides& strides : {Strides{kIn, 1}, Strides{1, kOut}, Strides{650, 1}}) {
        CAPTURE(dtype_name(from), dtype_name(to), to_string(strides));
        const ConstTensorView view(there.data(), from, {kOut, kIn}, strides, Device{});
        Tensor expected(cpu, to, {kOut, kIn}), back(cpu, from, {kOut, kIn});
        for (int64_t i = 0; i < kOut * kIn; ++i) {
          const int64_t place = i / kIn * strides[0] + i % kIn * strides[1];
          store_element(expected.data(), to, i, load_element(there.data(), from, place));
        }
        const auto is_expected = [&](const Tensor& got) {
          const auto bytes = static_cast<size_t>(got.bytes());
          return std::memcmp(got.data(), expected.data(), bytes) == 0;
        };
        run.model().set(2, "fc.weight", view, run.stream());
        CHECK(is_expected(run.model().get(2, run.stream()).at("fc.weight")));
        run.model().replace(1, {{"fc.weight", view}}, run.stream());
        CHECK(is_expected(run.model().get(1, run.stream()).at("fc.weight")));
        run.model().get(1, "fc.weight", back, run.stream());
        Tensor rounded(cpu, from, {kOut, kIn});
        for (int64_t i = 0; i < kOut * kIn; ++i)
          store_element(rounded.data(), from, i, load_element(expected.data(), to, i));
        CHECK(std::memcmp(back.data(), rounded.data(), static_cast<size_t>(back.bytes())) == 0);
      }
    }
  }
}

TEST_CASE("model parameters: what cannot be set or read is refused, and nothing is changed") {
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  const Stream stream = Stream::cpu();
  ModelRun run(cpu, test::small_model("mlp"), kProblem);
  Model& model = run.model();
  const auto before = run.run();
  std::vector<float> data(96);
  const auto view = [&](const Shape& shape, Dtype dtype = Dtype::fp32) {
    return TensorView(data.data(), dtype, shape, Device{});
  };
  for (const bool sets : {true, false}) {
    const auto refusal = [&](int64_t member, const char* name, const TensorView& v) {
      return error_of([&] {
        if (sets) return model.set(member, name, v, stream);
        model.get(member, name, v, stream);
      });
    };
    CHECK_THAT(refusal(3, "fc1.bias", view({48})), ContainsSubstring("member is 3"));
    CHECK_THAT(refusal(1, "fc1.bais", view({48})),
               ContainsSubstring("model: there is no parameter fc1.bais in mlp, did you mean "
                                 "fc1.bias"));
    CHECK_THAT(refusal(1, "zz", view({48})),
               ContainsSubstring("model: there is no parameter zz in mlp, it has fc1.weight, "));
    CHECK_THAT(refusal(1, "fc1.bias", view({47})),
               ContainsSubstring("member 1: " + std::string(sets ? "" : "destination of ") +
                                 "fc1.bias is fp32 [47], expected fp32 [48]"));
    CHECK_THAT(refusal(1, "fc1.bias", view({48}, Dtype::int32)),
               ContainsSubstring("fc1.bias is int32 [48]"));
    CHECK_THAT(refusal(1, "fc1.bias", TensorView(nullptr, Dtype::fp32, {48}, Device{})),
               ContainsSubstring("fc1.bias is a null pointer"));
    CHECK_THAT(refusal(1, "fc1.bias",
                       TensorView(data.data(), Dtype::fp32, {48}, Device{DeviceType::cuda, 5})),
               ContainsSubstring("fc1.bias is on cuda:5, expected cpu"));
  }
  const TensorView apart(data.data(), Dtype::fp32, {48}, Strides{2}, Device{});
  CHECK_THAT(
      error_of([&] { model.get(1, "fc1.bias", apart, stream); }),
      ContainsSubstring("destination of fc1.bias has strides [2], expected it densely packed"));
  CHECK(is_same(run.run(), before));
  model.set(1, "fc1.bias", apart, stream);
  CHECK_FALSE(is_same(run.run(), before));
}

TEST_CASE("model parameters: what all members share keeps its value") {
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  const Graph graph = test::built([](GraphBuilder& g) {
    const Value h = layers::linear(g, "trunk", g.shared_input("x", {kBatch, 6}), 8);
    g.output("y", layers::linear(g, "head", layers::relu(g, "act", h), 4));
  });
  const ModelOptions options{.shared_parameters = {"trunk.weight", "trunk.bias"}};
  ModelRun run(cpu, graph, kProblem, options, 7, {1, 1, 1});
  const auto before = run.run();
  const MemberParameters same = run.parameters_of(1), other = run.parameters_of(2);
  CHECK_THAT(
      error_of([&] { run.model().set(2, "trunk.bias", other.at("trunk.bias"), run.stream()); }),
      ContainsSubstring("member 2: trunk.bias differs from that of the other members"));
  run.model().set(2, "trunk.bias", same.at("trunk.bias"), run.stream());
  CHECK(is_same(run.run(), before));
  run.model().set(2, "head.bias", other.at("head.bias"), run.stream());
  CHECK_FALSE(is_same(run.run(), before));
}

TEST_CASE("model parameters: probabilities of dropout, a member's own or one for all") {
  const auto build = [](bool is_own) {
    return test::built([&](GraphBuilder& g) {
      const Value x = g.shared_input("x", {kBatch, 300});
      g.output("y", is_own ? layers::dropout(g, "drop", x) : layers::dropout(g, "drop", x, 0.25f));
    });
  };
  const Graph graph = build(true), fixed_graph = build(false);
  const float numbers[] = {0, 0.25f, 1};
  const auto number = [&](int i) {
    return ConstTensorView(&numbers[i], Dtype::fp32, {1}, Device{});
  };
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    ModelRun run(context, graph, kProblem, {.drops_out = true});
    ModelRun fixed(context, fixed_graph, kProblem, {.drops_out = true});
    ModelRun kept(context, graph, kProblem);
    const auto x = kept.run().at("y"), of_a_quarter = fixed.run().at("y");
    for (int m = 0; m < 3; ++m) run.model().set(m, "drop.probability", number(m), run.stream());
    auto y = run.run().at("y");
    CHECK(y[0].values == x[0].values);
    CHECK(y[1].values == of_a_quarter[1].values);
    CHECK(y[2].values == std::vector<double>(y[2].values.size(), 0.0));
    // Seeds leave them as they are.
    run.model().seed_dropout(9, 4, run.stream());
    fixed.model().seed_dropout(9, 4, fixed.stream());
    y = run.run().at("y");
    CHECK(y[0].values == x[0].values);
    CHECK(y[1].values == fixed.run().at("y")[1].values);
    CHECK(y[1].values != of_a_quarter[1].values);
    run.model().clone(1, 2, run.stream());
    CHECK(run.run().at("y")[2].values == fixed.run().at("y")[2].values);

    // One for all, as where each has the same; and by row of members of different batches.
    const ModelOptions drops{.drops_out = true};
    const ModelOptions shares{.drops_out = true, .shared_parameters = {"drop.probability"}};
    ModelRun each(context, graph, kProblem, drops, 7, {4, 4, 4});
    ModelRun all(context, graph, kProblem, shares, 7, {4, 4, 4});
    CHECK(is_same(all.run(), each.run()));
    ModelRun ragged(context, graph, {.num_members = 3, .batches = {2, 0, 1}}, drops);
    const auto rows = ragged.run().at("y");
    for (const int64_t m : {0, 2}) {
      const int64_t batch = m == 0 ? 2 : 1;
      ModelRun alone(context, graph, {.num_members = 1, .batch = batch}, drops, 7, {m});
      alone.model().seed_dropout(static_cast<uint64_t>(m), 0, alone.stream());
      CHECK(rows[static_cast<size_t>(m)].values == alone.run().at("y")[0].values);
    }
  }
}
