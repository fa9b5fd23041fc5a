// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_mlp: a case worked out by hand, weights, the choice of a strategy and of blocks, and the
// CPU's strategies on the shapes that the CUDA ones are tested with.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <limits>

#include "host/fused/mlp_strategy.hpp"
#include "host/fused/routed_mlp_problem.hpp"
#include "host/fused/routed_mlp_strategy.hpp"
#include "verify/fused/routed_mlp_case.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/tensors.hpp"

namespace wide::test {
namespace {

TestDevice& cpu() {
  static TestDevice device(Context::cpu({.num_threads = 2, .allocator = {}}));
  return device;
}

template <class T>
TensorView view(std::vector<T>& values, Dtype dtype, const Shape& shape) {
  return TensorView(values.data(), dtype, shape, Device{});
}

/// 2-1-1 by relu: member 0 has x0 + x1 + 1, then times 2; member 1 x0 - x1, then times -1, minus 3.
struct TwoByHand {
  RoutedMlpProblem like{.widths = {2, 1, 1}, .has_bias = true};
  Tensor weights{cpu().context(), Dtype::fp32, {2, mlp_member_elements(networks_of(like))}};

  TwoByHand() {
    std::vector<float> first[2] = {{1, 1}, {1, -1}}, first_bias[2] = {{1}, {0}};
    std::vector<float> second[2] = {{2}, {-1}}, second_bias[2] = {{0}, {-3}};
    std::vector<MlpMember> members(2);
    for (size_t n = 0; n < 2; ++n) {
      members[n].layers = {
          {view(first[n], Dtype::fp32, {1, 2}), view(first_bias[n], Dtype::fp32, {1})},
          {view(second[n], Dtype::fp32, {1, 1}), view(second_bias[n], Dtype::fp32, {1})}};
    }
    RoutedMlpProblem problem = like;
    problem.num_members = 2, problem.num_rows = 3;
    make_routed_mlp_plan(cpu().context(), problem).prepare_weights(members, weights, Stream::cpu());
  }
};

TEST_CASE("routed_mlp: two members and three rows, one dropped, worked out by hand") {
  const std::string strategy = GENERATE("wide", "sequential");
  const TwoByHand two;
  // Row 2 goes to member 0, row 0 to member 1, row 1 to none.
  std::vector<int32_t> first_rows{0, 1, 2}, order{2, 0, 1};
  std::vector<float> x{4, 2, 3, 4, 5, 6}, gates{2, 9, 0.5}, y(3, -7);
  RoutedMlpArguments arguments{.x = view(x, Dtype::fp32, {3, 2}),
                               .weights = two.weights,
                               .y = view(y, Dtype::fp32, {3, 1}),
                               .gates = view(gates, Dtype::fp32, {3}),
                               .first_rows = view(first_rows, Dtype::int32, {3}),
                               .order = view(order, Dtype::int32, {3})};
  const auto run = [&](bool gathers, bool scatters) {
    RoutedMlpProblem like = two.like;
    like.gathers = gathers, like.scatters = scatters;
    const auto plan = make_routed_mlp_plan(cpu().context(), describe_routed_mlp(arguments, like),
                                           {.strategy = strategy});
    CHECK(plan.strategy() == strategy);
    CHECK(plan.workspace_bytes() == 512);
    plan.run(arguments, cpu().execution(plan.workspace_bytes()));
    return y;
  };
  using Values = std::vector<float>;
  // 2 (5 + 6 + 1) of row 2 by half, -(4 - 2) - 3 of row 0 twice.
  CHECK(run(true, true) == Values{-10, 0, 12});
  CHECK(run(true, false) == Values{12, -10, 0});
  // In routed order x[0] is member 0's and x[1] member 1's, whose relu gives 0; the gates are by
  // rows all the same.
  CHECK(run(false, true) == Values{-6, 0, 7});
  CHECK(run(false, false) == Values{7, -6, 0});
  arguments.gates = {};
  CHECK(run(true, true) == Values{-5, 0, 24});
}

TEST_CASE("routed_mlp on the CPU: both strategies, exactly, wherever rows lie") {
  const std::string strategy = GENERATE("wide", "sequential");
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const bool gathers = GENERATE(false, true), scatters = GENERATE(false, true);
  INFO(strategy << ", " << dtype_name(dtype) << (gathers ? ", gathers" : "")
                << (scatters ? ", scatters" : ""));
  const Routing routing = routing_of_counts({5, 0, 16, 17, 1, 33}, 6);
  RoutedMlpProblem problem = routed_mlp_problem(routing, {19, 70, 33, 9}, dtype);
  problem.gathers = gathers, problem.scatters = scatters;
  for (const int64_t misalign : {0, 1}) {
    check_routed_mlp(cpu(), problem, routing, strategy, misalign);
  }
  for (const int64_t choices : {2, 3, 78}) {
    problem.choices = gathers ? choices : 1;
    problem.has_gates = choices != 2;
    check_routed_mlp(cpu(), problem, routing, strategy);
  }
  problem.has_bias = false;
  problem.activation = Activation::none, problem.last_activation = Activation::relu;
  problem.x_row_stride = 24, problem.y_row_stride = 11;
  problem.weights_member_stride = mlp_member_elements(networks_of(problem)) + 16;
  check_routed_mlp(cpu(), problem, routing, strategy);
  problem.widths = {5, 7};
  problem.weights_member_stride = 0;
  check_routed_mlp(cpu(), problem, routing, strategy);
}

TEST_CASE("routed_mlp on the CPU: few members and many, few rows and none") {
  const std::string strategy = GENERATE("wide", "sequential");
  for (const Routing& routing : few_and_many()) {
    RoutedMlpProblem problem = routed_mlp_problem(routing, {5, 8, 3});
    problem.gathers = problem.scatters = true;
    check_routed_mlp(cpu(), problem, routing, strategy);
  }
}

TEST_CASE("routed_mlp on the CPU: a wrong routing reads and writes operands only") {
  const std::string strategy = GENERATE("wide", "sequential");
  const Routing routing = routing_of_counts({20, 3, 17}, 8);
  RoutedMlpProblem problem = routed_mlp_problem(routing, {8, 12, 6});
  problem.gathers = GENERATE(false, true), problem.scatters = GENERATE(false, true);
  problem.has_gates = true;
  PlacedRoutedMlp placed(cpu(), problem, routing, 1);
  const auto plan = make_routed_mlp_plan(cpu().context(), problem, {.strategy = strategy});
  check_wrong_routings(cpu(), plan, placed, routing);
}

TEST_CASE("routed_mlp: the automatic choice takes what is verified, and says why") {
  DeviceInfo device = kH200;
  RoutedMlpProblem problem{.num_members = 3, .num_rows = 9, .widths = {8, 16, 8}};
  problem.dtype = Dtype::bf16;
  const VerifiedStrategy layerwise_only[] = {{"routed_mlp", "layerwise", 90}};
  const VerifiedStrategy both[] = {{"routed_mlp", "layerwise", 90}, {"routed_mlp", "fused", 90}};
  const auto choose = [&](std::span<const VerifiedStrategy> verified) {
    return choose_routed_mlp_strategy(problem, device, verified);
  };
  const auto reason = [&](RoutedMlpStrategy strategy) {
    return routed_mlp_unsupported_reason(strategy, problem, device);
  };
  using enum RoutedMlpStrategy;
  CHECK(choose({}).strategy == sequential);
  CHECK(choose({}).explain.find("fused, layerwise: unverified on compute capability 90") !=
        std::string::npos);
  CHECK(choose(layerwise_only).strategy == layerwise);
  CHECK(choose(both).strategy == fused);
  problem.widths = {8, 257, 8};
  CHECK(choose(both).strategy == layerwise);
  CHECK(reason(fused) == "it takes widths up to 256, widths is 8-257-8");
  problem.widths.assign(18, 8);
  CHECK(reason(fused) == "it takes up to 16 layers, there are 17");
  CHECK(reason(wide) != "");
  problem.widths = {8, 8};
  problem.num_members = std::numeric_limits<int32_t>::max() - 1;
  CHECK(reason(fused) == "");
  problem.num_members += 1;
  CHECK(reason(fused).starts_with("the rows of any routing have more than 2^31 - 1 tiles of "));
  CHECK(reason(layerwise).starts_with("routed_linear by simt: the outputs of any routing have"));
  problem.num_members = 3;
  device.compute_capability = 75;
  CHECK(reason(fused).find("8.0") != std::string::npos);
  CHECK(reason(sequential).find("8.0") != std::string::npos);
}

TEST_CASE("routed_mlp: layers run by the tensor cores where these multiply what is asked for") {
  RoutedMlpProblem problem{.num_members = 3, .num_rows = 9, .widths = {8, 8}};
  const auto by = [&](RoutedMlpStrategy strategy) {
    const auto layer = routed_mlp_layers(complete_routed_mlp_problem(problem)).front();
    return routed_mlp_layer_strategy(strategy, layer, kH200);
  };
  CHECK(by(RoutedMlpStrategy::layerwise) == "simt");
  problem.allow_tf32 = true;
  CHECK(by(RoutedMlpStrategy::layerwise) == "tensor_core");
  problem.allow_tf32 = false, problem.dtype = Dtype::fp16;
  CHECK(by(RoutedMlpStrategy::layerwise) == "tensor_core");
  CHECK(by(RoutedMlpStrategy::sequential) == "sequential");
  problem.num_rows = 3 * 512, problem.widths = {512, 512};  // 54 of Hopper's tiles are few
  CHECK(by(RoutedMlpStrategy::layerwise) == "tensor_core");
  problem.widths = {512, 2048};
  CHECK(by(RoutedMlpStrategy::layerwise) == "wgmma");
  problem.dtype = Dtype::fp32, problem.allow_tf32 = true;
  CHECK(by(RoutedMlpStrategy::layerwise) == "tensor_core");
}

TEST_CASE("routed_mlp: a block is for twice the mean, but for many rows one of several") {
  RoutedMlpProblem problem{.num_members = 4096, .num_rows = 4096 * 40, .widths = {32, 32, 4}};
  problem.dtype = Dtype::bf16;
  const auto shape = [&] {
    return choose_routed_mlp_shape(complete_routed_mlp_problem(problem), kH200);
  };
  CHECK((shape().block.warps == 6 && shape().tile == 96));
  problem.num_rows = 4096 * 3;
  CHECK((shape().block.warps == 4 && shape().tile == 64));
  problem.num_rows = 4096 * 500;
  CHECK((shape().block.warps == 8 && shape().tile == 1024));
  problem.dtype = Dtype::fp32;
  CHECK((shape().block.warps == 8 && shape().tile == 1024));
  problem.num_members = 2, problem.num_rows = 1 << 20;
  CHECK(shape().tile < 8192);
  problem.num_members = 1, problem.num_rows = std::numeric_limits<int32_t>::max();
  CHECK((shape().tile > 0 && shape().tile % (shape().block.warps * 8) == 0));
  DeviceInfo small = kH200;
  small.num_multiprocessors = 1;
  CHECK(choose_routed_mlp_shape(complete_routed_mlp_problem(problem), small).tile <= 1 << 30);
  CHECK(shape().block.shared_bytes == kernels::mlp_fused_shape(mlp_fused_net(mlp_of(problem)),
                                                               kernels::MlpMath::fp32,
                                                               shape().block.warps, 0, true)
                                          .shared_bytes);
}

TEST_CASE("routed_mlp: weights come back bit for bit") {
  const RoutedMlpProblem problem = routed_mlp_problem(routing_of_counts({2, 3}), {5, 7, 3});
  const auto plan = make_routed_mlp_plan(cpu().context(), problem);
  const Context& context = cpu().context();
  Tensor weights(context, Dtype::fp32, {2, mlp_member_elements(networks_of(problem))});
  std::vector<Tensor> own, restored;
  const Shape shapes[] = {{7, 5}, {7}, {3, 7}, {3}};
  for (uint64_t i = 0; i < 8; ++i) {
    const Shape& shape = shapes[i % 4];
    own.push_back(upload(context, Dtype::fp32, shape,
                         uniform(static_cast<size_t>(num_elements(shape)), -1, 1, i)));
    restored.emplace_back(context, Dtype::fp32, shape);
  }
  std::vector<MlpMember> members(2);
  std::vector<BasicMlpMember<TensorView>> back(2);
  for (size_t i = 0; i < 8; i += 2) {
    members[i / 4].layers.push_back({own[i].view(), own[i + 1].view()});
    back[i / 4].layers.push_back({restored[i].view(), restored[i + 1].view()});
  }
  plan.prepare_weights(members, weights, Stream::cpu());
  plan.restore_weights(weights, back, Stream::cpu());
  for (size_t i = 0; i < 8; ++i) {
    CHECK(download(context, restored[i]) == download(context, own[i]));
  }
}

}  // namespace
}  // namespace wide::test
