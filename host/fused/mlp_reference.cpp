// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64 over one member's own row and weights.
#include "host/fused/mlp_reference.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/linear/linear_reference.hpp"

namespace wide::catalog {

namespace {

/// How much faster than its argument an activation changes, plus the effect of rounding.
double slope_of(Activation activation) {
  return steepest_slope(activation) * (1 + 0x1p-7);
}

/// The values between two layers, and the errors of a kernel's: their bound, and the square of the
/// likely error.
struct Features {
  std::vector<double> values, most, squares;
  explicit Features(size_t count) : values(count), most(count), squares(count) {}
};

}  // namespace

const std::string_view kMlpToleranceFormula =
    "e_L of the last layer; e_l = t_l + min(m_l, 6 sqrt(s_l)), t_l linear's tolerance of layer l, "
    "m_l = L sum_i |w_i| (t + m)_i and s_l = L^2 sum_i w_i^2 (t^2 + s)_i over the layer before, "
    "where x has none; L = 1 + 2^-7, times 1.13 for gelu and gelu_tanh, 1.1 for silu. Roundings "
    "are independent: six times the root of their squares is ten standard deviations. 0 for "
    "integer fills with activation none or relu.";

void judge_mlp_row(const MlpProblem& p, std::span<const double> x, std::span<const double> weights,
                   Fill fill, std::span<double> values, std::span<double> tolerances) {
  const size_t num_layers = p.widths.size() - 1;
  const size_t step = p.dtype == Dtype::fp32 ? 8 : 16;  // elements of 32 bytes
  const auto filled = [&](int64_t count) {
    return (static_cast<size_t>(count) + step - 1) / step * step;
  };
  size_t bias = 0, weight = 0;
  for (size_t l = 0; l < num_layers && p.has_bias; ++l) weight += filled(p.widths[l + 1]);

  // After a smooth activation numbers are no longer whole.
  if (is_smooth(p.activation)) fill = Fill::uniform;

  Features inputs(x.size());
  std::copy(x.begin(), x.end(), inputs.values.begin());
  for (size_t l = 0; l < num_layers; ++l) {
    const auto in = static_cast<size_t>(p.widths[l]), out = static_cast<size_t>(p.widths[l + 1]);
    const size_t row = filled(p.widths[l]) + step / 2;
    const bool is_last = l + 1 == num_layers;
    ProductSum sum{.terms = p.widths[l],
                   .dtype = p.dtype,
                   .y_dtype = p.dtype,
                   .allow_tf32 = p.allow_tf32,
                   .activation = is_last ? p.last_activation : p.activation};
    const double slope = slope_of(sum.activation);
    Features outputs(out);
    for (size_t o = 0; o < out; ++o) {
      const double b = p.has_bias ? weights[bias + o] : 0;
      double most = 0, squares = 0;
      sum.value = b, sum.magnitude = std::fabs(b);
      for (size_t i = 0; i < in; ++i) {
        const double w = weights[weight + o * row + i];
        sum.value += w * inputs.values[i];
        sum.magnitude += std::fabs(w * inputs.values[i]);
        most += slope * std::fabs(w) * inputs.most[i];
        squares += slope * slope * w * w * inputs.squares[i];
      }
      const JudgedOutput judged = judge_product_sum(sum, fill);
      outputs.values[o] = judged.value;
      if (is_last) {
        values[o] = judged.value;
        tolerances[o] = judged.tolerance + std::min(most, 6 * std::sqrt(squares));
      } else if (std::isfinite(sum.value) || !std::isfinite(judged.value)) {
        outputs.most[o] = judged.tolerance + most;
        outputs.squares[o] = judged.tolerance * judged.tolerance + squares;
      }  // else the limit of an activation, which is exact
    }
    if (p.has_bias) bias += filled(p.widths[l + 1]);
    weight += out * row;
    inputs = std::move(outputs);
  }
}

}  // namespace wide::catalog
