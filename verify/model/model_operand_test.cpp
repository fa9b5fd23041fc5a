// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One member's part of an operand: where it lies, and members that come and go one by one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <numeric>
#include <vector>

#include "verify/support/devices.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model.hpp"

using namespace wide;
using Catch::Matchers::Message;

namespace {

float memory[1024];

TensorView dense(const Shape& shape) {
  return {memory, Dtype::fp32, shape, Device{}};
}

/// Of three members.
ModelOperand operand(const Shape& shape, int member_axis) {
  return {.name = "x", .shape = shape, .member_axis = member_axis, .num_members = 3};
}

/// Whether the member is `offset` elements behind the first one, with this shape and strides.
bool is_at(const TensorView& member, int64_t offset, const Shape& shape, const Strides& strides) {
  return member.data == memory + offset && member.shape == shape && member.strides == strides;
}

}  // namespace

TEST_CASE("model: a member of an operand lies where the plan has it") {
  const ModelOperand features = operand({5, 12}, 1);
  CHECK(is_at(member_view(features, dense({5, 12}), 2), 8, {5, 4}, {12, 1}));
  CHECK(is_at(member_view(features, dense({9, 12}), 1), 4, {9, 4}, {12, 1}));  // in chunks
  const ModelOperand channels = operand({2, 6, 4, 3}, 1);
  CHECK(is_at(member_view(channels, dense({2, 6, 4, 3}), 1), 24, {2, 2, 4, 3}, {72, 12, 3, 1}));
  ModelOperand stacked = operand({3, 2, 4}, 0);
  stacked.is_stacked = true;
  CHECK(is_at(member_view(stacked, dense({3, 2, 4}), 2), 16, {2, 4}, {4, 1}));
  const ModelOperand shared = operand({5, 12}, -1);
  CHECK(is_at(member_view(shared, dense({5, 12}), 2), 0, {5, 12}, {12, 1}));
  ModelOperand ragged = operand({5, 4}, 1);
  ragged.first_rows = {0, 2, 2, 5};
  CHECK(is_at(member_view(ragged, dense({5, 4}), 0), 0, {2, 4}, {4, 1}));
  CHECK(member_view(ragged, dense({5, 4}), 1).shape == Shape{0, 4});
  CHECK(is_at(member_view(ragged, dense({5, 4}), 2), 8, {3, 4}, {4, 1}));

  const auto refused = [](const ModelOperand& operand, const Shape& shape, int64_t index,
                          const std::string& message) {
    CHECK_THROWS_MATCHES(member_view(operand, dense(shape), index), Error, Message(message));
  };
  refused(features, {5, 13}, 0, "model: x is fp32 [5, 13], expected fp32 [5, 12]");
  refused(stacked, {4, 2, 4}, 0, "model: x is fp32 [4, 2, 4], expected fp32 [3, 2, 4]");
  refused(features, {5, 12}, 3, "model: x: member is 3, expected one in [0, 3)");
  refused(shared, {5, 12}, -1, "model: x: member is -1, expected one in [0, 3)");
  refused(operand({5, 13}, 1), {5, 13}, 0,
          "x: axis 1 of the packed tensor [5, 13] does not divide into 3 members");
  ragged.num_members = 2;
  refused(ragged, {5, 4}, 0, "model: x has rows of 3 members, expected of num_members = 2");
}

TEST_CASE("model: members' inputs and outputs come and go one by one") {
  const auto relu = [](const Shape& shape) {
    GraphBuilder g("relu");
    g.output("y", layers::relu(g, "act", g.input("x", shape)));
    return std::move(g).build();
  };
  for (const Context& context : test::devices_at_hand()) {
    for (const ModelProblem& problem : {ModelProblem{.num_members = 3, .batch = 2},
                                        ModelProblem{.num_members = 3, .batches = {2, 0, 3}}}) {
      CAPTURE(to_string(context.device()), problem.batches.size());
      const ModelPlan plan = make_model_plan(context, relu({kBatch, 4}), problem);
      const Model model(context, plan, std::vector<MemberParameters>(3));
      const ModelOperand &in = plan.inputs()[0], &out = plan.outputs()[0];
      Tensor x(context, in.dtype, in.shape), y(context, out.dtype, out.shape);
      Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
      const OwnedStream stream(context);
      const ConstTensorView inputs[] = {x};
      const TensorView outputs[] = {y};
      std::vector<std::vector<float>> members(3), results(3);
      for (int64_t m = 0; m < 3; ++m) {
        std::vector<float>& own = members[static_cast<size_t>(m)];
        const TensorView place = member_view(in, x.view(), m);
        CHECK(in.num_members == 3);
        own.resize(static_cast<size_t>(place.num_elements()));
        std::iota(own.begin(), own.end(), static_cast<float>(10 * m + 1));
        copy(ConstTensorView(own.data(), Dtype::fp32, place.shape, Device{}), place, stream.get());
      }
      model.run({inputs, outputs}, {stream.get(), {workspace.data(), workspace.bytes()}, nullptr});
      for (int64_t m = 0; m < 3; ++m) {
        std::vector<float>& own = results[static_cast<size_t>(m)];
        const ConstTensorView place = member_view(out, ConstTensorView(y), m);
        own.resize(static_cast<size_t>(place.num_elements()));
        copy(place, TensorView(own.data(), Dtype::fp32, place.shape, Device{}), stream.get());
      }
      context.synchronize(stream.get());
      CHECK(results == members);
    }
  }
}
