// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy "auto" is on devices that are not at hand.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "host/core/hopper.hpp"
#include "host/linear/linear_policy.hpp"
#include "verify/linear/linear_strategy_case.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"

namespace wide {
namespace {

using Catch::Matchers::ContainsSubstring, Catch::Matchers::Message;
using namespace test;

constexpr std::array kProvedOnH200{VerifiedStrategy{"linear", "simt", 90}};

TEST_CASE("auto takes our kernel only where it is proved and small") {
  const LinearProblem small = problem_of(16, 16, 256);
  CHECK(chosen(small, kH200, kNothingProved) == "cublas_batched");
  CHECK(chosen(small, kH200, kProvedOnH200) == "simt");
  CHECK(chosen(small, kA100, kProvedOnH200) == "cublas_batched");
  CHECK(chosen(problem_of(16, 512, 256), kH200, kProvedOnH200) == "cublas_batched");
  CHECK(chosen(problem_of(16, 16, 4096), kH200, kProvedOnH200) == "cublas_batched");
}

TEST_CASE("auto leaves all but the smallest to tensor cores") {
  CHECK(chosen(problem_of(16, 16, 256, Dtype::bf16), kH200, kProvedOnH200) == "simt");
  CHECK(chosen(problem_of(16, 32, 256, Dtype::bf16), kH200, kProvedOnH200) == "cublas_batched");
  LinearProblem tf32 = problem_of(16, 32, 512);
  CHECK(chosen(tf32, kH200, kProvedOnH200) == "simt");
  tf32.allow_tf32 = true;
  CHECK(chosen(tf32, kH200, kProvedOnH200) == "cublas_batched");
}

TEST_CASE("auto does not batch what needs no batching") {
  CHECK(chosen(problem_of(1, 16, 256), kH200, kNothingProved) == "sequential");
  CHECK(chosen(problem_of(4, 8192, 8192, Dtype::bf16), kH200, kProvedOnH200) == "sequential");
  CHECK(chosen(problem_of(4, 1024, 1024, Dtype::bf16), kH200, kProvedOnH200) == "cublas_batched");
}

TEST_CASE("auto is wide on the CPU") {
  const DeviceInfo cpu;
  CHECK(chosen(problem_of(4, 16, 256), cpu, kProvedOnH200) == "wide");
}

TEST_CASE("auto explains itself in one line") {
  for (const DeviceInfo& device : {kH200, kA100, kT4, DeviceInfo{}}) {
    const LinearChoice choice =
        choose_linear_strategy(problem_of(4, 16, 256), device, kNothingProved);
    INFO(choice.explain);
    CHECK(choice.explain.starts_with(std::string(strategy_name(choice.strategy)) + ": "));
    CHECK(choice.explain.find('\n') == std::string::npos);
  }
  CHECK_THAT(choose_linear_strategy(problem_of(4, 16, 256), kH200, kNothingProved).explain,
             ContainsSubstring("simt: unverified on compute capability 90"));
}

TEST_CASE("strides that cuBLAS cannot take") {
  LinearProblem problem = problem_of(4, 16, 256);
  problem.x = {64, 4096};  // overlapping windows over one signal
  problem = complete_linear_problem(problem);
  const std::string reason =
      linear_unsupported_reason(LinearStrategy::cublas_batched, problem, kH200);
  CHECK(reason == "x has row stride 64, cuBLAS needs at least in_features = 256");
  CHECK(linear_unsupported_reason(LinearStrategy::sequential, problem, kH200) == reason);
  CHECK(linear_unsupported_reason(LinearStrategy::simt, problem, kH200).empty());
  CHECK(chosen(problem, kH200, kProvedOnH200) == "simt");
  problem.batch = 512;  // too large for simt to win, but the only one that can
  CHECK(chosen(problem, kH200, kProvedOnH200) == "simt");
  CHECK_THAT(
      test::message_of(ErrorCode::unsupported,
                       [&] { (void)choose_linear_strategy(problem, kH200, kNothingProved); }),
      ContainsSubstring("ask for an unverified one by name"));
  problem = problem_of(4, 16, 256);
  problem.weight.row = 0;
  CHECK_THAT(linear_unsupported_reason(LinearStrategy::sequential, problem, kH200),
             ContainsSubstring("weight has row stride 0"));
}

TEST_CASE("what a strategy needs of the device") {
  const LinearProblem problem = problem_of(4, 16, 256);
  CHECK_THAT(linear_unsupported_reason(LinearStrategy::simt, problem, kT4),
             ContainsSubstring("Tesla T4 has 7.5"));
  CHECK(linear_unsupported_reason(LinearStrategy::cublas_batched, problem, kT4).empty());
  CHECK_FALSE(linear_unsupported_reason(LinearStrategy::wide, problem, kH200).empty());
  CHECK_FALSE(linear_unsupported_reason(LinearStrategy::simt, problem, DeviceInfo{}).empty());
  CHECK_FALSE(
      linear_unsupported_reason(LinearStrategy::cublas_batched, problem, DeviceInfo{}).empty());
  LinearProblem huge = problem_of(int64_t{1} << 20, 16, 1);
  huge.out_features = 64 << 12;
  CHECK_THAT(linear_unsupported_reason(LinearStrategy::simt, huge, kH200),
             ContainsSubstring("2^31 - 1 tiles"));
  huge.num_members /= 4;
  CHECK(linear_unsupported_reason(LinearStrategy::simt, huge, kH200).empty());
}

TEST_CASE("auto takes tensor cores where they are proved and expected to win") {
  constexpr std::array proved{VerifiedStrategy{"linear", "small_m", 90},
                              VerifiedStrategy{"linear", "tensor_core", 90}};
  CHECK(chosen(problem_of(16, 16, 256, Dtype::bf16), kH200, proved) == "small_m");
  CHECK(chosen(problem_of(16, 32, 4096, Dtype::fp16), kH200, proved) == "small_m");
  // Two tiles of small_m would read the weights twice, but one member's 64 tiles of tensor_core
  // leave multiprocessors without work.
  CHECK(chosen(problem_of(16, 33, 4096, Dtype::fp16), kH200, proved) == "tensor_core");
  CHECK(chosen(problem_of(16, 64, 4096, Dtype::fp16), kH200, proved) == "tensor_core");
  CHECK(chosen(problem_of(2, 64, 4096, Dtype::fp16), kH200, proved) == "small_m");
  CHECK(chosen(problem_of(3, 64, 4096, Dtype::fp16), kH200, proved) == "tensor_core");
  constexpr std::array both{VerifiedStrategy{"linear", "simt", 90},
                            VerifiedStrategy{"linear", "wgmma", 90}};
  LinearProblem eight{.num_members = 3, .batch = 100, .in_features = 4096, .out_features = 4096};
  eight.dtype = Dtype::fp8_e4m3, eight.y_dtype = Dtype::bf16;
  CHECK(chosen(complete_linear_problem(eight), kH200, both) == "wgmma");
  CHECK(chosen(problem_of(16, 65, 256, Dtype::bf16), kH200, proved) == "tensor_core");
  CHECK(chosen(problem_of(16, 512, 1024, Dtype::bf16), kH200, proved) == "cublas_batched");
  CHECK(chosen(problem_of(16, 512, 1001, Dtype::bf16), kH200, proved) == "tensor_core");
  CHECK(chosen(problem_of(16, 16, 256), kH200, proved) == "cublas_batched");  // fp32 stays fp32
  LinearProblem tf32 = problem_of(16, 16, 256);
  tf32.allow_tf32 = true;
  CHECK(chosen(tf32, kH200, proved) == "small_m");
  CHECK(chosen(problem_of(16, 16, 256, Dtype::bf16), kA100, proved) == "cublas_batched");
}

TEST_CASE("what tensor cores multiply") {
  using enum LinearStrategy;
  LinearProblem fp32 = problem_of(4, 16, 256);
  const LinearProblem bf16 = problem_of(4, 16, 256, Dtype::bf16);
  for (const LinearStrategy strategy : {small_m, tensor_core}) {
    CHECK(linear_unsupported_reason(strategy, bf16, kA100).empty());
    CHECK_THAT(linear_unsupported_reason(strategy, fp32, kA100), ContainsSubstring("allow_tf32"));
  }
  CHECK(linear_unsupported_reason(tf32x3, fp32, kA100).empty());
  CHECK_THAT(linear_unsupported_reason(tf32x3, bf16, kA100), ContainsSubstring("dtype is bf16"));
  fp32.allow_tf32 = true;
  CHECK(linear_unsupported_reason(tensor_core, fp32, kA100).empty());
  CHECK(linear_math(tensor_core, fp32) == kernels::LinearMath::tf32);
  CHECK(linear_math(tf32x3, fp32) == kernels::LinearMath::tf32x3);
  CHECK(linear_math(small_m, bf16) == kernels::LinearMath::bf16);
  CHECK_THAT(linear_unsupported_reason(small_m, problem_of(4, 65, 256, Dtype::bf16), kH200),
             ContainsSubstring("at most 64 rows per member, batch is 65"));
  CHECK_THAT(linear_unsupported_reason(tensor_core, bf16, kT4), ContainsSubstring("7.5"));
  CHECK_THAT(linear_unsupported_reason(gemv, bf16, kH200),
             ContainsSubstring("at most 4 rows per member, batch is 16"));
  CHECK(linear_unsupported_reason(gemv, problem_of(4, 4, 257), kA100).empty());
  constexpr std::array proved{VerifiedStrategy{"linear", "gemv", 90},
                              VerifiedStrategy{"linear", "simt", 90}};
  CHECK(chosen(problem_of(16, 4, 4096), kH200, proved) == "gemv");
  CHECK(chosen(problem_of(16, 5, 256), kH200, proved) == "simt");
}

TEST_CASE("members of a shared input are one wider member") {
  using enum LinearStrategy;
  LinearProblem problem;
  problem.num_members = 5;
  problem.batch = 128;
  problem.in_features = 64;
  problem.out_features = 24;
  problem.dtype = Dtype::bf16;
  problem.epilogue.has_bias = true;
  CHECK_THAT(linear_unsupported_reason(shared_input, complete_linear_problem(problem), kH200),
             ContainsSubstring("inputs of their own"));
  problem.shared_input = true;
  problem = complete_linear_problem(problem);
  CHECK(linear_unsupported_reason(shared_input, problem, kH200).empty());
  const LinearProblem one = as_one_member(problem);
  CHECK((one.num_members == 1 && one.out_features == 120 && !one.shared_input));
  CHECK(linear_kernel_of(shared_input, problem, kH200) == wgmma);
  CHECK(linear_kernel_of(shared_input, problem, kA100) == tensor_core);
  CHECK(linear_kernel_of(wgmma, problem, kA100) == wgmma);
  const auto wide_layer = problem_of(16, 64, 4096, Dtype::bf16);
  CHECK(own_linear_kernel(wide_layer, kH200) == wgmma);
  CHECK(own_linear_kernel(wide_layer, kA100) == tensor_core);
  CHECK(own_linear_kernel(problem_of(16, 64, 256, Dtype::bf16), kH200) == small_m);
  CHECK(linear_kernel_of(sequential, wide_layer, kA100) == small_m);  // a member a launch
  constexpr std::array proved{VerifiedStrategy{"linear", "shared_input", 90}};
  CHECK(chosen(problem, kH200, proved) == "shared_input");
  problem.batch = 64;
  CHECK(linear_kernel_of(shared_input, problem, kH200) == small_m);
  for (const DeviceInfo& device : {kH200, kA100}) {  // neighbours change no member's bits
    LinearProblem shared;
    shared.batch = 64, shared.in_features = 4096, shared.out_features = 128;
    shared.dtype = Dtype::bf16, shared.shared_input = true;
    std::set<LinearStrategy> kernels, own;
    for (const int64_t n : {2, 3, 16, 64, 131, 132, 1000}) {
      shared.num_members = n;
      kernels.insert(linear_kernel_of(shared_input, complete_linear_problem(shared), device));
      LinearProblem layer = shared;
      layer.shared_input = false, layer.out_features = 1024;
      own.insert(own_linear_kernel(complete_linear_problem(layer), device));
    }
    CHECK((kernels.size() == 1 && own.size() == 1));
  }
  problem.batch = 4;
  CHECK(linear_kernel_of(shared_input, problem, kH200) == gemv);
  LinearProblem strict = problem;
  strict.dtype = Dtype::fp32;
  strict.batch = 16;
  CHECK(linear_kernel_of(shared_input, strict, kH200) == simt);
  problem.y.member += 1;  // no longer side by side: the members stay apart
  CHECK(as_one_member(problem) == problem);
  CHECK(linear_unsupported_reason(shared_input, problem, kH200).empty());
}

TEST_CASE("members that are launched one by one run by one kernel, wherever they lie") {
  using enum LinearStrategy;
  LinearProblem problem;
  problem.num_members = 2;
  problem.batch = 3;
  problem.in_features = 32;
  problem.out_features = 1;
  problem.dtype = Dtype::fp8_e4m3;
  problem.y_dtype = Dtype::bf16;
  CHECK(linear_kernel_of(sequential, complete_linear_problem(problem), kH200) == wgmma);
  // Member 1's x begins between two vectors, though all rows of x and of the weights are whole.
  problem.in_features = 24;
  problem.out_features = 2;
  problem.weight = {.row = 32, .member = 64};
  CHECK(linear_kernel_of(sequential, complete_linear_problem(problem), kH200) == simt);
}

TEST_CASE("a build without code for 9.0a, or another device, has no wgmma") {
  CHECK(wgmma_device_reason(kH200, true) == "");
  CHECK_THAT(wgmma_device_reason(kH200, false), ContainsSubstring("lacks 90a"));
  CHECK_THAT(wgmma_device_reason(kA100, true), ContainsSubstring("compute capability 9.0 alone"));
}

TEST_CASE("wgmma's coordinates are 32 bits wide, those behind the end too") {
  LinearProblem problem;
  problem.num_members = 1;
  problem.batch = 1;
  problem.in_features = 16;
  problem.dtype = Dtype::fp8_e4m3;
  problem.y_dtype = Dtype::bf16;
  problem.out_features = (int64_t{1} << 31) - 512;
  CHECK(linear_unsupported_reason(LinearStrategy::wgmma, complete_linear_problem(problem), kH200)
            .empty());
  problem.out_features = (int64_t{1} << 31) - 16;
  CHECK_THAT(
      linear_unsupported_reason(LinearStrategy::wgmma, complete_linear_problem(problem), kH200),
      ContainsSubstring("32 bits wide"));
  CHECK(linear_kernel_of(LinearStrategy::sequential, complete_linear_problem(problem), kH200) ==
        LinearStrategy::simt);
  problem.out_features = 16;
  problem.in_features = (int64_t{1} << 31) - 16;
  CHECK_FALSE(
      linear_unsupported_reason(LinearStrategy::wgmma, complete_linear_problem(problem), kH200)
          .empty());
}

TEST_CASE("wgmma needs Hopper, an element of tensor cores and strides of whole 16 bytes") {
  using enum LinearStrategy;
  const LinearProblem bf16 = problem_of(4, 128, 256, Dtype::bf16);
  CHECK(linear_unsupported_reason(wgmma, bf16, kH200).empty());
  CHECK_THAT(linear_unsupported_reason(wgmma, bf16, kA100), ContainsSubstring("NVIDIA A100 has 8"));
  CHECK_THAT(linear_unsupported_reason(wgmma, problem_of(4, 128, 256), kH200),
             ContainsSubstring("allow_tf32"));
  CHECK_THAT(linear_unsupported_reason(wgmma, problem_of(4, 128, 257, Dtype::bf16), kH200),
             ContainsSubstring("multiples of 8 elements") && ContainsSubstring("tensor_core"));
  LinearProblem odd = bf16;
  odd.weight.member += 4;
  CHECK_THAT(linear_unsupported_reason(wgmma, odd, kH200), ContainsSubstring("weight has strides"));
  // Strides that nobody takes may be anything.
  CHECK(linear_unsupported_reason(wgmma, problem_of(1, 1, 257, Dtype::bf16), kH200) != "");
  LinearProblem one = problem_of(1, 1, 257, Dtype::bf16);
  one.out_features = 1;
  CHECK(linear_unsupported_reason(wgmma, complete_linear_problem(one), kH200).empty());
}

TEST_CASE("auto takes wgmma for members of middling size, where it is proved") {
  constexpr std::array proved{VerifiedStrategy{"linear", "wgmma", 90},
                              VerifiedStrategy{"linear", "tensor_core", 90}};
  CHECK(chosen(problem_of(16, 512, 1024, Dtype::bf16), kH200, proved) == "wgmma");
  CHECK(chosen(problem_of(1, 512, 1024, Dtype::bf16), kH200, proved) == "sequential");
  CHECK(chosen(problem_of(16, 512, 257, Dtype::bf16), kH200, proved) == "tensor_core");
  CHECK(chosen(problem_of(16, 4096, 4096, Dtype::bf16), kH200, proved) == "cublas_batched");
  CHECK(chosen(problem_of(16, 512, 1024), kH200, proved) == "cublas_batched");
}

TEST_CASE("tiles of the tensor-core strategies") {
  using enum kernels::LinearMmaTile;
  const auto tile = [](LinearStrategy strategy, const LinearProblem& problem) {
    return choose_linear_mma_tile(strategy, problem, kH200);
  };
  for (const int64_t num_members : {1, 7, 1000}) {  // the divided k does not depend on members
    const auto small = [&](int64_t batch, int64_t d) {
      return tile(LinearStrategy::small_m, problem_of(num_members, batch, d, Dtype::bf16));
    };
    CHECK(small(4, 256) == m16n16);
    CHECK(small(16, 256) == m16n16);
    CHECK(small(8, 512) == m8n64);
    CHECK(small(9, 512) == m16n64);
    CHECK(small(17, 256) == m32n64);
    CHECK(small(64, 256) == m32n64);
  }
  const auto large = [&](int64_t num_members, int64_t batch, int64_t d, Dtype dtype) {
    return tile(LinearStrategy::tensor_core, problem_of(num_members, batch, d, dtype));
  };
  CHECK(large(64, 4096, 4096, Dtype::bf16) == m128n128);
  CHECK(large(64, 4096, 4096, Dtype::fp16) == m128n128);
  CHECK(large(4, 64, 64, Dtype::bf16) == m64n64);
  CHECK(tile_m(tile(LinearStrategy::tf32x3, problem_of(8, 4096, 4096))) == 128);
  CHECK(tile(LinearStrategy::tf32x3, problem_of(8, 4096, 4096)) != m128n128);
  CHECK(tile(LinearStrategy::tf32x3, problem_of(8, 16, 4096)) == m16n64);
}

TEST_CASE("k is divided by the member's problem alone") {
  using enum kernels::LinearMmaTile;
  const auto planes = [](int64_t num_members, int64_t in, int64_t out, kernels::LinearMmaTile tile,
                         Dtype dtype = Dtype::bf16) {
    LinearProblem problem = problem_of(num_members, 16, out, dtype);
    problem.in_features = in;
    return choose_linear_planes(problem, tile);
  };
  for (const int64_t num_members : {1, 7, 1000}) {
    CHECK(planes(num_members, 4096, 256, m16n16) == 2);
    CHECK(planes(num_members, 4096, 256, m16n16, Dtype::fp32) == 4);
    CHECK(planes(num_members, 16384, 256, m16n16) == 4);  // 64 blocks
    CHECK(planes(num_members, 65536, 16, m16n16) == 8);
    CHECK(planes(num_members, 4032, 256, m16n16) == 1);
    CHECK(planes(num_members, 16384, 4096, m16n64) == 1);
    CHECK(planes(num_members, 16384, 2048, m16n64) == 2);
    CHECK(planes(num_members, 65536, 16, m64n64) == 1);
    CHECK(planes(num_members, 0, 256, m16n16) == 1);
  }
  LinearProblem problem = problem_of(3, 16, 100, Dtype::bf16);
  problem.in_features = 8192;
  const auto bytes = [&](LinearStrategy strategy) {
    return linear_planes_bytes(problem, linear_tiles(strategy, problem, kH200, ""));
  };
  CHECK(bytes(LinearStrategy::small_m) == 4 * 16 * 3 * 100 * 4);
  CHECK(bytes(LinearStrategy::shared_input) == bytes(LinearStrategy::small_m));
  CHECK(bytes(LinearStrategy::simt) == 0);
  CHECK(bytes(LinearStrategy::wgmma) == 0);
  problem = problem_of(1, 5, 10, Dtype::fp16);
  problem.in_features = 8192;
  CHECK(bytes(LinearStrategy::small_m) == 1024);  // of 4 * 5 * 10 * 4, up to a multiple of 256
}

TEST_CASE("names are parsed per device") {
  CHECK(parse_linear_strategy("simt", DeviceType::cuda) == LinearStrategy::simt);
  CHECK_FALSE(parse_linear_strategy("simt", DeviceType::cpu).has_value());
  CHECK(parse_linear_strategy("sequential", DeviceType::cpu) == LinearStrategy::sequential);
  CHECK_FALSE(parse_linear_strategy("auto", DeviceType::cpu).has_value());
  for (const DeviceType device : {DeviceType::cpu, DeviceType::cuda}) {
    for (const std::string_view name : linear_strategy_names(device)) {
      const auto strategy = parse_linear_strategy(name, device);
      REQUIRE(strategy.has_value());
      CHECK(strategy_name(*strategy) == name);
    }
  }
}

TEST_CASE("the tile of simt: low ones where tall ones would leave multiprocessors without work") {
  using enum kernels::LinearSimtTile;
  const auto tile = [](int64_t num_members, int64_t batch, int64_t d) {
    return choose_linear_simt_tile(problem_of(num_members, batch, d), kH200);
  };
  for (const int64_t num_members : {1, 7, 1000}) {
    CHECK(tile(num_members, 16, 256) == m16n64);
    CHECK(tile(num_members, 33, 256) == m64n64);
    CHECK(tile(num_members, 512, 64) == m64n64);
    CHECK(tile(num_members, 128, 128) == m128n128);
  }
  CHECK(tile(32, 32, 256) == m16n64);  // 128 of m32n64 for 132 multiprocessors
  CHECK(tile(33, 32, 256) == m32n64);
  CHECK(tile(33, 17, 256) == m32n64);
  CHECK(tile(1, 32, 132 * 64) == m32n64);
  CHECK(tile(1, 32, 131 * 64) == m16n64);
}

TEST_CASE("what cuBLAS wants on each compute capability") {
  for (const int hopper_or_blackwell : {90, 100, 103}) {
    CHECK(cublas_workspace_bytes(hopper_or_blackwell) == 32 << 20);
  }
  for (const int workstation : {120, 121}) CHECK(cublas_workspace_bytes(workstation) == 12 << 20);
  for (const int other : {70, 80, 86, 89, 110}) CHECK(cublas_workspace_bytes(other) == 4 << 20);
}

TEST_CASE("workspace of the cuBLAS strategies") {
  const LinearProblem fp32 = problem_of(3, 5, 7), bf16 = problem_of(3, 5, 7, Dtype::bf16);
  LinearProblem plain = bf16;
  plain.epilogue = {};
  for (const LinearStrategy strategy :
       {LinearStrategy::sequential, LinearStrategy::cublas_batched}) {
    CHECK(linear_workspace(strategy, fp32, kH200).bytes() == 32 << 20);
    CHECK(linear_workspace(strategy, fp32, kA100).bytes() == 4 << 20);
    // fp32 sums of 3 * 5 * 7 outputs, up to a multiple of 256 bytes.
    CHECK(linear_workspace(strategy, bf16, kH200).bytes() == (32 << 20) + 512);
    CHECK(linear_workspace(strategy, plain, kH200).bytes() == 32 << 20);
    CHECK(linear_workspace(strategy, problem_of(3, 0, 7), kH200).bytes() == 0);
    CHECK(linear_workspace(strategy, fp32, DeviceInfo{}).bytes() == 0);
  }
  CHECK(linear_workspace(LinearStrategy::simt, bf16, kH200).bytes() == 0);
}

}  // namespace
}  // namespace wide
