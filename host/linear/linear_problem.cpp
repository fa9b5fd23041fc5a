// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks and completes problems. Offsets are computed with overflow checks once here, so that the
// kernels need none.
#include "host/linear/linear_problem.hpp"

#include <cmath>
#include <string>

#include "host/core/extent.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"
#include "host/linear/linear_weight.hpp"

namespace wide {

namespace {

/// Elements from the first to the end of the last, in bytes, must fit in 64 bits.
void require_extent(const char* field, const LinearProblem& problem, int64_t rows, int64_t members,
                    int64_t features, const RowStrides& strides) {
  const SteppedAxis axes[] = {{strides.row, rows}, {strides.member, members}};
  WIDE_REQUIRE(extent_fits(axes, features, dtype_bytes(problem.dtype)),
               "linear: " + std::string(field) + " of [" + text(rows) + ", " + text(members) +
                   ", " + text(features) + "] with strides " + text(strides) +
                   ", expected an extent that fits in 64 bits");
}

/// Rows inside members or members inside rows, each past the end of the previous one.
bool is_injective(int64_t rows, int64_t members, int64_t features, const RowStrides& strides) {
  const auto nests = [&](int64_t inner, int64_t inner_stride, int64_t outer, int64_t outer_stride) {
    const int64_t inner_span = (inner - 1) * inner_stride + features;
    return (inner <= 1 || inner_stride >= features) && (outer <= 1 || outer_stride >= inner_span);
  };
  return nests(members, strides.member, rows, strides.row) ||
         nests(rows, strides.row, members, strides.member);
}

bool is_16_bits(Dtype dtype) {
  return dtype == Dtype::fp16 || dtype == Dtype::bf16;
}

void check_dtypes(const LinearProblem& problem) {
  const Dtype dtype = problem.dtype, y_dtype = problem.y_dtype.value_or(dtype);
  WIDE_REQUIRE(
      dtype == Dtype::fp32 || is_16_bits(dtype) || is_fp8(dtype),
      "linear: dtype is " + text(dtype) + ", expected fp32, fp16, bf16, fp8_e4m3 or fp8_e5m2");
  WIDE_REQUIRE(is_fp8(dtype) ? is_16_bits(y_dtype) : y_dtype == dtype,
               "linear: y_dtype is " + text(y_dtype) + ", expected " +
                   (is_fp8(dtype) ? "fp16 or bf16 for x of fp8" : "x's = " + text(dtype)));
}

void check_sizes(const LinearProblem& problem) {
  require_at_least("linear", "num_members", problem.num_members, 1);
  require_at_least("linear", "batch", problem.batch, 0);
  require_at_least("linear", "in_features", problem.in_features, 0);
  require_at_least("linear", "out_features", problem.out_features, 0);
  check_dtypes(problem);
  require_enumerators("linear", problem.epilogue);
  require_enumerator("linear", "weight_format", problem.weight_format, kAllWeightFormats.back());
  const int64_t bytes = dtype_bytes(problem.dtype);
  (void)checked_bytes({problem.num_members, problem.out_features, problem.in_features}, bytes);
  (void)checked_bytes({problem.batch, problem.num_members, problem.in_features}, bytes);
  // fp32 for any dtype: the sums of a vendor's GEMM lie in a workspace of this size.
  (void)checked_bytes({problem.batch, problem.num_members, problem.out_features}, 4);
}

/// A blob is one row of bytes.
void complete_weight(LinearProblem& problem) {
  const int64_t members = problem.num_members;
  const int64_t in = problem.in_features, out = problem.out_features;
  if (!is_quantized(problem)) {
    problem.group_size = 0;
    problem.allow_rounded_weights = false;
    problem.weight =
        fill_strides(name_of("linear", "weight"), problem.weight, {in, out * in}, out, members, in);
    return require_extent("weight", problem, out, members, in, problem.weight);
  }
  problem.weight = complete_quantized_strides("linear", linear_quantized_weight(problem), members,
                                              problem.weight.member);
  require_extent("weight", problem, 1, members, problem.weight.row, problem.weight);
}

/// One output per member has one factor per member, whatever it is called.
void complete_epilogue(LinearProblem& problem) {
  Epilogue& epilogue = problem.epilogue;
  const int64_t members = problem.num_members, out = problem.out_features;
  const auto member_stride = [&](bool is_present, int64_t given, int64_t packed) {
    if (!is_present) return int64_t{0};
    return given == 0 || members == 1 || out == 0 ? packed : given;
  };
  if (epilogue.scale == OutputScale::per_output && out == 1) {
    epilogue.scale = OutputScale::per_member;
  }
  problem.bias_member_stride = member_stride(epilogue.has_bias, problem.bias_member_stride, out);
  problem.scale_member_stride =
      member_stride(epilogue.scale != OutputScale::none, problem.scale_member_stride,
                    epilogue.scale == OutputScale::per_member ? 1 : out);
  problem.residual = epilogue.residual == Residual::none
                         ? RowStrides{}
                         : fill_strides(name_of("linear", "residual"), problem.residual,
                                        packed_rows(members, out), problem.batch, members, out);
}

}  // namespace

LinearProblem complete_linear_problem(LinearProblem problem) {
  check_sizes(problem);
  problem.y_dtype = problem.y_dtype.value_or(problem.dtype);
  const int64_t members = problem.num_members, batch = problem.batch;
  const int64_t in = problem.in_features, out = problem.out_features;
  require_at_least("linear", "bias_member_stride", problem.bias_member_stride, 0);
  require_at_least("linear", "scale_member_stride", problem.scale_member_stride, 0);
  WIDE_REQUIRE(std::isfinite(problem.epilogue.alpha),
               "linear: alpha is " + text(problem.epilogue.alpha) + ", expected a finite factor");

  if (problem.shared_input) {
    WIDE_REQUIRE(problem.x.member == 0, "linear: x has member stride " + text(problem.x.member) +
                                            ", expected 0: shared_input");
    problem.x = fill_strides(name_of("linear", "x"), problem.x, {in, 0}, batch, 1, in);
  } else {
    problem.x = fill_strides(name_of("linear", "x"), problem.x, packed_rows(members, in), batch,
                             members, in);
  }
  complete_weight(problem);
  problem.y = fill_strides(name_of("linear", "y"), problem.y, packed_rows(members, out), batch,
                           members, out);
  complete_epilogue(problem);

  require_extent("x", problem, batch, members, in, problem.x);
  require_extent("bias", problem, 1, members, problem.epilogue.has_bias ? out : 0,
                 {0, problem.bias_member_stride});
  require_extent("scale", problem, 1, members, problem.scale_member_stride > 0 ? out : 0,
                 {0, problem.scale_member_stride});
  require_extent("y", problem, batch, members, out, problem.y);
  if (problem.epilogue.residual != Residual::none) {
    require_extent("residual", problem, batch, members, out, problem.residual);
  }
  WIDE_REQUIRE(is_empty(problem) || is_injective(batch, members, out, problem.y),
               "linear: y of [" + text(batch) + ", " + text(members) + ", " + text(out) +
                   "] has strides " + text(problem.y) +
                   ", expected elements that do not overlap each other");
  return problem;
}

constexpr auto kLinearFields = [](const auto& same, const LinearProblem& got,
                                  const LinearProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("y_dtype", got.y_dtype, plan.y_dtype);
  same("num_members", got.num_members, plan.num_members);
  same("batch", got.batch, plan.batch);
  same("in_features", got.in_features, plan.in_features);
  same("out_features", got.out_features, plan.out_features);
  same.presence("bias", got.epilogue.has_bias, plan.epilogue.has_bias);
  same("scale", got.epilogue.scale, plan.epilogue.scale);
  same("residual", got.epilogue.residual, plan.epilogue.residual);
  same("stride of x", got.x, plan.x);
  same("stride of weight", got.weight, plan.weight);
  same("stride of y", got.y, plan.y);
  same("stride of residual", got.residual, plan.residual);
  same("member stride of bias", got.bias_member_stride, plan.bias_member_stride);
  same("member stride of scale", got.scale_member_stride, plan.scale_member_stride);
  same("weight_format", weight_format_name(got.weight_format),
       weight_format_name(plan.weight_format));
  same("group_size", got.group_size, plan.group_size);
  same("allow_rounded_weights", got.allow_rounded_weights, plan.allow_rounded_weights);
  same("allow_tf32", got.allow_tf32, plan.allow_tf32);
  same("shared_input", got.shared_input, plan.shared_input);
  same("activation", got.epilogue.activation, plan.epilogue.activation);
  same("alpha", got.epilogue.alpha, plan.epilogue.alpha);
};

void require_same_linear_problem(const LinearProblem& got, const LinearProblem& plan) {
  require_same_problem("linear", got, plan, kLinearFields);
}
std::string problem_key(const LinearProblem& complete) {
  return key_of_fields(complete, kLinearFields);
}
TuningKey tuning_key(const LinearProblem& problem) {
  return {"linear", problem_key(complete_linear_problem(problem))};
}

QuantizedWeight linear_quantized_weight(const LinearProblem& problem) {
  return {problem.weight_format, problem.group_size, problem.out_features, problem.in_features};
}

int64_t linear_member_bytes(const LinearProblem& problem) {
  return quantized_bytes(linear_quantized_weight(problem));
}

bool is_empty(const LinearProblem& problem) {
  return problem.batch == 0 || problem.num_members == 0 || problem.out_features == 0;
}

}  // namespace wide
