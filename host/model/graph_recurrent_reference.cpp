// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers, step by step.
#include <cmath>

#include "host/model/graph_reference.hpp"

namespace wide::catalog {

namespace {

using Reals = std::vector<double>;

double logistic(double v) {
  return 1 / (1 + std::exp(-v));
}

/// Rows of x [rows, in] times those of a weight [out, in], plus a bias or none.
Reals multiply(const Reals& x, const Reals& weight, const Reals& bias, size_t in) {
  const size_t out = weight.size() / in;
  Reals y;
  for (size_t row = 0; row < x.size() / in; ++row) {
    for (size_t o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (size_t i = 0; i < in; ++i) sum += x[row * in + i] * weight[o * in + i];
      y.push_back(sum);
    }
  }
  return y;
}

/// h_t of a unit, whose gates begin at u and v and are `hidden` apart; c becomes c_t.
double unit_of(RecurrentCell kind, const double* u, const double* v, size_t hidden, double before,
               double& c) {
  const auto gate = [&](size_t g) { return u[g * hidden] + v[g * hidden]; };
  if (kind == RecurrentCell::lstm) {
    c = logistic(gate(1)) * c + logistic(gate(0)) * std::tanh(gate(2));
    return logistic(gate(3)) * std::tanh(c);
  }
  const double candidate = std::tanh(u[2 * hidden] + logistic(gate(0)) * v[2 * hidden]);
  return (1 - logistic(gate(1))) * candidate + logistic(gate(1)) * before;
}

}  // namespace

Doubles recurrent_of(const RecurrentOp& op, RecurrentDoubles& o,
                     const std::function<Doubles(Doubles, int64_t)>& noisy,
                     const std::function<Doubles(Doubles)>& rounded) {
  const int64_t in = o.x.shape[2], units = o.hidden_weight.shape[1];
  const auto batch = static_cast<size_t>(o.x.shape[0]), steps = static_cast<size_t>(o.x.shape[1]);
  const auto hidden = static_cast<size_t>(units), outputs = o.hidden_weight.values.size() / hidden;
  const Reals u = rounded({{},
                           multiply(noisy(o.x, in).values, o.input_weight.values,
                                    o.input_bias.values, static_cast<size_t>(in))})
                      .values;
  for (Doubles* state : {&o.hidden, &o.cell}) {
    state->shape = {o.x.shape[0], units};
    state->values.resize(batch * hidden);
  }
  Doubles y{{o.x.shape[0], o.x.shape[1], units}, Reals(batch * steps * hidden)};
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = op.is_reversed ? steps - 1 - i : i;
    const Reals v = rounded({{},
                             multiply(noisy(o.hidden, units).values, o.hidden_weight.values,
                                      o.hidden_bias.values, hidden)})
                        .values;
    for (size_t e = 0; e < batch * hidden; ++e) {
      const size_t b = e / hidden, unit = e % hidden;
      o.hidden.values[e] =
          unit_of(op.cell, &u[(b * steps + t) * outputs + unit], &v[b * outputs + unit], hidden,
                  o.hidden.values[e], o.cell.values[e]);
    }
    o.hidden = rounded(o.hidden);
    for (size_t e = 0; e < batch * hidden; ++e) {
      y.values[(e / hidden * steps + t) * hidden + e % hidden] = o.hidden.values[e];
    }
  }
  return y;
}

}  // namespace wide::catalog
