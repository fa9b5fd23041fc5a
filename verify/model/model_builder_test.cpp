// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models step by step: the same as compile(), and refused where a step is missing.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "wide/model_builder.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;

namespace {

const Context kCpu = Context::cpu();

}  // namespace

TEST_CASE("model builder: members, sample, preset and validation make the model") {
  const Graph graph = test::small_model("mlp");
  std::vector<OwnedParameters> owned;
  std::vector<MemberParameters> members;
  for (int64_t i = 0; i < 3; ++i) {
    owned.push_back(random_parameters(graph, 42, i));
    members.push_back(views_of(owned.back()));
  }
  Shape shape = graph.type(graph.inputs()[0]).shape;
  shape[0] = 4;
  const ConstTensorView sample(nullptr, Dtype::fp32, shape, Device{});
  const Model given = ModelBuilder(kCpu, graph)
                          .members(members)
                          .with_sample(sample)
                          .compile("debug")
                          .validate(1e-4)
                          .build();
  CHECK(given.plan().problem().num_members == 3);
  CHECK(given.plan().problem().batch == 4);
  const ModelPlan same =
      make_model_plan(kCpu, graph, {.num_members = 3, .batch = 4}, model_options("debug"));
  CHECK(given.plan().explain() == same.explain());
  const Model drawn = ModelBuilder(kCpu, graph).random_members(3).batch(4).build();
  const OwnedStream stream(kCpu);
  for (int64_t i = 0; i < 3; ++i) {
    const OwnedParameters a = given.get(i, stream.get()), b = drawn.get(i, stream.get());
    for (const auto& [name, tensor] : a)
      CHECK(std::memcmp(tensor.data(), b.at(name).data(), static_cast<size_t>(tensor.bytes())) ==
            0);
  }
}

TEST_CASE("model builder: a replay keeps its model") {
  const Graph graph = test::small_model("mlp");
  const Model model = ModelBuilder(kCpu, graph).random_members(2).batch(3).build();
  const auto operand = [](const ModelOperand& like) {
    return Tensor(kCpu, like.dtype, like.shape);
  };
  Tensor x = operand(model.plan().inputs()[0]);
  Tensor first = operand(model.plan().outputs()[0]), again = operand(model.plan().outputs()[0]);
  std::memset(x.data(), 0, static_cast<size_t>(x.bytes()));
  Tensor workspace(kCpu, Dtype::uint8, {model.plan().workspace_bytes()});
  const Execution execution{Stream::cpu(), {workspace.data(), workspace.bytes()}};
  const ConstTensorView in = x.view();
  const TensorView out = first.view(), out_again = again.view();
  model.run({{&in, 1}, {&out, 1}}, execution);
  std::optional<ModelReplay> replay;
  {
    const Model share = model;
    replay.emplace(kCpu, share, ModelArguments{{&in, 1}, {&out_again, 1}}, execution);
  }
  replay->run(Stream::cpu());
  CHECK(std::memcmp(first.data(), again.data(), static_cast<size_t>(first.bytes())) == 0);
}

TEST_CASE("model builder: what is missing or does not fit is said") {
  const Graph graph = test::small_model("mlp");
  const auto builder = [&] { return ModelBuilder(kCpu, graph); };
  CHECK_THROWS_WITH(builder().batch(2).build(), ContainsSubstring("has no members"));
  CHECK_THROWS_WITH(builder().random_members(2).build(), ContainsSubstring("has no batch"));
  CHECK_THROWS_WITH(builder().random_members(0), ContainsSubstring("num_members is 0"));
  CHECK_THROWS_WITH(builder().batch(0), ContainsSubstring("batch is 0"));
  CHECK_THROWS_WITH(builder().compile("quick"), ContainsSubstring("preset is \"quick\""));
  const std::string both = "is given compile(\"fast\") and options(), expected one of them";
  CHECK_THROWS_WITH(builder().options({.fuses_epilogues = false}).compile("fast"),
                    ContainsSubstring(both));
  CHECK_THROWS_WITH(builder().compile("fast").options({}), ContainsSubstring(both));
  CHECK_THROWS_WITH(builder().validate(-1), ContainsSubstring("tolerance is -1"));
  CHECK_THROWS_WITH(
      builder().with_sample(ConstTensorView(nullptr, Dtype::fp32, Shape{2, 999}, Device{})),
      ContainsSubstring("is fp32 [2, 999], expected fp32 [B, "));
  // A member that computes NaN is not as it is alone, by definition.
  OwnedParameters owned = random_parameters(graph, 1, 0), broken = random_parameters(graph, 1, 1);
  static_cast<float*>(broken.begin()->second.data())[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<MemberParameters> members{views_of(owned), views_of(broken)};
  CHECK_THROWS_WITH(builder().members(members).batch(2).validate(1e-3).build(),
                    ContainsSubstring("model: member 1 of"));
  CHECK_NOTHROW(builder().members(members).batch(2).build());
  const std::string two_kinds = "is given members() and random_members(), expected one of them";
  CHECK_THROWS_WITH(builder().members(members).random_members(2), ContainsSubstring(two_kinds));
  CHECK_THROWS_WITH(builder().random_members(2).members(members), ContainsSubstring(two_kinds));
  const Model again = builder().random_members(2).random_members(3).batch(2).build();
  CHECK(again.plan().problem().num_members == 3);
}
