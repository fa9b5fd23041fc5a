// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategies multiply quantised weights, and which of them "auto" is.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "verify/linear/linear_strategy_case.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/error.hpp"

namespace wide {
namespace {

using Catch::Matchers::ContainsSubstring, Catch::Matchers::Message;
using namespace test;

TEST_CASE("quantised weights are weight_only's, and packed ones are not") {
  using enum LinearStrategy;
  LinearProblem problem = problem_of(4, 16, 256, Dtype::bf16);
  CHECK(linear_unsupported_reason(weight_only, problem, kH200) ==
        "it is for quantised weights, these are packed");
  problem.weight_format = WeightFormat::int4;
  problem.group_size = 64;
  problem.weight = {};
  problem = complete_linear_problem(problem);
  CHECK(linear_member_bytes(problem) == 16 * 4 * (32 + 512));
  CHECK(problem.weight == RowStrides{34816, 34816});
  for (const LinearStrategy strategy : {weight_only, sequential}) {
    CHECK(linear_unsupported_reason(strategy, problem, kH200).empty());
    CHECK(linear_unsupported_reason(strategy, problem, kA100).empty());
    CHECK_THAT(linear_unsupported_reason(strategy, problem, kT4), ContainsSubstring("has 7.5"));
    CHECK(linear_workspace(strategy, problem, kH200).bytes() == 0);
    LinearProblem wrong = problem;
    wrong.dtype = Dtype::fp32;
    CHECK(linear_unsupported_reason(strategy, wrong, kH200) ==
          "it multiplies fp16 and bf16, dtype is fp32");
    LinearProblem many = problem;
    many.batch = 65;
    CHECK(linear_unsupported_reason(strategy, many, kH200).empty());
  }
  for (const LinearStrategy strategy :
       {cublas_batched, simt, gemv, small_m, tensor_core, wgmma, tf32x3, shared_input}) {
    CHECK(
        linear_unsupported_reason(strategy, problem, kH200) ==
        "it reads packed weights, theirs is format int4; weight_only, decoded and sequential read "
        "quantised ones");
  }
  for (const LinearStrategy strategy : {sequential, wide}) {
    CHECK(linear_unsupported_reason(strategy, problem, DeviceInfo{}).empty());
  }
  CHECK(chosen(problem, DeviceInfo{}, kNothingProved) == "wide");
  constexpr std::array proved{VerifiedStrategy{"linear", "weight_only", 90}};
  CHECK(chosen(problem, kH200, proved) == "weight_only");
  CHECK(choose_linear_strategy(problem, kH200, kNothingProved).explain ==
        "sequential: a launch per member of weight_only, which is unverified on compute capability "
        "90; no vendor's library can run it");
  problem.dtype = Dtype::fp32;
  CHECK_THROWS_MATCHES(
      choose_linear_strategy(problem, kH200, kNothingProved), Error,
      Message("linear: no strategy for \"auto\"; decoded, weight_only, sequential: it "
              "multiplies fp16 and bf16, dtype is fp32"));

  using enum kernels::LinearWeightOnlyTile;
  const auto tile = [](int64_t num_members, int64_t batch, int64_t d) {
    return choose_linear_weight_only_tile(problem_of(num_members, batch, d, Dtype::bf16));
  };
  for (const int64_t num_members : {1, 7, 1000}) {
    CHECK(tile(num_members, 16, 256) == m16n16);
    CHECK(tile(num_members, 1, 257) == m16n64);
    CHECK(tile(num_members, 17, 64) == m32n64);
    CHECK(tile(num_members, 33, 64) == m64n64);
  }
}

TEST_CASE("quantised weights are decoded once for many rows, where they may be rounded") {
  using enum LinearStrategy;
  LinearProblem problem = problem_of(8, 512, 2040, Dtype::bf16);
  CHECK(linear_unsupported_reason(decoded, problem, kH200) ==
        "it is for quantised weights, these are packed");
  problem.weight_format = WeightFormat::int4;
  problem.group_size = 128;
  problem.weight = {};
  problem = complete_linear_problem(problem);
  CHECK(linear_unsupported_reason(decoded, problem, kH200) ==
        "it rounds weights to bf16, which allow_rounded_weights does not allow");
  constexpr std::array proved{
      VerifiedStrategy{"linear", "weight_only", 90}, VerifiedStrategy{"linear", "decoded", 90},
      VerifiedStrategy{"linear", "weight_only", 80}, VerifiedStrategy{"linear", "decoded", 80}};
  CHECK(chosen(problem, kH200, proved) == "weight_only");
  problem.allow_rounded_weights = true;
  CHECK(chosen(problem, kH200, proved) == "decoded");
  CHECK(choose_linear_strategy(problem, kH200, proved).explain ==
        "decoded: many rows per member, quantised weights are decoded once and not for every 64");
  CHECK(chosen(problem, kH200, std::span(proved).first(1)) == "weight_only");
  CHECK(chosen(problem, kA100, proved) == "weight_only");  // has no wgmma
  CHECK(linear_unsupported_reason(decoded, problem, kA100).empty());
  CHECK(linear_unsupported_reason(decoded, problem, DeviceInfo{}) != "");
  LinearProblem few = problem;
  few.batch = 511;
  CHECK(chosen(few, kH200, proved) == "weight_only");
  LinearProblem wrong = problem;
  wrong.dtype = wrong.y_dtype.emplace(Dtype::fp32);
  CHECK(linear_unsupported_reason(decoded, wrong, kH200) ==
        "it multiplies fp16 and bf16, dtype is fp32");

  // Strips of 16 outputs and tiles of 64 inputs, as packed weights of 16 bits.
  const LinearProblem dense = as_decoded(problem);
  CHECK(dense.weight == RowStrides{2048, 2048 * 2048});
  CHECK(dense.weight_format == WeightFormat::packed);
  CHECK(linear_workspace(decoded, problem, kH200).bytes() == int64_t{8} * 2048 * 2048 * 2);
  CHECK(linear_kernel_of(decoded, problem, kH200) == wgmma);
  CHECK(linear_kernel_of(decoded, problem, kA100) == tensor_core);
  few.batch = 4;
  CHECK(linear_kernel_of(decoded, few, kH200) == gemv);
  // By a member's own problem, whatever the number of them.
  for (const int64_t num_members : {1, 7, 1000}) {
    LinearProblem other = problem;
    other.num_members = num_members;
    other.x = other.y = other.weight = {};
    CHECK(linear_kernel_of(decoded, complete_linear_problem(other), kH200) == wgmma);
  }
  LinearProblem vast = problem;
  vast.num_members = 1 << 10, vast.batch = 1;
  vast.in_features = int64_t{1} << 32, vast.out_features = 16;
  vast.x = vast.y = vast.weight = {};
  CHECK(linear_unsupported_reason(decoded, complete_linear_problem(vast), kH200) ==
        "decoding the weights takes more than 2^31 - 1 warps");
}

}  // namespace
}  // namespace wide
