// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64 over one member's own tensors. Knows no strides, tiles or strategies.
#include "host/linear/linear_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace wide::catalog {

namespace {

/// Sign, exponent and mantissa in the last bits of `code`; no infinities.
double small_float(int code, int exponent_bits, int mantissa_bits) {
  const int mantissa = code % (1 << mantissa_bits);
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1, unit = 1 - bias - mantissa_bits;
  const double value = exponent == 0
                           ? std::ldexp(mantissa, unit)
                           : std::ldexp(mantissa + (1 << mantissa_bits), unit + exponent - 1);
  return code >> (exponent_bits + mantissa_bits) == 1 ? -value : value;
}

double code_value(WeightFormat format, int code) {
  switch (format) {
    case WeightFormat::packed:
      break;
    case WeightFormat::fp8_e4m3:
      return small_float(code, 4, 3);
    case WeightFormat::int8:
      return code - 128;
    case WeightFormat::fp6_e3m2:
      return small_float(code, 3, 2);
    case WeightFormat::int4:
      return code - 8;
    case WeightFormat::fp4_e2m1:
      return small_float(code, 2, 1);
  }
  return std::nan("");
}

double bf16_value(int bits) {
  return (bits >> 7 & 255) == 255 ? std::nan("") : small_float(bits, 8, 7);
}

}  // namespace

std::vector<double> linear_reference_weight(const QuantizedWeight& how,
                                            std::span<const double> blob) {
  const int64_t in = how.in_features, out = how.out_features, size = how.group_size;
  const int64_t bits = weight_format_bits(how.format);
  const int64_t tile_bytes = 16 * 64 * bits / 8, scale_bytes = 16 * 2;
  const int64_t groups = (in + size - 1) / size, tiles = (in + 63) / 64;
  const int64_t strip_bytes = groups * scale_bytes + tiles * tile_bytes;
  const auto byte_at = [&](int64_t at) { return static_cast<int>(blob[static_cast<size_t>(at)]); };
  std::vector<double> weight;
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t k = 0; k < in; ++k) {
      const int64_t strip = o / 16 * strip_bytes, r = o % 16, group = k / size, i = k % 64;
      const int64_t tile = strip + (group + 1) * scale_bytes + k / 64 * tile_bytes;
      const int64_t lane = 4 * (r % 8) + i % 8 / 2, half = i % 2;
      const int64_t q = 4 * (i / 16) + 2 * (i / 8 % 2) + r / 8;
      const auto field = [&](int64_t plane, int64_t b) {
        const int64_t f = 16 / b, bit = b * (q % f), byte = 2 * (2 * (q / f) + half) + bit / 8;
        const int64_t at = b == 2 ? 8 * lane + byte : byte / 16 * 512 + 16 * lane + byte % 16;
        return byte_at(plane + at) >> bit % 8 & ((1 << b) - 1);
      };
      const int code = bits == 6 ? field(tile, 4) + 16 * field(tile + 512, 2) : field(tile, bits);
      const int64_t scale =
          strip + group * scale_bytes + group * size / 64 * tile_bytes + 2 * (2 * (r % 8) + r / 8);
      weight.push_back(bf16_value(byte_at(scale) + 256 * byte_at(scale + 1)) *
                       code_value(how.format, code));
    }
  }
  return weight;
}

void linear_reference_row(const LinearProblem& problem, const LinearReferenceRow& row,
                          std::span<double> values, std::span<double> magnitudes) {
  const auto in = static_cast<size_t>(problem.in_features);
  const auto out = static_cast<size_t>(problem.out_features);
  for (size_t o = 0; o < out; ++o) {
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < in; ++i) {
      const double product = row.x[i] * row.weight[o * in + i];
      sum += product;
      magnitude += std::fabs(product);
    }
    double factor = static_cast<double>(problem.epilogue.alpha);
    if (!row.scale.empty()) factor *= row.scale[row.scale.size() == 1 ? 0 : o];
    sum *= factor;
    magnitude *= std::fabs(factor);
    const auto add = [&](std::span<const double> operand) {
      if (operand.empty()) return;
      sum += operand[o];
      magnitude += std::fabs(operand[o]);
    };
    add(row.bias);
    if (problem.epilogue.residual == Residual::before_activation) add(row.residual);
    values[o] = sum;
    magnitudes[o] = magnitude;
  }
}

namespace {

/// As kLinearToleranceFormula says. `magnitude` is S there.
double tolerance(const ProductSum& of, double value) {
  double error = 8 * std::sqrt(static_cast<double>(of.terms) + 1) * 0x1p-24 * of.magnitude;
  if (of.allow_tf32) error += 2 * 0x1p-10 * of.magnitude;
  if (is_fp8(of.dtype)) error += 16 * 0x1p-13 * of.magnitude;
  if (of.dtype != Dtype::fp32 || of.allow_tf32)
    error += static_cast<double>(of.terms) / 2 * 0x1p-24 * of.magnitude;
  error += of.factor_error;
  error *= steepest_slope(of.activation);
  if (is_smooth(of.activation)) error += 16 * 0x1p-24 * std::fabs(of.value);
  // In the smallest sums every product is rounded to a multiple of fp32's smallest number.
  error += std::sqrt(static_cast<double>(of.terms)) * min_subnormal(Dtype::fp32);
  return error + unit_roundoff(of.y_dtype) * std::fabs(value) + min_subnormal(of.y_dtype);
}

/// More than tolerance() where a residual is added after the activation.
double added_last_tolerance(Dtype y_dtype, double before, double value) {
  return 2 * 0x1p-24 * std::fabs(value) +
         unit_roundoff(y_dtype) * std::max(0.0, std::fabs(value) - std::fabs(before));
}

}  // namespace

JudgedOutput judge_product_sum(const ProductSum& of, Fill fill) {
  const double before = reference_activation(of.activation, of.value);
  JudgedOutput judged{before + of.residual_behind.value_or(0), 0};
  if (fill == Fill::integers && !is_smooth(of.activation)) return judged;
  judged.tolerance = tolerance(of, before);
  if (of.residual_behind) {
    judged.tolerance += added_last_tolerance(of.y_dtype, before, judged.value);
  }
  return judged;
}

double product_mean_square_limit(Dtype dtype, Dtype y_dtype, bool allow_tf32, Fill fill) {
  const bool is_plain =
      fill == Fill::uniform || fill == Fill::normal || fill == Fill::trig || fill == Fill::positive;
  if (!is_plain || allow_tf32 || is_fp8(dtype)) return std::numeric_limits<double>::infinity();
  return y_dtype == Dtype::fp32 ? 1e-10 : y_dtype == Dtype::fp16 ? 1e-7 : 6e-6;
}

const std::string_view kLinearToleranceFormula =
    "L * (8 sqrt(in + 1) 2^-24 S + [not fp32, or tf32: in / 2 * 2^-24 S] + [tf32: 2 * 2^-10 S] + "
    "[fp8: 16 * 2^-13 S] + [rounded: u_x S + |scale| sum |x| (smallest subnormal of x's dtype) / "
    "2]) "
    "+ "
    "[gelu, gelu_tanh, silu: 16 * 2^-24 |v|] + "
    "[residual=after: 2 * 2^-24 |y|] + u max(|y|, |y before that residual|) + smallest subnormal + "
    "sqrt(in) 2^-149, per output; S = |scale| sum |x||w| + |bias| + |residual before|, v the value "
    "before the activation, "
    "L = 1.13 for gelu and gelu_tanh, 1.1 for silu, else 1, u the output's unit roundoff, u_x that "
    "of x's "
    "dtype; 0 for integer fills "
    "with activation none or relu. 8 sqrt(in) covers sums in fp32 in every order; in / 2 those "
    "of tensor cores, which cut off toward zero, so that errors of sums of one sign add up (twice "
    "the most that a model of them comes to, arXiv:2511.10909); 2^-10 is an operand truncated to "
    "tf32; 2^-13 what tensor cores keep of each product of fp8. Besides, the squares of a member's "
    "errors are at most 10^-10 (y fp32), 10^-7 (fp16), 6 10^-6 (bf16) of its outputs'; not of fp8, "
    "with tf32, and for fills whose sums cancel.";

void judge_linear_row(const LinearProblem& problem, const LinearReferenceRow& row, Fill fill,
                      std::span<double> values, std::span<double> tolerances) {
  linear_reference_row(problem, row, values, tolerances);
  ProductSum sum{.terms = problem.in_features,
                 .dtype = problem.dtype,
                 .y_dtype = problem.y_dtype.value_or(problem.dtype),
                 .allow_tf32 = problem.allow_tf32,
                 .activation = problem.epilogue.activation};
  double sum_of_x = 0;
  for (const double x : row.x) sum_of_x += std::fabs(x);
  for (size_t o = 0; o < values.size(); ++o) {
    sum.value = values[o];
    sum.magnitude = tolerances[o];
    if (problem.allow_rounded_weights) {
      const double scale = row.scale.empty() ? 1 : row.scale[row.scale.size() == 1 ? 0 : o];
      sum.factor_error = unit_roundoff(problem.dtype) * sum.magnitude +
                         std::fabs(static_cast<double>(problem.epilogue.alpha) * scale) * sum_of_x *
                             min_subnormal(problem.dtype) / 2;
    }
    if (problem.epilogue.residual == Residual::after_activation) {
      sum.residual_behind = row.residual[o];
    }
    const JudgedOutput judged = judge_product_sum(sum, fill);
    values[o] = judged.value;
    tolerances[o] = judged.tolerance;
  }
}

bool is_smooth(Activation activation) {
  return activation != Activation::none && activation != Activation::relu;
}

double steepest_slope(Activation activation) {
  if (activation == Activation::silu) return 1.1;
  return is_smooth(activation) ? 1.13 : 1;
}

double reference_activation(Activation activation, double value) {
  if (is_smooth(activation) && std::isinf(value)) return std::max(value, 0.0);  // the limits
  switch (activation) {
    case Activation::none:
      return value;
    case Activation::relu:
      return std::isnan(value) || value > 0 ? value : 0.0;
    case Activation::gelu:
      return value / 2 * std::erfc(-value / std::numbers::sqrt2);
    case Activation::gelu_tanh: {
      const double z =
          2 * std::sqrt(2 / std::numbers::pi) * (value + 0.044715 * std::pow(value, 3));
      return value / (1 + std::exp(-z));
    }
    case Activation::silu:
      return value / (1 + std::exp(-value));
  }
  return value;
}

}  // namespace wide::catalog
