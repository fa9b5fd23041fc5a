// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ragged_linear on CUDA: shapes and places of all kinds, exactly; what a member's bits depend on;
// how long the table lives. Skipped without a device. Sizes are small enough for a simulated one.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <memory>
#include <optional>
#include <random>

#include "verify/linear/ragged_linear_case.hpp"
#include "verify/support/captured_call_cuda.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {
namespace {

/// Every strategy with every dtype that it multiplies.
struct Way {
  std::string strategy;
  Dtype dtype;
};

Way any_way() {
  return GENERATE(Way{"simt", Dtype::fp32}, Way{"simt", Dtype::fp16}, Way{"simt", Dtype::bf16},
                  Way{"tensor_core", Dtype::fp32}, Way{"tensor_core", Dtype::fp16},
                  Way{"tensor_core", Dtype::bf16}, Way{"sequential", Dtype::fp32},
                  Way{"sequential", Dtype::bf16}, Way{"cublas_grouped", Dtype::fp32});
}

/// Skips what needs a cuBLAS that cannot start: simulated devices have none.
void require_way(const TestDevice& bench, const Way& way) {
  const bool calls_cublas = way.strategy == "sequential" || way.strategy == "cublas_grouped";
  if (!calls_cublas || bench.handles().cublas() != nullptr) return;
  SKIP("no cuBLAS: " << bench.handles().cublas_unavailable_reason());
}

RaggedLinearProblem of_way(RaggedLinearProblem problem, const Way& way) {
  problem.dtype = way.dtype;
  problem.allow_tf32 = way.dtype == Dtype::fp32 && way.strategy == "tensor_core";
  problem.epilogue.has_bias = true;
  return problem;
}

void check_way(TestDevice& bench, const RaggedLinearProblem& problem, const Way& way,
               int64_t misalign = 0) {
  INFO(way.strategy << ", " << dtype_name(way.dtype) << ", misaligned by " << misalign);
  check_ragged(bench, of_way(problem, way), way.strategy, misalign);
}

TEST_CASE("ragged_linear on CUDA: empty members among others, aligned and not") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  require_way(bench, way);
  for (const int64_t misalign : {0, 1}) check_way(bench, small_ragged_problem(), way, misalign);
}

TEST_CASE("ragged_linear on CUDA: both tiles, around their edges, rings that come round") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  require_way(bench, way);
  RaggedLinearProblem problem;
  problem.members = {ragged_member(16, 456, 64), ragged_member(17, 72, 65),
                     ragged_member(64, 320, 64), ragged_member(65, 129, 130),
                     ragged_member(32, 64, 8),   ragged_member(33, 31, 70),
                     ragged_member(130, 40, 129)};
  check_way(bench, problem, way);
}

TEST_CASE("ragged_linear on CUDA: one giant among many dwarfs") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  require_way(bench, way);
  RaggedLinearProblem problem;
  for (int i = 0; i < 40; ++i) problem.members.push_back(ragged_member(1 + i % 3, 8, 5));
  problem.members.insert(problem.members.begin() + 20, ragged_member(200, 264, 260));
  check_way(bench, problem, way);
}

TEST_CASE("ragged_linear on CUDA: nothing to compute") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "tensor_core", "sequential", "cublas_grouped");
  RaggedLinearProblem problem = small_ragged_problem(Dtype::bf16);
  for (RaggedLinearMember& member : problem.members) member.batch = 0;
  check_ragged(bench, problem, strategy);
}

TEST_CASE("ragged_linear on CUDA: places of the caller's own") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  require_way(bench, way);
  RaggedLinearProblem problem;
  problem.members = {ragged_member(6, 24, 10), ragged_member(6, 40, 3), ragged_member(6, 9, 20)};
  SECTION("plain concatenation") {
    int64_t x = 0, weight = 0, y = 0, bias = 0;
    for (RaggedLinearMember& m : problem.members) {
      m.x.offset = x, m.weight.offset = weight, m.y.offset = y, m.bias_offset = bias;
      x += m.batch * m.in_features, weight += m.out_features * m.in_features;
      y += m.batch * m.out_features, bias += m.out_features;
    }
  }
  SECTION("rows of all members side by side, and the same inputs for two") {
    int64_t column = 0;
    for (RaggedLinearMember& m : problem.members) {
      m.y = {column, 35};
      column += m.out_features;
    }
    problem.members[1].x = problem.members[0].x = {3, 50};
    problem.members[1].in_features = problem.members[0].in_features;
  }
  SECTION("padded rows, backwards") {
    int64_t x = 900, weight = 4000, y = 500, bias = 100;
    for (RaggedLinearMember& m : problem.members) {
      m.x = {x -= m.batch * (m.in_features + 8), m.in_features + 8};
      m.weight = {weight -= m.out_features * (m.in_features + 16), m.in_features + 16};
      m.y = {y -= m.batch * (m.out_features + 3), m.out_features + 3};
      m.bias_offset = bias -= m.out_features;
    }
  }
  // The two that share x must see one x: names say what a member holds.
  const RaggedLinearProblem whole = of_way(problem, way);
  const bool is_shared = whole.members[0].x == whole.members[1].x && whole.members[0].x.row > 0;
  const std::vector<int64_t> names =
      is_shared ? std::vector<int64_t>{4, 4, 1} : std::vector<int64_t>{};
  const RaggedLinearPlan plan =
      make_ragged_linear_plan(bench.context(), whole, {.strategy = way.strategy});
  for (const int64_t misalign : {0, 3}) {
    PlacedRagged placed(bench, whole, misalign, names);
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    placed.check();
  }
}

TEST_CASE("ragged_linear on CUDA: the whole epilogue") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  require_way(bench, way);
  RaggedLinearProblem problem = of_way(small_ragged_problem(), way);
  problem.epilogue.has_bias = GENERATE(true, false);
  problem.epilogue.scale = GENERATE(OutputScale::per_member, OutputScale::per_output);
  problem.epilogue.residual = GENERATE(Residual::before_activation, Residual::after_activation);
  problem.epilogue.activation = Activation::relu;
  problem.epilogue.alpha = 2;
  INFO(way.strategy << ", " << dtype_name(way.dtype) << ", "
                    << output_scale_name(problem.epilogue.scale) << ", "
                    << residual_name(problem.epilogue.residual));
  check_ragged(bench, problem, way.strategy);
  check_ragged(bench, problem, way.strategy, 1, true);
}

/// cuBLAS rounds 16 bits itself: its call adds to a y that holds the bias, or nothing.
TEST_CASE("ragged_linear on CUDA: cuBLAS's grouped call of 16 bits and of tf32") {
  TestDevice bench(require_cuda());
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const bool has_bias = GENERATE(true, false);
  require_way(bench, {"cublas_grouped", dtype});
  RaggedLinearProblem problem;
  problem.members = {ragged_member(5, 24, 8), ragged_member(5, 24, 8),  ragged_member(0, 8, 9),
                     ragged_member(17, 0, 8), ragged_member(3, 16, 0),  ragged_member(1, 40, 16),
                     ragged_member(5, 24, 8), ragged_member(70, 8, 72), ragged_member(1, 40, 16)};
  problem.dtype = dtype;
  problem.allow_tf32 = dtype == Dtype::fp32;
  problem.epilogue.has_bias = has_bias;
  problem.epilogue.alpha = 2;
  SECTION("members with zeros to be written among them") {}
  SECTION("products alone") {
    std::erase_if(problem.members, [](const auto& one) { return one.in_features == 0; });
  }
  SECTION("a residual in the bias's place") {
    problem.epilogue.has_bias = false;
    problem.epilogue.residual = Residual::before_activation;
  }
  const auto plan = make_ragged_linear_plan(bench.context(), problem, {"cublas_grouped"});
  CHECK(plan.explain() ==
        "cublas_grouped: asked for by name; sequential where storages are not aligned to 16 bytes");
  for (const int64_t misalign : {0, 1}) {  // where storages are unaligned, member after member
    for (const bool is_in_place : {false, true}) {
      check_ragged(bench, problem, "cublas_grouped", misalign, is_in_place);
    }
  }
}

TEST_CASE("ragged_linear on CUDA: random shapes and places, exactly") {
  TestDevice bench(require_cuda());
  std::mt19937_64 random(5);
  const auto between = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  const int cases = wants_small_cases() ? 40 : 200;
  for (int i = 0; i < cases; ++i) {
    const Way way = std::vector<Way>{{"simt", Dtype::fp32},
                                     {"simt", Dtype::fp16},
                                     {"tensor_core", Dtype::fp32},
                                     {"tensor_core", Dtype::bf16},
                                     {"tensor_core", Dtype::fp16}}[random() % 5];
    RaggedLinearProblem problem;
    int64_t bias = 0;
    for (int64_t m = between(1, 9); m > 0; --m) {
      const int64_t step = between(0, 1) == 0 ? 1 : 8;
      RaggedLinearMember member =
          ragged_member(between(0, between(1, 90)), between(0, between(1, 300) / step) * step,
                        between(0, between(1, 150) / step) * step);
      if (between(0, 2) == 0) {
        member.x.row = member.in_features + between(0, 9);
        member.weight.row = member.in_features + between(0, 9);
        member.y.row = member.out_features + between(0, 9);
      }
      member.bias_offset = bias;
      bias += member.out_features + between(0, 3);
      problem.members.push_back(member);
    }
    INFO("case " << i);
    check_way(bench, problem, way, between(0, 3) == 0 ? 1 : 0);
  }
}

/// A member's outputs out of a storage that was read back.
std::vector<std::byte> of_member(const RaggedLinearProblem& problem,
                                 const std::vector<std::byte>& storage, size_t index) {
  const RaggedLinearMember& member = problem.members[index];
  const int64_t size = dtype_bytes(problem.dtype);
  const auto at = storage.begin() + member.y.offset * size;
  return {at, at + member.batch * member.out_features * size};
}

TEST_CASE("ragged_linear on CUDA: a member's bits are its own, whoever is beside it") {
  TestDevice bench(require_cuda());
  const Way way = any_way();
  require_way(bench, way);
  if (way.strategy == "cublas_grouped")
    return;  // what its groups have in common is cuBLAS's choice
  RaggedLinearProblem problem = of_way(small_ragged_problem(), way);
  problem.epilogue.activation = Activation::gelu;
  problem.epilogue.alpha = 0.1f;
  const auto run = [&](const std::vector<int64_t>& order) {
    RaggedLinearProblem permuted = problem;
    permuted.members.clear();
    for (const int64_t i : order) {
      permuted.members.push_back(problem.members[static_cast<size_t>(i)]);
    }
    permuted = lay_out_ragged_linear(permuted);
    const auto plan =
        make_ragged_linear_plan(bench.context(), permuted, {.strategy = way.strategy});
    PlacedRagged placed(bench, permuted, 0, order);
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    const std::vector<std::byte> all = placed.outputs();
    std::vector<std::vector<std::byte>> outputs;
    for (size_t i = 0; i < order.size(); ++i) outputs.push_back(of_member(permuted, all, i));
    return outputs;
  };
  const auto straight = run({0, 1, 2, 3, 4, 5}), turned = run({5, 3, 0, 4, 2, 1});
  const size_t at[] = {5, 3, 0, 4, 2, 1};
  for (size_t i = 0; i < 6; ++i) {
    INFO("member " << at[i]);
    CHECK(turned[i] == straight[at[i]]);
    CHECK(run({static_cast<int64_t>(at[i])})[0] == straight[at[i]]);
  }
}

/// Counts what it holds.
class CountingAllocator final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    void* data = nullptr;
    if (cudaMalloc(&data, static_cast<size_t>(bytes)) != cudaSuccess) {
      throw Error(ErrorCode::out_of_memory, "the test's allocator");
    }
    ++live;
    return data;
  }
  void deallocate(void* data, int64_t) noexcept override {
    (void)cudaFree(data);
    --live;
  }
  int live = 0;
};

TEST_CASE("ragged_linear on CUDA: the table lives as long as the last copy of its plan") {
  TestDevice bench(require_cuda());
  const auto allocator = std::make_shared<CountingAllocator>();
  std::optional<Context> context = Context::cuda(0, {.allocator = allocator});
  const RaggedLinearProblem problem = small_ragged_problem();
  PlacedRagged placed(bench, problem);
  const auto run = [&](const RaggedLinearPlan& plan) {
    placed.poison();
    plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
    placed.check();
  };
  std::optional<RaggedLinearPlan> plan =
      make_ragged_linear_plan(*context, problem, {.strategy = "simt"});
  CHECK(allocator->live == 1);
  run(*plan);
  std::optional<RaggedLinearPlan> copied = plan;
  RaggedLinearPlan moved = std::move(*plan);
  plan.reset();
  CHECK(allocator->live == 1);
  context.reset();
  run(moved);
  run(*copied);
  moved = make_ragged_linear_plan(bench.context(), problem, {.strategy = "simt"});
  CHECK(allocator->live == 1);
  run(moved);
  copied.reset();
  CHECK(allocator->live == 0);
}

TEST_CASE("ragged_linear on CUDA: a captured graph replays the call") {
  TestDevice bench(require_cuda());
  const std::string strategy = GENERATE("simt", "tensor_core", "cublas_grouped");
  const bool is_grouped = strategy == "cublas_grouped";
  require_way(bench, {strategy, Dtype::fp32});
  const RaggedLinearProblem problem = small_ragged_problem(is_grouped ? Dtype::fp32 : Dtype::bf16);
  const auto plan = make_ragged_linear_plan(bench.context(), problem, {.strategy = strategy});
  PlacedRagged placed(bench, problem);
  CapturedCall call(bench.stream(),
                    [&] { plan.run(placed.arguments(), bench.execution(plan.workspace_bytes())); });
  if (!is_grouped) CHECK(call.num_nodes() == 1);  // one launch, and nothing uploaded
  for (int i = 0; i < 2; ++i) {
    placed.poison();
    call.launch();
    placed.check();
  }
}

}  // namespace
}  // namespace wide::test
