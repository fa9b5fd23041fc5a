// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64 over one sequence of one member.
#include "host/recurrent/recurrent_reference.hpp"

#include <algorithm>
#include <cmath>

#include "host/linear/linear_reference.hpp"
#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

constexpr double kRoundoff = unit_roundoff(Dtype::fp32);  ///< of sums

/// A number in fp64, and the error of a kernel's: its bound, and the square of the likely
/// error.
struct Uncertain {
  double value = 0, most = 0, square = 0;

  Uncertain rounded(double error) const { return {value, most + error, square + error * error}; }
  double tolerance() const { return std::min(most, 6 * std::sqrt(square)); }
};

/// Sums and products, without the rounding of their own results.
Uncertain operator+(const Uncertain& a, const Uncertain& b) {
  return {a.value + b.value, a.most + b.most, a.square + b.square};
}
Uncertain operator*(const Uncertain& a, const Uncertain& b) {
  const double x = std::fabs(a.value), y = std::fabs(b.value);
  return {a.value * b.value, x * b.most + y * a.most + a.most * b.most,
          x * x * b.square + y * y * a.square + a.square * b.square};
}

/// A function with bounded values and at most this slope. At an infinity it has its limit.
template <class F>
Uncertain bounded(const Uncertain& x, double slope, const F& f) {
  const double value = f(x.value);
  if (std::isinf(x.value)) return {value, 0, 0};
  const Uncertain argument = x.rounded(kRoundoff * std::fabs(x.value));
  return Uncertain{value, std::min(slope * argument.most, 2.0),
                   std::min(slope * slope * argument.square, 4.0)}
      .rounded(8 * kRoundoff * std::fabs(value) + 0x1p-126);
}
Uncertain logistic(const Uncertain& x) {
  return bounded(x, 0.25, [](double v) { return 1 / (1 + std::exp(-v)); });
}
Uncertain hyperbolic(const Uncertain& x) {
  return bounded(x, 1, [](double v) { return std::tanh(v); });
}
Uncertain rounded_in_fp32(const Uncertain& x) {
  return x.rounded(2 * kRoundoff * std::fabs(x.value));
}

/// A row of weights times a vector, plus a bias: linear's sum, with the vector's errors.
template <class Vector>
Uncertain product(const RecurrentProblem& p, std::span<const double> weights, double bias,
                  const Vector& vector) {
  ProductSum sum{.terms = static_cast<int64_t>(weights.size()),
                 .dtype = p.dtype,
                 .y_dtype = p.dtype,
                 .allow_tf32 = p.allow_tf32};
  sum.value = bias, sum.magnitude = std::fabs(bias);
  Uncertain inherited;
  for (size_t k = 0; k < weights.size(); ++k) {
    const Uncertain of = vector(k);
    const double w = weights[k];
    sum.value += w * of.value;
    sum.magnitude += std::fabs(w * of.value);
    inherited.most += std::fabs(w) * of.most;
    inherited.square += w * w * of.square;
  }
  const JudgedOutput judged = judge_product_sum(sum, Fill::uniform);
  return Uncertain{judged.value, inherited.most, inherited.square}.rounded(judged.tolerance);
}

/// A unit's h after a step, not rounded yet; `state` becomes c_t.
Uncertain unit_of(RecurrentCell cell, std::span<const Uncertain> u, std::span<const Uncertain> v,
                  const Uncertain& before, Uncertain& state) {
  if (cell == RecurrentCell::lstm) {
    const Uncertain taken = logistic(u[0] + v[0]), kept = logistic(u[1] + v[1]);
    const Uncertain candidate = hyperbolic(u[2] + v[2]);
    state = rounded_in_fp32(rounded_in_fp32(kept * state) + rounded_in_fp32(taken * candidate));
    return rounded_in_fp32(logistic(u[3] + v[3]) * hyperbolic(state));
  }
  const Uncertain reset = logistic(u[0] + v[0]), kept = logistic(u[1] + v[1]);
  const Uncertain candidate = hyperbolic(u[2] + rounded_in_fp32(reset * v[2]));
  const Uncertain left = rounded_in_fp32({1 - kept.value, kept.most, kept.square});
  return rounded_in_fp32(rounded_in_fp32(left * candidate) + rounded_in_fp32(kept * before));
}

}  // namespace

const std::string_view kRecurrentToleranceFormula =
    "u |h| + smallest subnormal + min(m, 6 sqrt(s)) of h before it is rounded: m and s are error "
    "and squared error, step by step, of both products (linear's tolerance of each, and sum |w| m "
    "or sum w^2 s of what h_{t-1} is off by), of gates (slopes 1/4 of the logistic function, 1 of "
    "tanh; 8 * 2^-24 of their values), and of what is multiplied and added, 2 * 2^-24 each; u the "
    "dtype's unit roundoff. Roundings are independent: six times the root of their squares is ten "
    "standard deviations.";

RecurrentReferenceSequence judge_recurrent_sequence(const RecurrentProblem& p,
                                                    const RecurrentReferenceMember& m,
                                                    int64_t batch_row) {
  const auto steps = static_cast<size_t>(p.steps), in = static_cast<size_t>(p.in_features);
  const auto hidden = static_cast<size_t>(p.hidden), row = static_cast<size_t>(batch_row);
  const auto gates = static_cast<size_t>(recurrent_gates(p.cell));
  RecurrentReferenceSequence sequence;
  sequence.values.resize(steps * hidden);
  sequence.tolerances.resize(steps * hidden);

  std::vector<Uncertain> h(hidden), next(hidden), c(hidden);
  for (size_t j = 0; j < hidden && p.has_first_state; ++j) {
    h[j].value = m.first_hidden[row * hidden + j];
    if (p.cell == RecurrentCell::lstm) c[j].value = m.first_cell[row * hidden + j];
  }
  std::vector<Uncertain> u(gates), v(gates);
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = p.is_reversed ? steps - 1 - i : i;
    const std::span<const double> x = m.x.subspan((row * steps + t) * in, in);
    for (size_t j = 0; j < hidden; ++j) {
      for (size_t g = 0; g < gates; ++g) {
        const size_t output = g * hidden + j;
        u[g] = product(p, m.input_weight.subspan(output * in, in),
                       p.has_bias ? m.input_bias[output] : 0, [&](size_t k) {
                         return Uncertain{x[k], 0, 0};
                       });
        v[g] = product(p, m.hidden_weight.subspan(output * hidden, hidden),
                       p.has_bias ? m.hidden_bias[output] : 0, [&](size_t k) { return h[k]; });
      }
      const Uncertain exact = unit_of(p.cell, u, v, h[j], c[j]);
      const double rounding =
          unit_roundoff(p.dtype) * std::fabs(exact.value) + min_subnormal(p.dtype);
      sequence.values[t * hidden + j] = exact.value;
      sequence.tolerances[t * hidden + j] = exact.tolerance() + rounding;
      next[j] = exact.rounded(rounding);
    }
    std::swap(h, next);
  }
  for (const Uncertain& state : c) {
    sequence.last_cell.push_back(state.value);
    sequence.last_cell_tolerances.push_back(state.tolerance() + kRoundoff * std::fabs(state.value));
  }
  return sequence;
}

}  // namespace wide::catalog
