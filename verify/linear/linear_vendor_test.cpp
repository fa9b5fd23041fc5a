// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's libraries are told of linear: every element's address as the library computes it
// against the address that the layout gives it, and which epilogue is left to which kernel.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "host/core/heuristic_policy.hpp"
#include "host/linear/linear_cublaslt.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "host/linear/linear_vendor.hpp"

namespace wide {
namespace {

using Catch::Matchers::ContainsSubstring;

LinearProblem problem_of(Dtype dtype, bool has_bias = false) {
  LinearProblem problem;
  problem.num_members = 3;
  problem.batch = 5;
  problem.in_features = 24;
  problem.out_features = 8;
  problem.dtype = dtype;
  if (is_fp8(dtype)) problem.y_dtype = Dtype::bf16;
  problem.epilogue.has_bias = has_bias;
  return complete_linear_problem(problem);
}

/// Packed, member-major, padded, shared, one row, one output, one member.
std::vector<LinearProblem> layouts() {
  std::vector<LinearProblem> list(7);
  for (LinearProblem& p : list) {
    p.num_members = 3, p.batch = 5, p.in_features = 7, p.out_features = 4;
  }
  list[1].x = {7, 35}, list[1].y = {4, 20};
  list[2].x = {40, 9}, list[2].weight = {11, 50}, list[2].y = {30, 6};
  list[3].shared_input = true;
  list[4].batch = 1;
  list[5].out_features = 1;
  list[6].num_members = 1;
  for (LinearProblem& p : list) p = complete_linear_problem(p);
  return list;
}

/// Of the element (row, column) of a member's column-major matrix.
int64_t address(const BlasMatrix& matrix, int64_t member, int64_t row, int64_t column) {
  REQUIRE((row < matrix.rows && column < matrix.columns && matrix.leading >= matrix.rows));
  return member * matrix.member + column * matrix.leading + row;
}

TEST_CASE("a library finds every element where it lies") {
  const bool to_sums = GENERATE(false, true);
  for (const LinearProblem& p : layouts()) {
    const RowStrides to = to_sums ? sums_strides(p) : p.y;
    const BlasProblem blas = blas_problem(p, to);
    for (int64_t i = 0; i < p.num_members; ++i) {
      for (int64_t k = 0; k < p.in_features; ++k) {
        for (int64_t m = 0; m < p.batch; ++m) {
          REQUIRE(address(blas.x, i, k, m) == i * p.x.member + m * p.x.row + k);
        }
        for (int64_t n = 0; n < p.out_features; ++n) {
          REQUIRE(address(blas.weight, i, k, n) == i * p.weight.member + n * p.weight.row + k);
        }
      }
      for (int64_t m = 0; m < p.batch; ++m) {
        for (int64_t n = 0; n < p.out_features; ++n) {
          REQUIRE(address(blas.y, i, n, m) == i * to.member + m * to.row + n);
        }
      }
    }
  }
}

TEST_CASE("sums of 16-bit outputs, and of outputs that may be the residual, go to the workspace") {
  CHECK_FALSE(needs_sums(problem_of(Dtype::fp32, true)));
  CHECK_FALSE(needs_sums(problem_of(Dtype::bf16)));
  CHECK(needs_sums(problem_of(Dtype::bf16, true)));
  LinearProblem scaled = problem_of(Dtype::fp16);
  scaled.epilogue.alpha = 2;
  CHECK(needs_sums(scaled));
  LinearProblem added = problem_of(Dtype::fp32);
  added.epilogue.residual = Residual::after_activation;
  CHECK(needs_sums(complete_linear_problem(added)));
}

TEST_CASE("cublaslt does the epilogue that it has") {
  using enum CublasLtEpilogue;
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const bool has_bias = GENERATE(false, true);
  const Activation activation = GENERATE(Activation::none, Activation::relu);
  LinearProblem p = problem_of(dtype, has_bias);
  p.epilogue.activation = activation;
  p.epilogue.alpha = 0.5f;
  p.epilogue.residual = GENERATE(Residual::none, Residual::before_activation);
  p.residual = p.epilogue.residual == Residual::none ? RowStrides{} : RowStrides{40, 9};
  p = complete_linear_problem(p);
  const CublasLtCall call = describe_cublaslt(p, true);
  const bool is_relu = activation == Activation::relu;
  CHECK(call.epilogue == (has_bias ? is_relu ? relu_bias : bias : is_relu ? relu : none));
  CHECK((call.alpha == 0.5f && !call.needs_kernel && !call.writes_sums));
  CHECK((call.dtype == dtype && call.to_dtype == dtype));
  CHECK(call.bias_member_stride == (has_bias ? 8 : 0));
  CHECK(call.adds_residual == (p.epilogue.residual != Residual::none));
  CHECK(call.residual == (call.adds_residual ? BlasMatrix{8, 5, 40, 9} : call.blas.y));
  CHECK(call.blas.y == BlasMatrix{8, 5, 24, 8});

  // The same in two steps: alpha and all the rest are the kernel's.
  const CublasLtCall apart = describe_cublaslt(p, false);
  CHECK((apart.epilogue == none && apart.alpha == 1 && !apart.adds_residual));
  CHECK(apart.needs_kernel);
  CHECK(apart.writes_sums == needs_sums(p));
  CHECK(apart.to_dtype == (apart.writes_sums ? Dtype::fp32 : dtype));
}

TEST_CASE("cublaslt leaves the rest to our kernel") {
  LinearProblem p = problem_of(Dtype::bf16, true);
  SECTION("gelu") {
    p.epilogue.activation = Activation::gelu;
  }
  SECTION("gelu by tanh") {
    p.epilogue.activation = Activation::gelu_tanh;
  }
  SECTION("silu") {
    p.epilogue.activation = Activation::silu;
  }
  SECTION("a scale") {
    p.epilogue.scale = OutputScale::per_member;
  }
  SECTION("a residual behind relu") {
    p.epilogue.activation = Activation::relu;
    p.epilogue.residual = Residual::after_activation;
  }
  SECTION("a residual whose rows overlap") {
    p.epilogue.residual = Residual::before_activation;
    p.residual = {2, 100};
  }
  const CublasLtCall call = describe_cublaslt(complete_linear_problem(p), true);
  CHECK(call.epilogue == CublasLtEpilogue::none);
  CHECK((call.needs_kernel && call.writes_sums && call.to_dtype == Dtype::fp32));
  CHECK(call.blas.y == BlasMatrix{8, 5, 24, 8});
}

TEST_CASE("cublaslt: a residual behind nothing, and tf32") {
  LinearProblem p = problem_of(Dtype::fp32);
  p.epilogue.residual = Residual::after_activation;
  p = complete_linear_problem(p);
  CHECK(describe_cublaslt(p, true).adds_residual);
  CHECK_FALSE(describe_cublaslt(p, true).is_tf32);
  p.allow_tf32 = true;
  CHECK(describe_cublaslt(p, true).is_tf32);
  p.dtype = Dtype::fp16;
  p.y_dtype = Dtype::fp16;
  CHECK_FALSE(describe_cublaslt(p, true).is_tf32);
}

TEST_CASE("the grouped call begins with the bias where it rounds, and is followed where not") {
  const CublasGroupedCall plain = describe_cublas_grouped(problem_of(Dtype::bf16));
  CHECK((!plain.begins_with_epilogue && !plain.needs_kernel && !plain.writes_sums));
  const CublasGroupedCall half = describe_cublas_grouped(problem_of(Dtype::bf16, true));
  CHECK((half.begins_with_epilogue && !half.needs_kernel && !half.writes_sums));
  LinearProblem fp32 = problem_of(Dtype::fp32, true);
  fp32.epilogue.alpha = 3;
  const CublasGroupedCall strict = describe_cublas_grouped(fp32);
  CHECK((!strict.begins_with_epilogue && strict.needs_kernel && strict.alpha == 1));
  fp32.dtype = Dtype::fp16, fp32.y_dtype = Dtype::fp16;
  CHECK(describe_cublas_grouped(fp32).alpha == 3);
  fp32.dtype = Dtype::fp32, fp32.y_dtype = Dtype::fp32;
  fp32.epilogue.residual = Residual::before_activation;
  const CublasGroupedCall added = describe_cublas_grouped(complete_linear_problem(fp32));
  CHECK((added.writes_sums && added.needs_kernel && !added.begins_with_epilogue));
}

TEST_CASE("what the grouped call cannot do") {
  CHECK(cublas_grouped_unsupported_reason(problem_of(Dtype::bf16, true)).empty());
  LinearProblem p = problem_of(Dtype::bf16, true);
  p.epilogue.activation = Activation::relu;
  CHECK_THAT(cublas_grouped_unsupported_reason(p), ContainsSubstring("rounded twice"));
  p.epilogue.activation = Activation::none;
  p.epilogue.residual = Residual::before_activation;  // with the bias: two addends
  CHECK_FALSE(cublas_grouped_unsupported_reason(p).empty());
  p.epilogue.has_bias = false;
  CHECK(cublas_grouped_unsupported_reason(p).empty());
  p.in_features = 23;
  p.x = p.weight = {};
  p = complete_linear_problem(p);
  CHECK_THAT(cublas_grouped_unsupported_reason(p), ContainsSubstring("multiples of 8 elements"));
  p.dtype = Dtype::fp32, p.y_dtype = Dtype::fp32;
  p.epilogue.activation = Activation::gelu;
  CHECK(cublas_grouped_unsupported_reason(p).empty());
  CHECK_FALSE(cublas_grouped_needs_alignment(p));
  p.allow_tf32 = true;
  CHECK_THAT(cublas_grouped_unsupported_reason(p), ContainsSubstring("multiples of 4 elements"));
}

TEST_CASE("cublaslt is the one call of a member where cuBLAS needs a kernel beside its own") {
  DeviceInfo device;
  device.device = {DeviceType::cuda, 0};
  device.compute_capability = 90;
  LinearProblem p{.num_members = 1, .batch = 4, .in_features = 64, .out_features = 64};
  p.dtype = Dtype::bf16;
  const auto is_one_call = [&] { return is_cublaslt_one_call(complete_linear_problem(p), device); };
  CHECK_FALSE(is_one_call());  // nor does cuBLAS need one
  p.epilogue.has_bias = true;
  CHECK(is_one_call());
  p.epilogue.activation = Activation::relu;
  CHECK(is_one_call());
  SECTION("an activation that it lacks") {
    p.epilogue.activation = Activation::silu;
  }
  SECTION("quantised weights") {
    p.weight_format = WeightFormat::int8;
    p.group_size = 64;
  }
  SECTION("the CPU") {
    device.device = {};
  }
  CHECK_FALSE(is_one_call());
}

TEST_CASE("cublaslt multiplies fp8 of whole 16 bytes, from 8.9 on") {
  DeviceInfo device;
  device.compute_capability = 90;
  LinearProblem p = problem_of(Dtype::fp8_e4m3, true);
  p.in_features = p.out_features = 32;
  p.y_dtype = Dtype::bf16;
  p.x = p.y = p.weight = {};
  p.bias_member_stride = 0;
  const auto reason = [&] {
    return cublaslt_unsupported_reason(complete_linear_problem(p), device);
  };
  CHECK(reason().empty());
  const CublasLtCall call = describe_cublaslt(complete_linear_problem(p), true);
  CHECK((call.dtype == Dtype::fp8_e4m3 && call.to_dtype == Dtype::bf16 && !call.writes_sums));
  CHECK(describe_cublaslt(complete_linear_problem(p), false).to_dtype == Dtype::fp32);
  SECTION("ragged features") {
    p.in_features = 24;
    CHECK_THAT(reason(), ContainsSubstring("multiples of 16 features, they are 24 and 32"));
  }
  SECTION("padded rows") {
    p.y = {100, 32};
    CHECK_THAT(reason(), ContainsSubstring("y has strides 100") && ContainsSubstring("of 8 el"));
  }
  SECTION("e5m2") {
    p.dtype = Dtype::fp8_e5m2;
    CHECK_THAT(reason(), ContainsSubstring("fp8_e5m2 on both sides"));
  }
  SECTION("an older device") {
    device.compute_capability = 80;
    CHECK_THAT(reason(), ContainsSubstring("8.9 on,  has 8.0"));
  }
}

TEST_CASE("policies of libraries' heuristics are places in their lists") {
  for (int i = 0; i < kMaxCublasLtCandidates; ++i) {
    CHECK(parse_heuristic_policy(heuristic_policy(i), kMaxCublasLtCandidates) == i);
  }
  for (const char* wrong :
       {"", "h", "h-1", "h64", "h100", "h01", "x1", "h1x", "1", "h 1", "h4294967296"}) {
    INFO(wrong);
    CHECK(parse_heuristic_policy(wrong, kMaxCublasLtCandidates) == -1);
  }
}

}  // namespace
}  // namespace wide
