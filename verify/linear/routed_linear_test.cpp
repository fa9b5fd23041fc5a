// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear: a case worked out by hand, weights, the choice of a strategy, and the CPU's
// strategies on the shapes that the CUDA ones are tested with.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <limits>

#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_linear_strategy.hpp"
#include "verify/linear/routed_linear_mixture.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/refusals.hpp"

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

TEST_CASE("routed_linear: two members and three rows, one dropped, worked out by hand") {
  const std::string strategy = GENERATE("wide", "sequential");
  // Row 2 goes to member 0, row 0 to member 1, row 1 to none.
  std::vector<int32_t> first_rows{0, 1, 2}, order{2, 0, 1};
  std::vector<float> x{1, 2, 3, 4, 5, 6}, weight{1, 1, 2, -1}, bias{10, -1}, gates{2, 9, 0.5};
  std::vector<float> y(3, -7);
  const RoutedLinearArguments arguments{.x = view(x, Dtype::fp32, {3, 2}),
                                        .weight = view(weight, Dtype::fp32, {2, 1, 2}),
                                        .bias = view(bias, Dtype::fp32, {2, 1}),
                                        .y = view(y, Dtype::fp32, {3, 1}),
                                        .gates = view(gates, Dtype::fp32, {3}),
                                        .first_rows = view(first_rows, Dtype::int32, {3}),
                                        .order = view(order, Dtype::int32, {3})};
  const auto run = [&](RoutedLinearProblem like) {
    const auto plan = make_routed_linear_plan(
        cpu().context(), describe_routed_linear(arguments, like), {.strategy = strategy});
    CHECK(plan.strategy() == strategy);
    CHECK(plan.weight_format() == "packed");
    CHECK(plan.workspace_bytes() == 0);
    plan.run(arguments, cpu().execution(plan.workspace_bytes()));
    return y;
  };
  using Values = std::vector<float>;
  // 5 + 6 + 10 of row 2 by half, 2 * 1 - 2 - 1 of row 0 twice.
  CHECK(run({.gathers = true, .scatters = true}) == Values{-2, 0, 10.5f});
  CHECK(run({.gathers = true}) == Values{10.5f, -2, 0});
  // In routed order x[0] is member 0's and x[1] member 1's; the gates are by rows all the same.
  CHECK(run({.scatters = true}) == Values{2, 0, 6.5f});
  CHECK(run({}) == Values{6.5f, 2, 0});
  gates = {1, 1, 1};
  RoutedLinearProblem like{.gathers = true};
  like.epilogue.activation = Activation::relu;
  CHECK(run(like) == Values{21, 0, 0});
}

TEST_CASE(
    "routed_linear: what top_k writes, and y and a residual of a row's choices side by side") {
  // Row 0 of x goes to members 1 and 0, row 1 to 0 and 1.
  std::vector<int32_t> first_rows{0, 2, 4}, order{1, 2, 0, 3};
  std::vector<float> x{1, 2, 3, 4}, weight{1, 1, 2, -1}, gates{1, 2, 3, 4}, y{100, 200, 300, 400};
  RoutedLinearArguments arguments{.x = view(x, Dtype::fp32, {2, 2}),
                                  .weight = view(weight, Dtype::fp32, {2, 1, 2}),
                                  .y = view(y, Dtype::fp32, {2, 2}),
                                  .residual = view(y, Dtype::fp32, {2, 2}),
                                  .gates = view(gates, Dtype::fp32, {2, 2}),
                                  .first_rows = view(first_rows, Dtype::int32, {3}),
                                  .order = view(order, Dtype::int32, {4})};
  RoutedLinearProblem like{.gathers = true, .scatters = true};
  like.epilogue.residual = Residual::after_activation;
  const RoutedLinearProblem problem = describe_routed_linear(arguments, like);
  CHECK((problem.num_rows == 4 && problem.choices == 2 && problem.out_features == 1));
  CHECK((problem.y_row_stride == 1 && problem.residual_row_stride == 1));
  make_routed_linear_plan(cpu().context(), problem).run(arguments, cpu().execution(0));
  CHECK(y == std::vector<float>{100, 2 * 203, 3 * 307, 4 * 402});

  RoutedLinearArguments flat = arguments;
  flat.y = view(y, Dtype::fp32, {4, 1});
  flat.residual = flat.y;
  flat.gates = view(gates, Dtype::fp32, {4});
  CHECK(describe_routed_linear(flat, like) == problem);
  // In routed order the choices of a row do not lie side by side.
  like.scatters = false;
  CHECK(refusal_of([&] { describe_routed_linear(arguments, like); }) ==
        "routed_linear: y is [2, 2], expected [R, out] = [4, 1]");
  like.scatters = true;
  arguments.y.strides = {3, 1};
  CHECK(refusal_of([&] { describe_routed_linear(arguments, like); }) ==
        "routed_linear: y is [2, 2] with strides [3, 1], expected contiguous ones, as of [R, out]");
}

TEST_CASE("routed_linear on the CPU: both strategies, exactly, wherever rows lie") {
  const std::string strategy = GENERATE("wide", "sequential");
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const bool gathers = GENERATE(false, true), scatters = GENERATE(false, true);
  INFO(strategy << ", " << dtype_name(dtype) << (gathers ? ", gathers" : "")
                << (scatters ? ", scatters" : ""));
  const Routing routing = routing_of_counts({5, 0, 16, 17, 1, 33}, 6);
  RoutedLinearProblem problem = routed_problem(routing, 19, 70, dtype);
  problem.gathers = gathers, problem.scatters = scatters;
  for (const int64_t misalign : {0, 1}) check_routed(cpu(), problem, routing, strategy, misalign);
  for (const int64_t choices : {2, 3, 78}) {
    problem.choices = gathers ? choices : 1;
    problem.has_gates = choices != 2;
    check_routed(cpu(), problem, routing, strategy);
  }
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .scale = OutputScale::per_output,
                      .residual = Residual::before_activation,
                      .alpha = 2};
  check_routed(cpu(), problem, routing, strategy);
  check_routed(cpu(), problem, routing, strategy, 0, true);
  problem.epilogue.scale = OutputScale::per_member;
  problem.epilogue.residual = Residual::after_activation;
  problem.x_row_stride = 24, problem.y_row_stride = 71, problem.weight = {20, 70 * 20};
  problem.residual_row_stride = 90;
  check_routed(cpu(), problem, routing, strategy);
}

TEST_CASE("routed_linear on the CPU: quantised weights, exactly") {
  const std::string strategy = GENERATE("wide", "sequential");
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const Routing routing = routing_of_counts({5, 0, 16, 17, 1, 33}, 6);
  for (const WeightFormat format :
       {WeightFormat::fp8_e4m3, WeightFormat::int8, WeightFormat::fp6_e3m2, WeightFormat::int4,
        WeightFormat::fp4_e2m1}) {
    RoutedLinearProblem problem = routed_problem(routing, 300, 70, dtype);
    problem.weight_format = format;
    problem.gathers = problem.scatters = true;
    INFO(strategy << ", " << dtype_name(dtype) << ", " << weight_format_name(format));
    check_routed(cpu(), problem, routing, strategy);
    problem.group_size = 64, problem.choices = 3, problem.has_gates = true;
    problem.weight.member = linear_member_bytes(problem) + 3 * kQuantizedAlignment;
    check_routed(cpu(), problem, routing, strategy, 1);
  }
}

TEST_CASE("routed_linear on the CPU: few members and many, few rows and none") {
  const std::string strategy = GENERATE("wide", "sequential");
  for (const Routing& routing : few_and_many()) {
    RoutedLinearProblem problem = routed_problem(routing, 5, 3);
    problem.gathers = problem.scatters = true;
    check_routed(cpu(), problem, routing, strategy);
    problem.in_features = 0;
    check_routed(cpu(), problem, routing, strategy);
    problem.out_features = 0;
    check_routed(cpu(), problem, routing, strategy);
  }
}

TEST_CASE("routed_linear on the CPU: a wrong routing reads and writes operands only") {
  const std::string strategy = GENERATE("wide", "sequential");
  const Routing routing = routing_of_counts({20, 3, 17}, 8);
  RoutedLinearProblem problem = routed_problem(routing, 8, 6);
  problem.gathers = GENERATE(false, true), problem.scatters = GENERATE(false, true);
  problem.has_gates = true;
  PlacedRouted placed(cpu(), problem, routing, 1);
  const auto plan = make_routed_linear_plan(cpu().context(), problem, {.strategy = strategy});
  check_wrong_routings(cpu(), plan, placed, routing);
}

TEST_CASE("routed_linear on the CPU: a mixture of experts") {
  const std::string strategy = GENERATE("wide", "sequential");
  CHECK(mixture_error(cpu(), strategy, Dtype::fp32) < 1e-4);
  CHECK(mixture_error(cpu(), strategy, Dtype::bf16) < 0.2);
}

TEST_CASE("routed_linear: the automatic choice takes what is verified, and says why") {
  DeviceInfo device = kH200;
  RoutedLinearProblem problem{.num_members = 3, .num_rows = 9, .in_features = 8, .out_features = 8};
  problem.dtype = Dtype::bf16;
  const VerifiedStrategy both[] = {{"routed_linear", "simt", 90},
                                   {"routed_linear", "tensor_core", 90}};
  const VerifiedStrategy weights[] = {{"routed_linear", "weight_only", 90}};
  const auto choose = [&](std::span<const VerifiedStrategy> verified) {
    return choose_routed_linear_strategy(problem, device, verified);
  };
  using enum RoutedLinearStrategy;
  CHECK(choose({}).strategy == sequential);
  CHECK(choose({}).explain.find("unverified on compute capability 90") != std::string::npos);
  CHECK(choose(both).strategy == tensor_core);
  problem.dtype = Dtype::fp32;
  CHECK(choose(both).strategy == simt);
  problem.allow_tf32 = true;
  CHECK(choose(both).strategy == tensor_core);
  CHECK(routed_linear_unsupported_reason(wide, problem, device) != "");
  CHECK(routed_linear_unsupported_reason(weight_only, problem, device) ==
        "it is for quantised weights, these are packed");
  problem.weight_format = WeightFormat::int4;
  CHECK(routed_linear_unsupported_reason(simt, problem, device) ==
        "it reads packed weights, theirs is format int4; weight_only and sequential read quantised "
        "ones");
  CHECK(routed_linear_unsupported_reason(weight_only, problem, device) ==
        "it multiplies fp16 and bf16, dtype is fp32");
  problem.dtype = Dtype::fp16;
  CHECK(choose(both).strategy == sequential);
  CHECK(choose(weights).strategy == weight_only);
  problem.weight_format = WeightFormat::packed, problem.dtype = Dtype::fp32;
  device.compute_capability = 75;
  CHECK(routed_linear_unsupported_reason(sequential, problem, device).find("8.0") !=
        std::string::npos);
  device.compute_capability = 90;
  constexpr std::string_view kTooMany =
      "the outputs of any routing have more than 2^31 - 1 tiles of 64 rows by 64";
  problem.num_rows = std::numeric_limits<int32_t>::max();
  problem.num_members = 1 << 20, problem.out_features = 64 * 62;
  CHECK(routed_linear_unsupported_reason(simt, problem, device) == "");
  problem.out_features += 64;
  CHECK(routed_linear_unsupported_reason(simt, problem, device) == kTooMany);
  problem.num_rows = 1, problem.num_members = 1, problem.out_features = int64_t{1} << 34;
  CHECK(routed_linear_unsupported_reason(simt, problem, device) == kTooMany);
  problem.num_members = std::numeric_limits<int64_t>::max(), problem.out_features = 1;
  CHECK(routed_linear_unsupported_reason(simt, problem, device) == kTooMany);
}

TEST_CASE("routed_linear: wgmma where members have rows enough, on Hopper") {
  DeviceInfo device = kH200;
  RoutedLinearProblem given{
      .num_members = 8, .num_rows = 4096, .in_features = 2048, .out_features = 2048};
  given.dtype = Dtype::bf16;
  const VerifiedStrategy verified[] = {{"routed_linear", "tensor_core", 90},
                                       {"routed_linear", "wgmma", 90}};
  using enum RoutedLinearStrategy;
  const auto complete = [&] { return complete_routed_linear_problem(given); };
  const auto choose = [&] { return choose_routed_linear_strategy(complete(), device, verified); };
  CHECK(choose().strategy == wgmma);
  CHECK(choose().explain.find("on average 64 or more of each") != std::string::npos);
  given.num_rows = 8 * 64, given.out_features = 8192;
  CHECK(choose().strategy == wgmma);
  given.num_rows = 8 * 64 - 1;
  CHECK(choose().strategy == tensor_core);
  given.num_rows = 4096,
  given.out_features = 128;  // 36 tiles for 132 multiprocessors
  CHECK(choose().strategy == tensor_core);
  given.out_features = 2048, given.x_row_stride = 2052;
  CHECK(choose().strategy == tensor_core);
  const auto reason = [&] { return routed_linear_unsupported_reason(wgmma, complete(), device); };
  CHECK(reason() ==
        "x has row stride 2052, its rows are copied 16 bytes at a time: it needs a multiple of 8 "
        "elements; tensor_core takes any");
  given.x_row_stride = 0, given.weight.row = 2049;
  CHECK(reason().starts_with("weight has strides 2049 (row)"));
  given.weight = {}, given.dtype = Dtype::fp32;
  CHECK(reason() == "it multiplies fp16 and bf16, dtype is fp32");
  given.dtype = Dtype::fp16;
  CHECK(reason() == "");
  given.out_features = int64_t{1} << 32;
  CHECK(reason() == "coordinates of its tiles, and of what lies past the end, are 32 bits wide");
  given.out_features = int64_t{1} << 26, given.num_rows = int64_t{1} << 24;
  CHECK(reason() == "the outputs of any routing have more than 2^31 - 1 tiles of 64 rows by 64");
  given.out_features = 2048, device.compute_capability = 80;
  CHECK(reason().find("9.0 alone") != std::string::npos);
}

TEST_CASE("routed_linear: wgmma's tile is what takes least time on so many multiprocessors") {
  using enum kernels::LinearWgmmaTile;
  RoutedLinearProblem problem{
      .num_members = 8, .num_rows = 4096, .in_features = 2048, .out_features = 2048};
  problem.dtype = Dtype::bf16;
  const auto tile = [&] { return choose_routed_wgmma_tile(problem, kH200); };
  CHECK(tile() == m128n256);  // three rounds of 288 tiles, the other's 576 take five
  problem.num_rows = 512, problem.out_features = 1024;
  CHECK(tile() == m128n128);  // 64 tiles in one round, 32 of the other are one, too
  problem.num_rows = 16384;
  CHECK(tile() == m128n256);
  problem.out_features = 128;
  CHECK(tile() == m128n128);
}

TEST_CASE("routed_linear: weights come back bit for bit") {
  const RoutedLinearProblem problem = routed_problem(routing_of_counts({2, 3}), 5, 7);
  const auto plan = make_routed_linear_plan(cpu().context(), problem);
  const Context& context = cpu().context();
  Tensor weight(context, Dtype::fp32, {2, 7, 5}), bias(context, Dtype::fp32, {2, 7});
  std::vector<Tensor> own, restored;
  std::vector<LinearMember> members;
  std::vector<TensorView> weights, biases;
  for (uint64_t i = 0; i < 2; ++i) {
    own.push_back(upload(context, Dtype::fp32, {7, 5}, uniform(35, -1, 1, 2 * i)));
    own.push_back(upload(context, Dtype::fp32, {7}, uniform(7, -1, 1, 2 * i + 1)));
    restored.emplace_back(context, Dtype::fp32, Shape{7, 5});
    restored.emplace_back(context, Dtype::fp32, Shape{7});
  }
  for (size_t i = 0; i < 4; i += 2) {
    members.push_back({own[i].view(), own[i + 1].view()});
    weights.push_back(restored[i].view());
    biases.push_back(restored[i + 1].view());
  }
  plan.prepare_weights(members, weight, bias, Stream::cpu());
  CHECK(static_cast<const float*>(weight.data())[35] ==
        static_cast<const float*>(own[2].data())[0]);
  plan.restore_weights(weight, bias, weights, biases, Stream::cpu());
  for (size_t i = 0; i < 4; ++i) {
    CHECK(download(context, restored[i]) == download(context, own[i]));
  }
}

}  // namespace
}  // namespace wide::test
