// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A whole mixture of experts, each row to its best two, as routed_linear.hpp describes it: two
// layers with what is between them in routed order, then the sum over choices as bags of one table.
#pragma once

#include <cmath>
#include <numeric>

#include "verify/linear/routed_linear_case.hpp"
#include "verify/support/tensors.hpp"
#include "wide/embedding.hpp"

namespace wide::test {

struct Mixture {
  int64_t batch = 21, choices = 2, experts = 5, in = 24, hidden = 40, out = 17;
  std::vector<int64_t> ids{};  ///< [batch, choices]; -1: dropped
  std::vector<double> x{}, up{}, up_bias{}, down{}, down_bias{}, gates{};

  int64_t rows() const { return batch * choices; }

  Mixture() {
    Dice dice(11);
    for (int64_t row = 0; row < batch; ++row) {
      const int64_t first = dice.between(0, experts - 1);
      ids.push_back(row % 7 == 3 ? -1 : first);
      ids.push_back((first + 1 + dice.between(0, experts - 2)) % experts);
    }
    x = uniform(batch * in, -1, 1, 1);
    up = uniform(experts * hidden * in, -1, 1, 2);
    up_bias = uniform(experts * hidden, -1, 1, 3);
    down = uniform(experts * out * hidden, -1, 1, 4);
    down_bias = uniform(experts * out, -1, 1, 5);
    gates = uniform(rows(), 0, 1, 6);
  }

  /// [batch, out], by plain loops over rows and their choices.
  std::vector<double> expected() const {
    const auto at = [](const std::vector<double>& values, int64_t i) {
      return values[static_cast<size_t>(i)];
    };
    std::vector<double> y(static_cast<size_t>(batch * out), 0.0);
    for (int64_t row = 0; row < rows(); ++row) {
      const int64_t expert = ids[static_cast<size_t>(row)];
      if (expert < 0) continue;
      std::vector<double> h;
      for (int64_t j = 0; j < hidden; ++j) {
        double sum = at(up_bias, expert * hidden + j);
        for (int64_t k = 0; k < in; ++k) {
          sum += at(x, row / choices * in + k) * at(up, (expert * hidden + j) * in + k);
        }
        h.push_back(sum / (1 + std::exp(-sum)));
      }
      for (int64_t o = 0; o < out; ++o) {
        double sum = at(down_bias, expert * out + o);
        for (int64_t j = 0; j < hidden; ++j) {
          sum += at(h, j) * at(down, (expert * out + o) * hidden + j);
        }
        y[static_cast<size_t>(row / choices * out + o)] += at(gates, row) * sum;
      }
    }
    return y;
  }
};

/// The largest difference from plain loops; `strategy`: of both layers.
inline double mixture_error(TestDevice& bench, const std::string& strategy, Dtype dtype,
                            bool allow_tf32 = false) {
  const Mixture m;
  const Context& context = bench.context();
  const auto upload_integers = [&](Dtype type, const std::vector<int64_t>& numbers) {
    return upload(context, type, {static_cast<int64_t>(numbers.size())},
                  std::vector<double>(numbers.begin(), numbers.end()));
  };
  const Routing routing = routing_of(m.ids, m.experts);
  const Tensor first_rows = upload_integers(Dtype::int32, routing.first_rows);
  const Tensor order = upload_integers(Dtype::int32, routing.order);
  const Tensor x = upload(context, dtype, {m.batch, m.in}, m.x);
  const Tensor up = upload(context, dtype, {m.experts, m.hidden, m.in}, m.up);
  const Tensor up_bias = upload(context, dtype, {m.experts, m.hidden}, m.up_bias);
  const Tensor down = upload(context, dtype, {m.experts, m.out, m.hidden}, m.down);
  const Tensor down_bias = upload(context, dtype, {m.experts, m.out}, m.down_bias);
  const Tensor gates = upload(context, Dtype::fp32, {m.rows()}, m.gates);
  Tensor h(context, dtype, {m.rows(), m.hidden}), parts(context, dtype, {m.rows(), m.out});
  Tensor y(context, dtype, {m.batch, m.out});

  const auto multiply = [&](const RoutedLinearArguments& arguments, RoutedLinearProblem like) {
    like.allow_tf32 = allow_tf32;
    const auto plan = make_routed_linear_plan(context, describe_routed_linear(arguments, like),
                                              {.strategy = strategy});
    plan.run(arguments, bench.execution(plan.workspace_bytes()));
  };
  RoutedLinearProblem first{.gathers = true};
  first.epilogue.activation = Activation::silu;
  multiply(
      {.x = x, .weight = up, .bias = up_bias, .y = h, .first_rows = first_rows, .order = order},
      first);
  multiply({.x = h,
            .weight = down,
            .bias = down_bias,
            .y = parts,
            .gates = gates,
            .first_rows = first_rows,
            .order = order},
           {.scatters = true});

  std::vector<int64_t> ids(static_cast<size_t>(m.rows())), offsets;
  std::iota(ids.begin(), ids.end(), int64_t{0});
  for (int64_t b = 0; b <= m.batch; ++b) offsets.push_back(b * m.choices);
  const Tensor bag_ids = upload_integers(Dtype::int64, ids);
  const Tensor bag_offsets = upload_integers(Dtype::int64, offsets);
  ConstTensorView table = parts;
  table.shape = {1, m.rows(), m.out}, table.strides = {m.rows() * m.out, m.out, 1};
  const EmbeddingArguments bags{.ids = bag_ids, .table = table, .y = y, .offsets = bag_offsets};
  const auto plan = make_embedding_plan(context, describe_embedding(bags, {.bag = Bag::sum}),
                                        {.strategy = "sequential"});
  plan.run(bags, bench.execution(plan.workspace_bytes()));
  bench.context().synchronize(bench.stream());

  const std::vector<double> got = download(context, y), expected = m.expected();
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = worse_ratio(worst, got[i], expected[i], 1);
  }
  return worst;
}

}  // namespace wide::test
