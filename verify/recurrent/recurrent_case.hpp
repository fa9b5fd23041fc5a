// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers with operands in place, for tests that look at them one by one.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/recurrent.hpp"

namespace wide::test {

/// What runs without cuBLAS.
inline std::vector<std::string> recurrent_strategies(const Context& context) {
  if (context.device().type == DeviceType::cpu) return {"sequential", "wide"};
  return {"stepwise", "fused"};
}

template <class F>
void on_every_recurrent_strategy(const F& f) {
  for (const Context& context : devices_at_hand()) {
    for (const std::string& strategy : recurrent_strategies(context)) f(context, strategy);
  }
}

/// Seeded operands of a problem whose operands are packed, and a place for what comes out.
struct RecurrentOperands {
  Tensor x, input_weight, hidden_weight, input_bias, hidden_bias, first_hidden, first_cell;
  Tensor y, last_cell;

  RecurrentOperands(const Context& context, const RecurrentProblem& p) {
    const int64_t gates = recurrent_gates(p.cell) * p.hidden, n = p.num_members;
    uint64_t seed = 0;
    const auto draw = [&](Dtype dtype, const Shape& shape, double spread) {
      return upload(context, dtype, shape, uniform(num_elements(shape), -spread, spread, ++seed));
    };
    const double spread = 1 / std::sqrt(static_cast<double>(p.hidden));
    x = draw(p.dtype, {p.batch, p.steps, (p.shared_input ? 1 : n) * p.in_features}, 1);
    input_weight = draw(p.dtype, {n, gates, p.in_features}, spread);
    hidden_weight = draw(p.dtype, {n, gates, p.hidden}, spread);
    if (p.has_bias) input_bias = draw(p.dtype, {n, gates}, spread);
    if (p.has_bias) hidden_bias = draw(p.dtype, {n, gates}, spread);
    const bool has_cell = p.cell == RecurrentCell::lstm;
    if (p.has_first_state) first_hidden = draw(p.dtype, {p.batch, n * p.hidden}, 1);
    if (p.has_first_state && has_cell) first_cell = draw(Dtype::fp32, {p.batch, n * p.hidden}, 2);
    y = Tensor(context, p.dtype, {p.batch, p.steps, n * p.hidden});
    if (p.has_last_cell) last_cell = Tensor(context, Dtype::fp32, {p.batch, n * p.hidden});
  }

  RecurrentArguments arguments() {
    return {x, input_weight, hidden_weight, input_bias, hidden_bias,
            y, first_hidden, first_cell,    last_cell};
  }
};

inline void run_recurrent(const Context& context, const RecurrentArguments& arguments,
                          const RecurrentProblem& like, const std::string& strategy) {
  run_plan(
      context,
      make_recurrent_plan(context, describe_recurrent(arguments, like), {.strategy = strategy}),
      arguments);
}

}  // namespace wide::test
