// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// prepare_weights puts members where run() reads them, and restore_weights is its inverse.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "wide/convert.hpp"
#include "wide/wide.hpp"

namespace wide {
namespace {

using Catch::Matchers::ContainsSubstring;

/// `count` bytes that differ from each other and between seeds.
std::vector<std::byte> pattern(int64_t count, int64_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * 37 + static_cast<size_t>(seed) * 101 + 11) % 251);
  }
  return bytes;
}

Tensor upload(const Context& context, Dtype dtype, const Shape& shape,
              const std::vector<std::byte>& bytes, Stream stream) {
  Tensor tensor(context, dtype, shape);
  copy(ConstTensorView(bytes.data(), dtype, shape, Device{}), tensor, stream);
  context.synchronize(stream);
  return tensor;
}

std::vector<std::byte> download(const Context& context, const Tensor& tensor, Stream stream) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
  copy(tensor, TensorView(bytes.data(), tensor.dtype(), tensor.shape(), Device{}), stream);
  context.synchronize(stream);
  return bytes;
}

void check_round_trip(const Context& context, bool has_bias) {
  const OwnedStream stream(context);
  LinearProblem problem;
  problem.num_members = 3;
  problem.batch = 2;
  problem.in_features = 7;
  problem.out_features = 5;
  problem.dtype = Dtype::bf16;
  problem.epilogue.has_bias = has_bias;
  const LinearPlan plan = make_linear_plan(context, problem);
  CHECK(plan.weight_format() == "packed");

  std::vector<std::byte> all_weights;
  std::vector<Tensor> weights, biases, restored_weights, restored_biases;
  std::vector<LinearMember> members;
  std::vector<TensorView> weight_views, bias_views;
  for (int64_t i = 0; i < problem.num_members; ++i) {
    const auto bytes = pattern(5 * 7 * 2, i);
    all_weights.insert(all_weights.end(), bytes.begin(), bytes.end());
    weights.push_back(upload(context, problem.dtype, {5, 7}, bytes, stream.get()));
    biases.push_back(upload(context, problem.dtype, {5}, pattern(5 * 2, 50 + i), stream.get()));
    members.push_back(
        {weights.back(), has_bias ? ConstTensorView(biases.back().view()) : ConstTensorView()});
    restored_weights.emplace_back(context, problem.dtype, Shape{5, 7});
    restored_biases.emplace_back(context, problem.dtype, Shape{5});
    weight_views.push_back(restored_weights.back());
    bias_views.push_back(restored_biases.back());
  }
  Tensor weight(context, problem.dtype, {3, 5, 7}), bias(context, problem.dtype, {3, 5});
  const TensorView bias_view = has_bias ? bias.view() : TensorView();
  if (!has_bias) bias_views.clear();
  plan.prepare_weights(members, weight, bias_view, stream.get());
  CHECK(download(context, weight, stream.get()) == all_weights);
  plan.restore_weights(weight, bias_view, weight_views, bias_views, stream.get());
  for (size_t i = 0; i < weights.size(); ++i) {
    CHECK(download(context, restored_weights[i], stream.get()) ==
          download(context, weights[i], stream.get()));
    if (!has_bias) continue;
    CHECK(download(context, restored_biases[i], stream.get()) ==
          download(context, biases[i], stream.get()));
  }
}

TEST_CASE("restore_weights undoes prepare_weights bit for bit") {
  for (const Context& context : test::devices_at_hand()) {
    check_round_trip(context, true);
    check_round_trip(context, false);
  }
}

TEST_CASE("quantised members are prepared, replaced row by row, and restored as they are stored") {
  for (const Context& context : test::devices_at_hand()) {
    const OwnedStream stream(context);
    LinearProblem problem{.num_members = 2, .batch = 3, .in_features = 70, .out_features = 20};
    problem.dtype = Dtype::fp16;
    problem.weight_format = WeightFormat::fp6_e3m2;
    problem.group_size = 64;
    problem.epilogue.has_bias = true;
    const LinearPlan plan = make_linear_plan(context, problem, {.strategy = "sequential"});
    CHECK(plan.weight_format() == "fp6_e3m2");
    // Small whole numbers: nothing is lost. As fp32, though x is fp16.
    std::vector<std::byte> bytes(20 * 70 * 4), bias_bytes(20 * 2);
    for (int64_t i = 0; i < 20 * 70; ++i) {
      store_element(bytes.data(), Dtype::fp32, i, static_cast<double>(i * i % 7) - 3);
    }
    const Tensor one = upload(context, Dtype::fp32, {20, 70}, bytes, stream.get());
    const Tensor bias_one = upload(context, Dtype::fp16, {20}, bias_bytes, stream.get());
    const LinearMember members[] = {{one.view(), bias_one.view()}, {one.view(), bias_one.view()}};
    const int64_t size = linear_member_bytes(plan.problem());
    Tensor blobs(context, Dtype::uint8, {2, size}), bias(context, Dtype::fp16, {2, 20});
    plan.prepare_weights(members, blobs, bias, stream.get());
    copy(blobs.view().narrow(0, 0, 1), blobs.view().narrow(0, 1, 1), stream.get());
    Tensor first(context, Dtype::fp32, {20, 70}), second(context, Dtype::fp32, {20, 70});
    Tensor first_bias(context, Dtype::fp16, {20}), second_bias(context, Dtype::fp16, {20});
    const TensorView weights[] = {first, second}, biases[] = {first_bias, second_bias};
    plan.restore_weights(blobs, bias, weights, biases, stream.get());
    CHECK(download(context, first, stream.get()) == bytes);
    CHECK(download(context, second, stream.get()) == bytes);
    Tensor short_blobs(context, Dtype::uint8, {2, size - 16});
    CHECK_THROWS_AS(plan.prepare_weights(members, short_blobs, bias, stream.get()), Error);
  }
}

TEST_CASE("prepare_weights refuses members that do not fit") {
  const Context context = Context::cpu();
  LinearProblem problem;
  problem.num_members = 2;
  problem.in_features = 3;
  problem.out_features = 4;
  problem.epilogue.has_bias = true;
  const LinearPlan plan = make_linear_plan(context, problem);
  const Tensor member_weight(context, Dtype::fp32, {4, 3}), member_bias(context, Dtype::fp32, {4});
  Tensor weight(context, Dtype::fp32, {2, 4, 3}), bias(context, Dtype::fp32, {2, 4});
  std::vector<LinearMember> members(2, {member_weight, member_bias});
  TensorView packed_weight = weight, packed_bias = bias;
  std::string expected;
  SECTION("too few") {
    members.pop_back();
    expected = "linear: members has 1 entry, expected num_members = 2";
  }
  SECTION("a member without bias") {
    members[1].bias = {};
    expected = "linear: bias of member 1 is absent, expected [out]";
  }
  SECTION("nowhere to put the biases") {
    packed_bias = {};
    expected = "linear: bias is absent, expected [num_members, out]";
  }
  SECTION("a packed weight of another shape") {
    packed_weight.shape = {2, 3, 4};
    expected = "linear: weight is [2, 3, 4], expected [num_members, out, in] = [2, 4, 3]";
  }
  SECTION("a packed weight of another dtype") {
    packed_weight.dtype = Dtype::int32;
    expected = "linear: weight is int32, expected dtype = fp32";
  }
  CHECK_THAT(test::refusal_of(
                 [&] { plan.prepare_weights(members, packed_weight, packed_bias, Stream::cpu()); }),
             ContainsSubstring(expected));
}

}  // namespace
}  // namespace wide
