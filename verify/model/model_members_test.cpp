// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Fewer members than were loaded: those that a search goes on with move to the front, and the first
// of them run alone.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/model_run.hpp"
#include "wide/checkpoint.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::ModelRun;
using test::small_model;

namespace {

template <class Owner>
concept has_views = requires(Owner&& owner) {
  views_of(std::forward<Owner>(owner));
};
template <class File>
concept has_members = requires(File&& file) {
  std::forward<File>(file).members();
};
template <class File>
concept has_parameters = requires(File&& file) {
  parameters_of(std::forward<File>(file));
};

/// Room for a model's operands and workspace, with the inputs of another's first members.
class Rooms {
 public:
  Rooms(ModelRun& whole, const Model& part)
      : part_(part),
        whole_(whole),
        workspace_(whole.context(), Dtype::uint8, {part.plan().workspace_bytes()}) {
    const ModelPlan& plan = part.plan();
    for (size_t i = 0; i < plan.inputs().size(); ++i) {
      const ModelOperand &own = plan.inputs()[i], &theirs = whole.plan().inputs()[i];
      tensors_.emplace_back(whole.context(), own.dtype, own.shape);
      const TensorView view = tensors_.back().view();
      const int64_t members = own.member_axis < 0 ? 1 : own.num_members;
      for (int64_t m = 0; m < members; ++m) {
        copy(member_view(theirs, whole.arguments().inputs[i], m), member_view(own, view, m),
             whole.stream());
      }
      inputs_.emplace_back(view);
    }
    for (const ModelOperand& own : plan.outputs()) {
      tensors_.emplace_back(whole.context(), own.dtype, own.shape);
      outputs_.push_back(tensors_.back().view());
    }
  }

  ModelArguments arguments() const { return {inputs_, outputs_}; }
  Execution execution() const {
    Execution own = whole_.execution();
    own.workspace = {workspace_.data(), workspace_.bytes()};
    return own;
  }
  /// A member's part of an output; of an ensemble, all of it.
  std::vector<float> output(size_t index, int64_t member) const {
    const ModelOperand& operand = part_.plan().outputs()[index];
    return download(operand, outputs_[index], member);
  }
  std::vector<float> download(const ModelOperand& operand, const ConstTensorView& all,
                              int64_t member) const {
    const ConstTensorView own = member_view(operand, all, member);
    std::vector<float> values(static_cast<size_t>(own.num_elements()));
    copy(own, TensorView(values.data(), own.dtype, own.shape, Device{}), whole_.stream());
    whole_.context().synchronize(whole_.stream());
    return values;
  }

 private:
  Model part_;
  ModelRun& whole_;
  mutable Tensor workspace_;
  std::vector<Tensor> tensors_;
  std::vector<ConstTensorView> inputs_;
  std::vector<TensorView> outputs_;
};

/// Whether they are equal but for other orders of sums.
bool are_near(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double{a[i]}));
    const double one = std::abs(double{a[i]} - double{b[i]});
    difference = one <= difference ? difference : one;  // NaN stays
  }
  return a.size() == b.size() && difference <= 2e-5 * most;
}

/// The first members give what they give beside all.
void check_first(ModelRun& whole, int64_t count) {
  CAPTURE(whole.plan().graph().name(), count);
  const Model part = whole.model().with_num_members(count);
  CHECK(part.plan().problem().num_members == count);
  const Rooms rooms(whole, part);
  (void)whole.run();
  part.run(rooms.arguments(), rooms.execution());
  for (size_t i = 0; i < whole.plan().outputs().size(); ++i) {
    const ModelOperand& operand = whole.plan().outputs()[i];
    for (int64_t m = 0; m < count; ++m) {
      CHECK(are_near(rooms.output(i, m), rooms.download(operand, whole.arguments().outputs[i], m)));
    }
  }
}

/// A trunk that all members share, with a weight that a member's own layer reads, too.
Graph with_trunk() {
  return test::built([](GraphBuilder& g) {
    const Value x = g.shared_input("x", {kBatch, 6}), own = g.input("own", {kBatch, 6});
    const Value weight = g.parameter("weight", {8, 6});
    const Value trunk = g.append("trunk", LinearOp{}, {{"x", x}, {"weight", weight}});
    const Value beside = g.append("beside", LinearOp{}, {{"x", own}, {"weight", weight}});
    g.output("y", layers::linear(g, "head", layers::add(g, "sum", beside, trunk), 4));
  });
}

/// Attention with a parameter of its own.
Graph with_slopes() {
  return test::built([](GraphBuilder& g) {
    const Value x = g.input("x", {kBatch, 5, 6});
    const Value slopes = g.parameter("slopes", {3}, Dtype::fp32);
    g.output("y", layers::flash_attention(g, "near", x, x, x, 3,
                                          {.window = 3, .soft_cap = 2, .slopes = slopes}));
  });
}

}  // namespace

TEST_CASE("model members: those that are not masked move to the front") {
  const Context cpu = Context::cpu();
  ModelRun run(cpu, small_model("mlp"), {.num_members = 4, .batch = 2});
  run.model().mask(0, run.stream());
  run.model().mask(2, run.stream());
  CHECK(run.model().compact(run.stream()) == std::vector<int64_t>{1, 3});
  CHECK(!run.model().is_masked(1));
  CHECK(run.model().is_masked(2));
  const OwnedParameters got = run.model().get(1, run.stream());
  const MemberParameters given = run.parameters_of(3);
  CHECK(std::memcmp(got.at("fc1.weight").data(), given.at("fc1.weight").data, 64 * 48 * 4) == 0);
  run.model().mask(0, run.stream());
  CHECK_THROWS_WITH(run.model().mask(1, run.stream()), ContainsSubstring("would leave none"));
}

TEST_CASE("model members: the first run alone as beside all") {
  for (const Context& context : test::devices_at_hand()) {
    CAPTURE(to_string(context.device()));
    for (const char* name : {"mlp", "convnet", "bert", "agent"}) {
      ModelRun whole(context, small_model(name), {.num_members = 5, .batch = 2});
      for (const int64_t count : {1, 2, 5}) check_first(whole, count);
    }
    ModelRun dropping(context, small_model("vit"), {.num_members = 3, .batch = 1},
                      {.drops_out = true});
    check_first(dropping, 2);
    ModelRun ragged(context, small_model("mlp"), {.num_members = 4, .batches = {2, 0, 3, 1}});
    check_first(ragged, 3);
    ModelRun trunk(context, with_trunk(), {.num_members = 3, .batch = 2},
                   {.shared_parameters = {"weight"}}, 7, {1, 1, 1});
    for (const int64_t count : {1, 2}) check_first(trunk, count);
    ModelRun sloped(context, with_slopes(), {.num_members = 3, .batch = 2});
    for (const int64_t count : {1, 2}) check_first(sloped, count);
  }
}

TEST_CASE("model members: one alone needs no copy of what is one for all, and keeps its mask") {
  for (const Context& context : test::devices_at_hand()) {
    const Graph graph = test::built([](GraphBuilder& g) {
      const Value y = layers::batchnorm(g, "norm", g.shared_input("x", {kBatch, 2, 6}));
      g.output("y", y);
      g.output("mean", layers::ensemble(g, "all", y, EnsembleFunction::mean));
    });
    ModelRun whole(context, graph, {.num_members = 3, .batch = 2});
    const Model one = whole.model().with_num_members(1);
    const Rooms rooms(whole, one);
    (void)whole.run();
    one.run(rooms.arguments(), rooms.execution());
    const auto y = rooms.output(0, 0);
    CHECK(are_near(y, rooms.download(whole.plan().outputs()[0], whole.arguments().outputs[0], 0)));
    CHECK(are_near(rooms.output(1, 0), y));
  }
}

TEST_CASE("model members: a change of one is a change of both") {
  for (const Context& context : test::devices_at_hand()) {
    ModelRun whole(context, small_model("mlp"), {.num_members = 4, .batch = 2});
    Model part = whole.model().with_num_members(2);
    part.replace(1, whole.parameters_of(11), whole.stream());
    check_first(whole, 2);
    whole.model().clone(3, 0, whole.stream());
    check_first(whole, 2);
    // Replays see it: addresses never change.
    const Rooms rooms(whole, part);
    const ModelReplay replay(context, part, rooms.arguments(), rooms.execution());
    whole.model().clone(2, 0, whole.stream());
    replay.run(whole.stream());
    const auto replayed = rooms.output(0, 0);
    (void)whole.run();
    CHECK(are_near(replayed,
                   rooms.download(whole.plan().outputs()[0], whole.arguments().outputs[0], 0)));
    // Of another batch, and of fewer members still.
    CHECK(part.with_batch(5).plan().problem() == ModelProblem{.num_members = 2, .batch = 5});
    CHECK(part.with_batch(5).with_num_members(1).plan().problem().num_members == 1);
    CHECK(part.plan().memory().weights_bytes == whole.plan().memory().weights_bytes);
  }
}

TEST_CASE("model members: a parameter that is one for all stays so with one member") {
  const Context cpu = Context::cpu({.num_threads = 2, .allocator = nullptr});
  ModelRun whole(cpu, with_trunk(), {.num_members = 3, .batch = 2},
                 {.shared_parameters = {"weight"}}, 7, {1, 1, 1});
  Model one = whole.model().with_num_members(1);
  const MemberParameters other = whole.parameters_of(2);
  CHECK_THROWS_WITH(one.set(0, "weight", other.at("weight"), whole.stream()),
                    ContainsSubstring("weight differs from that of the other members"));
  one.set(0, "head.bias", other.at("head.bias"), whole.stream());
}

TEST_CASE("model members: a search halves its members, and then runs half") {
  for (const Context& context : test::devices_at_hand()) {
    const Graph graph = test::built([](GraphBuilder& g) {
      const Value y = layers::linear(g, "fc", g.shared_input("x", {kBatch, 6}), 3);
      g.output("y", y);
      g.output("mean", layers::ensemble(g, "all", y, EnsembleFunction::mean));
    });
    ModelRun run(context, graph, {.num_members = 4, .batch = 2});
    for (const int64_t loser : {0, 2}) run.model().mask(loser, run.stream());
    CHECK(run.model().compact(run.stream()) == std::vector<int64_t>{1, 3});
    Model half = run.model().with_num_members(2);
    const Rooms rooms(run, half);
    half.run(rooms.arguments(), rooms.execution());
    (void)run.run();
    CHECK(are_near(rooms.output(1, 0),
                   rooms.download(run.plan().outputs()[1], run.arguments().outputs[1], 0)));
    // Masks are theirs, too: one of the half must remain.
    half.mask(1, run.stream());
    CHECK(run.model().is_masked(1));
    CHECK_THROWS_WITH(half.mask(0, run.stream()), ContainsSubstring("would leave none"));
    CHECK(half.compact(run.stream()) == std::vector<int64_t>{0});
    // The whole model may mask all of the half, as long as others remain.
    run.model().unmask(3, run.stream());
    run.model().mask(0, run.stream());
    half.run(rooms.arguments(), rooms.execution());
    for (const double v : rooms.output(1, 0)) CHECK(std::isnan(v));
    run.model().unmask(0, run.stream());
    const test::TemporaryFolder folder;
    const char* path = "half.safetensors";
    save_members(path, half, run.stream());
    CHECK(MembersFile::open(path).num_members() == 2);
  }
}

TEST_CASE("model members: there are no views of what dies at once") {
  STATIC_CHECK(has_views<const OwnedParameters&>);
  STATIC_CHECK(has_views<std::vector<OwnedParameters>&>);
  STATIC_CHECK(has_members<const MembersFile&>);
  STATIC_CHECK(has_parameters<const Safetensors&>);
  STATIC_CHECK_FALSE(has_views<OwnedParameters>);
  STATIC_CHECK_FALSE(has_views<std::vector<OwnedParameters>>);
  STATIC_CHECK_FALSE(has_members<MembersFile>);
  STATIC_CHECK_FALSE(has_parameters<Safetensors>);
  STATIC_CHECK_FALSE(has_parameters<Npy>);
}

TEST_CASE("model members: numbers that a model has not are refused") {
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  ModelRun run(cpu, small_model("mlp"), {.num_members = 4, .batch = 2});
  for (const int64_t count : {-1, 0, 5}) {
    CHECK_THROWS_WITH(run.model().with_num_members(count),
                      ContainsSubstring("model: num_members is " + std::to_string(count) +
                                        ", expected one in [1, 4], as many as there are"));
  }
  Model part = run.model().with_num_members(2);
  CHECK_THROWS_WITH(part.with_num_members(3), ContainsSubstring("expected one in [1, 2]"));
  CHECK_THROWS_WITH(part.clone(0, 2, run.stream()),
                    ContainsSubstring("member is 2, expected one in [0, 2)"));
}
