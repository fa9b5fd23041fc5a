// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The judge of linear.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wide/catalog.hpp"
#include "wide/linear.hpp"
#include "wide/quantize.hpp"

namespace wide::catalog {

/// One row of one member in fp64.
struct LinearReferenceRow {
  std::span<const double> x;         ///< [in]
  std::span<const double> weight;    ///< [out, in]
  std::span<const double> bias;      ///< [out], or empty
  std::span<const double> scale;     ///< [out] or [1], or empty
  std::span<const double> residual;  ///< [out], or empty
};

/// values[o] = alpha * scale[o] * sum_i x[i] * weight[o, i] + bias[o], and the residual where it is
/// added before the activation; magnitudes[o], the same sum over absolute values, from which error
/// bounds are made.
void linear_reference_row(const LinearProblem& problem, const LinearReferenceRow& row,
                          std::span<double> values, std::span<double> magnitudes);

/// The row after activation and residual, and for each value the largest error that passes.
void judge_linear_row(const LinearProblem& problem, const LinearReferenceRow& row, Fill fill,
                      std::span<double> values, std::span<double> tolerances);

/// A sum of products in fp64 before it becomes an output, and how strategies compute it.
struct ProductSum {
  int64_t terms = 0;
  Dtype dtype = Dtype::fp32, y_dtype = Dtype::fp32;  ///< of the factors, of the output
  bool allow_tf32 = false;
  Activation activation = Activation::none;
  double value = 0;                         ///< with bias and residual, before the activation
  double magnitude = 0;                     ///< the same sum over absolute values
  std::optional<double> residual_behind{};  ///< added after the activation
  double factor_error = 0;  ///< what rounding the factors may make of the sum, beforehand
};
struct JudgedOutput {
  double value = 0, tolerance = 0;
};
/// The output, and the largest error that passes: kLinearToleranceFormula.
JudgedOutput judge_product_sum(const ProductSum& sum, Fill fill);
extern const std::string_view kLinearToleranceFormula;

/// Workload::mean_square_limit() for products of such factors: 10^-10 for fp32, 10^-7 for fp16, 6 *
/// 10^-6 for bf16, which cover the rounding of outputs and fp32 sums; tf32 instead of fp32 has
/// 8 * 10^-8. No limit for fp8, whose sums have few bits, where tf32 is allowed, and for fills
/// whose sums cancel.
double product_mean_square_limit(Dtype dtype, Dtype y_dtype, bool allow_tf32, Fill fill);

/// The weight [out, in] that a member's blob encodes, by plain loops over the order that
/// wide/weight_format.hpp describes.
std::vector<double> linear_reference_weight(const QuantizedWeight& how,
                                            std::span<const double> blob);

double reference_activation(Activation activation, double value);
/// Whether it is inexact even for whole numbers.
bool is_smooth(Activation activation);
/// The largest change of an activation per unit of its argument, never less than 1.
double steepest_slope(Activation activation);

}  // namespace wide::catalog
