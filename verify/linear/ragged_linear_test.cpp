// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ragged_linear: a case worked out by hand, places, the kernels' table, weights, and the CPU's
// strategies on the shapes that the CUDA ones are tested with.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <set>

#include "host/linear/ragged_linear_grouped.hpp"
#include "host/linear/ragged_linear_strategy.hpp"
#include "verify/linear/ragged_linear_case.hpp"
#include "verify/support/known_devices.hpp"

namespace wide::test {
namespace {

TestDevice& cpu() {
  static TestDevice device(Context::cpu({.num_threads = 2, .allocator = {}}));
  return device;
}

ConstTensorView view(const std::vector<float>& values) {
  return ConstTensorView(values.data(), Dtype::fp32, {static_cast<int64_t>(values.size())},
                         Device{});
}

TEST_CASE("ragged_linear: two members worked out by hand") {
  // [1, 2] -> 2 outputs, and two rows of 1 -> 1 output, which begins at the next 16 bytes.
  RaggedLinearProblem problem;
  problem.members = {ragged_member(1, 2, 2), ragged_member(2, 1, 1)};
  problem.epilogue = {.has_bias = true, .activation = Activation::relu};
  const std::vector<float> x{1, 2, 0, 0, 3, -4}, weight{1, 1, -1, -2, 5}, bias{10, 1, 0, 0, 2};
  std::vector<float> y(6, -7);
  const auto plan = make_ragged_linear_plan(cpu().context(), problem);
  CHECK(plan.strategy() == "wide");
  CHECK(plan.workspace_bytes() == 0);
  plan.run({.x = view(x),
            .weight = view(weight),
            .bias = view(bias),
            .y = TensorView(y.data(), Dtype::fp32, {6}, Device{})},
           {Stream::cpu()});
  CHECK(y == std::vector<float>{13, 0, -7, -7, 17, 0});
}

TEST_CASE("ragged_linear: members lie one behind the other from 16 bytes to 16 bytes") {
  RaggedLinearProblem problem;
  problem.members = {ragged_member(3, 5, 7), ragged_member(0, 9, 2), ragged_member(2, 4, 1)};
  problem.members[2].y = {40, 3};
  problem.dtype = Dtype::bf16;
  problem.epilogue = {.has_bias = true, .scale = OutputScale::per_member};
  const RaggedLinearProblem laid_out = lay_out_ragged_linear(problem);
  const auto& m = laid_out.members;
  CHECK((m[0].x == RaggedRows{0, 5} && m[1].x == RaggedRows{16, 9} && m[2].x == RaggedRows{16, 4}));
  CHECK((m[0].weight.offset == 0 && m[1].weight.offset == 40 && m[2].weight.offset == 64));
  CHECK((m[0].bias_offset == 0 && m[1].bias_offset == 8 && m[2].bias_offset == 16));
  CHECK((m[0].y == RaggedRows{0, 7} && m[1].y == RaggedRows{24, 2} && m[2].y == RaggedRows{40, 3}));
  CHECK(lay_out_ragged_linear(laid_out) == laid_out);
  const RaggedLinearExtents extents = ragged_linear_extents(problem);
  CHECK((extents.x == 24 && extents.weight == 68 && extents.bias == 17 && extents.y == 44));
  CHECK((extents.scale == 3 && extents.residual == 0));
  problem.epilogue = {.scale = OutputScale::per_output, .residual = Residual::after_activation};
  const RaggedLinearExtents others = ragged_linear_extents(problem);
  CHECK((others.bias == 0 && others.scale == 17 && others.residual == 44));
}

TEST_CASE("ragged_linear: y of one layer lies as x of the next") {
  RaggedLinearProblem first, second;
  for (const int64_t size : {3, 17, 8}) {
    first.members.push_back(ragged_member(size + 1, 10, size));
    second.members.push_back(ragged_member(size + 1, size, 4));
  }
  const auto y = lay_out_ragged_linear(first), x = lay_out_ragged_linear(second);
  for (size_t i = 0; i < 3; ++i) CHECK(y.members[i].y == x.members[i].x);
}

TEST_CASE("ragged_linear: the table has every tile once, the longest first") {
  using enum RaggedLinearStrategy;
  const auto strategy = GENERATE(simt, tensor_core);
  RaggedLinearProblem problem = small_ragged_problem();
  problem.members.push_back(ragged_member(130, 500, 200));
  problem.members.push_back(ragged_member(2, 2000, 64));
  problem = lay_out_ragged_linear(problem);
  const RaggedLinearTable table = make_ragged_linear_table(strategy, problem);
  REQUIRE(table.members.size() == problem.members.size());
  std::vector<std::set<std::pair<int64_t, int64_t>>> corners(problem.members.size());
  int64_t last = std::numeric_limits<int64_t>::max();
  for (const kernels::RaggedTile& tile : table.tiles) {
    const RaggedLinearMember& member = problem.members.at(tile.member);
    const int64_t most_short = strategy == simt ? 32 : 16;
    CHECK(tile.rows == (member.batch <= most_short ? 16 : 64));
    const int64_t first_m = int64_t{tile.m} * tile.rows, first_n = int64_t{tile.n} * 64;
    CHECK((first_m < member.batch && first_n < member.out_features));
    CHECK(corners[tile.member].emplace(first_m, first_n).second);
    const int64_t reads = member.in_features * (tile.rows + 64);
    CHECK(reads <= last);
    last = reads;
  }
  for (size_t i = 0; i < corners.size(); ++i) {
    const RaggedLinearMember& member = problem.members[i];
    if (corners[i].empty()) {
      CHECK((member.batch == 0 || member.out_features == 0));
      continue;
    }
    const auto rows = static_cast<int64_t>(
        std::find_if(table.tiles.begin(), table.tiles.end(), [&](const auto& tile) {
          return tile.member == i;
        })->rows);
    const int64_t tiles_m = (member.batch + rows - 1) / rows;
    CHECK(static_cast<int64_t>(corners[i].size()) == tiles_m * ((member.out_features + 63) / 64));
  }
}

TEST_CASE("ragged_linear: the table knows who may be moved 16 bytes at a time") {
  RaggedLinearProblem problem;
  problem.members = {ragged_member(2, 16, 8), ragged_member(2, 12, 8), ragged_member(1, 12, 6)};
  problem.members[0].y.offset = 4, problem.members[1].y.offset = 21;
  problem.members[2].bias_offset = 18;
  problem.dtype = Dtype::bf16;
  const auto table =
      make_ragged_linear_table(RaggedLinearStrategy::tensor_core, lay_out_ragged_linear(problem));
  const auto& m = table.members;
  CHECK((m[0].x_is_aligned && m[0].weight_is_aligned && m[0].y_is_aligned));
  CHECK((!m[1].x_is_aligned && !m[1].weight_is_aligned && !m[1].y_is_aligned));
  // One row steps nowhere.
  CHECK((m[2].x_is_aligned && !m[2].weight_is_aligned && m[2].y_is_aligned));
  CHECK((m[0].epilogue_is_aligned && !m[1].epilogue_is_aligned && !m[2].epilogue_is_aligned));
}

TEST_CASE("ragged_linear: cuBLAS is given a group for neighbours of one shape") {
  RaggedLinearProblem problem;
  problem.members = {ragged_member(5, 24, 8), ragged_member(5, 24, 8), ragged_member(0, 8, 9),
                     ragged_member(5, 24, 8), ragged_member(7, 16, 8), ragged_member(1, 16, 8)};
  problem.members[4].x.row = 32;
  problem.epilogue.alpha = 3;
  problem.dtype = Dtype::bf16;
  RaggedLinearProblem laid_out = lay_out_ragged_linear(problem);
  const RaggedGroupedCall call = describe_ragged_grouped(laid_out);
  using All = std::vector<int64_t>;
  CHECK(call.sizes == All{3, 1, 1});  // the empty one between them is none
  CHECK((call.out == All{8, 8, 8} && call.batch == All{5, 7, 1} && call.in == All{24, 16, 16}));
  CHECK((call.x_row == All{24, 32, 16} && call.weight_row == All{24, 16, 16}));
  CHECK(call.y_row == All{8, 8, 8});
  CHECK((call.num_products == 5 && call.alphas == std::vector<float>(3, 3.0f)));
  CHECK((call.betas == std::vector<float>(3, 0.0f) && !call.begins_with_epilogue));
  CHECK((!call.needs_kernel && !call.writes_sums));
  const auto table = make_ragged_linear_table(RaggedLinearStrategy::cublas_grouped, laid_out);
  const int32_t products[] = {0, 1, -1, 2, 3, 4};
  for (size_t i = 0; i < 6; ++i) CHECK(table.members[i].product == products[i]);

  SECTION("which adds to a bias, or to the zeros of a member without inputs") {
    laid_out.epilogue.has_bias = GENERATE(true, false);
    if (!laid_out.epilogue.has_bias) laid_out.members[5].in_features = 0;
    const RaggedGroupedCall begun = describe_ragged_grouped(laid_out);
    CHECK((begun.begins_with_epilogue && begun.betas.front() == 1 && !begun.needs_kernel));
  }
  SECTION("whose sums are finished where they are fp32") {
    problem.dtype = Dtype::fp32;
    problem.epilogue.activation = Activation::gelu;
    const RaggedGroupedCall plain = describe_ragged_grouped(lay_out_ragged_linear(problem));
    CHECK((plain.needs_kernel && !plain.writes_sums && plain.alphas.front() == 1));
    problem.epilogue.residual = Residual::after_activation;
    const auto with_residual = lay_out_ragged_linear(problem);
    CHECK(describe_ragged_grouped(with_residual).writes_sums);
    const LinearWorkspace workspace = ragged_grouped_workspace(with_residual, kH200);
    CHECK(workspace.sums_bytes >= 4 * ragged_linear_extents(with_residual).y);
    CHECK((workspace.pointers_bytes == 256 && workspace.cublas_bytes == 32 << 20));
  }
}

TEST_CASE("ragged_linear: what cuBLAS's grouped call cannot do") {
  RaggedLinearProblem problem;
  problem.members = {ragged_member(5, 24, 8), ragged_member(5, 24, 8)};
  problem.dtype = Dtype::bf16;
  const auto reason = [&](auto change) {
    RaggedLinearProblem changed = problem;
    change(changed);
    return ragged_linear_unsupported_reason(RaggedLinearStrategy::cublas_grouped,
                                            lay_out_ragged_linear(changed), kH200);
  };
  using P = RaggedLinearProblem;
  CHECK(reason([](P&) {}) == "");
  CHECK(reason([](P& p) { p.members[1].x.offset = 124; }) ==
        "member 1: x has offset 124, the call needs multiples of 8 elements");
  CHECK(reason([](P& p) { p.members[1].y.row = 9; }) ==
        "member 1: y has strides 9 (row) and 8 (member), the call needs multiples of 8 elements");
  CHECK(reason([](P& p) { p.dtype = Dtype::fp32, p.members[1].x.offset = 123; }) == "");
  CHECK(reason([](P& p) { p.epilogue.activation = Activation::relu; }).find("rounded twice") !=
        std::string::npos);
}

TEST_CASE("ragged_linear: the automatic choice takes what is verified, and says why") {
  DeviceInfo device = kH200;
  RaggedLinearProblem problem = lay_out_ragged_linear(small_ragged_problem(Dtype::bf16));
  const VerifiedStrategy both[] = {{"ragged_linear", "simt", 90},
                                   {"ragged_linear", "tensor_core", 90}};
  const auto choose = [&](std::span<const VerifiedStrategy> verified) {
    return choose_ragged_linear_strategy(problem, device, verified);
  };
  using enum RaggedLinearStrategy;
  CHECK(choose({}).strategy == sequential);
  CHECK(choose({}).explain.find("tensor_core, simt: unverified on compute capability 90") !=
        std::string::npos);
  CHECK(choose(both).strategy == tensor_core);
  problem.dtype = Dtype::fp32;
  CHECK(choose(both).strategy == simt);
  problem.allow_tf32 = true;
  CHECK(choose(both).strategy == tensor_core);
  problem.members = {ragged_member(4096, 4096, 4096), ragged_member(1, 1, 1)};
  problem = lay_out_ragged_linear(problem);
  CHECK(choose(both).strategy == sequential);  // where a launch is nothing beside the products
  problem.members.resize(1);
  CHECK(choose(both).strategy == sequential);
  problem.members[0].x.row = 7;  // cuBLAS takes no rows that overlap
  CHECK(choose(both).strategy == tensor_core);
  CHECK_THROWS_AS(choose({}), Error);
  device.compute_capability = 75;
  CHECK(ragged_linear_unsupported_reason(simt, problem, device).find("8.0") != std::string::npos);
  problem.members[0].batch = int64_t{1} << 40;
  device.compute_capability = 90;
  CHECK(ragged_linear_unsupported_reason(simt, problem, device) ==
        "the outputs have more than 2^26 tiles");
  problem.members = {ragged_member(4, 4, 4), ragged_member(1, int64_t{1} << 31, 1)};
  problem = lay_out_ragged_linear(problem);
  CHECK(ragged_linear_unsupported_reason(simt, problem, device) ==
        "member 1 has a size or row stride of 2147483648, the kernels take up to 2^31 - 1");
}

TEST_CASE("ragged_linear on the CPU: both strategies, exactly, in every dtype") {
  const std::string strategy = GENERATE("wide", "sequential");
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  RaggedLinearProblem problem = small_ragged_problem(dtype);
  for (const int64_t misalign : {0, 1}) check_ragged(cpu(), problem, strategy, misalign);
  problem.epilogue = {.has_bias = true,
                      .activation = Activation::relu,
                      .scale = OutputScale::per_output,
                      .residual = Residual::before_activation,
                      .alpha = 2};
  check_ragged(cpu(), problem, strategy);
  check_ragged(cpu(), problem, strategy, 0, true);
  problem.epilogue.scale = OutputScale::per_member;
  problem.members[0].y.row = 11, problem.members[5].x.row = problem.members[5].weight.row = 40;
  check_ragged(cpu(), problem, strategy);
  for (RaggedLinearMember& member : problem.members) member.out_features = 0;
  check_ragged(cpu(), problem, strategy);
}

TEST_CASE("ragged_linear: weights come back bit for bit, and gaps stay") {
  RaggedLinearProblem problem = small_ragged_problem();
  problem.members[0].weight.row = 21;
  const auto plan = make_ragged_linear_plan(cpu().context(), problem);
  const RaggedLinearExtents extents = ragged_linear_extents(plan.problem());
  std::vector<float> weight(static_cast<size_t>(extents.weight), -1),
      bias(static_cast<size_t>(extents.bias), -1);
  const TensorView weights(weight.data(), Dtype::fp32, {extents.weight}, Device{});
  const TensorView biases(bias.data(), Dtype::fp32, {extents.bias}, Device{});
  std::vector<Tensor> parameters, restored;
  std::vector<LinearMember> members;
  std::vector<TensorView> restored_weights, restored_biases;
  float next = 1;
  for (const RaggedLinearMember& member : problem.members) {
    for (const Shape& shape :
         {Shape{member.out_features, member.in_features}, Shape{member.out_features}}) {
      Tensor& made = parameters.emplace_back(cpu().context(), Dtype::fp32, shape);
      for (int64_t i = 0; i < made.num_elements(); ++i) {
        static_cast<float*>(made.data())[i] = next++;
      }
      restored.emplace_back(cpu().context(), Dtype::fp32, shape);
    }
    members.push_back({parameters.end()[-2], parameters.end()[-1]});
    restored_weights.push_back(restored.end()[-2]);
    restored_biases.push_back(restored.end()[-1]);
  }
  plan.prepare_weights(members, weights, biases, Stream::cpu());
  // [7, 19] with rows of 21.
  CHECK((weight[0] == 1 && weight[18] == 19 && weight[19] == -1 && weight[20] == -1));
  CHECK(weight[21] == 20);
  plan.restore_weights(weights, biases, restored_weights, restored_biases, Stream::cpu());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto bytes = static_cast<size_t>(parameters[i].bytes());
    CHECK((bytes == 0 || std::memcmp(parameters[i].data(), restored[i].data(), bytes) == 0));
  }
}

}  // namespace
}  // namespace wide::test
