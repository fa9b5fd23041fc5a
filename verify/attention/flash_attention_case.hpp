// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of flash_attention share: cases, and a judge that runs them and asks the reference
// of every element.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "host/attention/flash_attention_problem.hpp"
#include "host/attention/flash_attention_reference.hpp"
#include "host/attention/flash_attention_strategy.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/flash_attention.hpp"

namespace wide::test {

using Reals = std::vector<double>;

/// One packed problem with its operands on a device; absent masks are empty.
struct AttentionCase {
  FlashAttentionProblem problem;
  Reals lengths{}, slopes{};  ///< [N, B] or [B]; [N, heads]
  double spread = 1;          ///< of q
  Shape bias{};               ///< axes in front of [Tq, Tk], or empty; every seventh hides its key
  bool has_nan_behind_lengths = false;  ///< in k and v, where nobody may look
  uint64_t seed = 1;

  FlashAttentionProblem complete() const {
    FlashAttentionProblem p = problem;
    p.key_lengths = lengths.empty() ? KeyLengths::none
                    : static_cast<int64_t>(lengths.size()) == p.batch && p.num_members > 1
                        ? KeyLengths::shared
                        : KeyLengths::per_member;
    p.has_slopes = !slopes.empty();
    return complete_flash_attention_problem(p);
  }

  /// Of k or v with lengths for each member.
  void hide_behind_lengths(Reals& values) const {
    const FlashAttentionProblem p = complete();
    const int64_t width = p.kv_heads * p.head_dim;
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
      const int64_t member = i / width % p.num_members, row = i / width / p.num_members;
      const auto length = lengths[static_cast<size_t>(member * p.batch + row / *p.kv_seq)];
      if (static_cast<double>(row % *p.kv_seq) >= length) {
        values[static_cast<size_t>(i)] = std::nan("");
      }
    }
  }
};

/// The strategies that this device has for the case.
inline std::vector<std::string> strategies_for(const Context& context, const AttentionCase& made) {
  if (context.device().type == DeviceType::cpu) return {"sequential", "wide"};
  using enum FlashAttentionStrategy;
  FlashAttentionProblem problem = made.problem;
  problem.has_bias = made.bias.rank() > 0;
  std::vector<std::string> strategies;
  for (const FlashAttentionStrategy strategy :
       {simt, tensor_core, short_keys, wgmma, decode, sequential}) {
    if (strategy == sequential && wants_small_cases()) continue;  // isolation_test runs it, too
    if (flash_attention_unsupported_reason(strategy, problem, context.info()).empty()) {
      strategies.emplace_back(strategy_name(strategy));
    }
  }
  return strategies;
}

/// Runs the case by one strategy; every element of y must be within the reference's tolerance.
/// Returns the worst error over tolerance.
inline double check_attention(const Context& context, const AttentionCase& made,
                              const std::string& strategy) {
  const FlashAttentionProblem p = made.complete();
  const int64_t n = p.num_members, keys = *p.kv_seq;
  const Shape q_shape{p.batch, p.seq, n * p.heads * p.head_dim};
  const Shape k_shape{p.batch, keys, n * p.kv_heads * p.head_dim};
  const auto keys_or_values = [&](uint64_t seed) {
    Reals values = uniform(num_elements(k_shape), -1, 1, seed);
    if (made.has_nan_behind_lengths) made.hide_behind_lengths(values);
    return upload(context, p.dtype, k_shape, values);
  };
  const Reals queries = uniform(num_elements(q_shape), -made.spread, made.spread, made.seed);
  Tensor q = upload(context, p.dtype, q_shape, queries), k = keys_or_values(made.seed + 1),
         v = keys_or_values(made.seed + 2);
  Tensor y = upload(context, p.dtype, q_shape,
                    Reals(static_cast<size_t>(num_elements(q_shape)), std::nan("")));
  FlashAttentionArguments arguments{q, k, v, {}, {}, y};
  Tensor lengths, slopes;
  if (!made.lengths.empty()) {
    const bool is_shared = p.key_lengths == KeyLengths::shared;
    lengths =
        upload(context, Dtype::int32, is_shared ? Shape{p.batch} : Shape{n, p.batch}, made.lengths);
    arguments.key_lengths = lengths;
  }
  if (!made.slopes.empty()) {
    slopes = upload(context, Dtype::fp32, {n, p.heads}, made.slopes);
    arguments.slopes = slopes;
  }
  Tensor bias;
  Reals bias_values;
  if (made.bias.rank() > 0) {
    const Shape shape{made.bias[0], made.bias[1], made.bias[2], p.seq, keys};
    bias_values = uniform(num_elements(shape), -3, 3, made.seed + 3);
    for (size_t i = 3; i < bias_values.size(); i += 7)
      bias_values[i] = -std::numeric_limits<double>::infinity();
    bias = upload(context, p.dtype, shape, bias_values);
    arguments.bias = bias;
    bias_values = download(context, bias);
  }
  run_plan(context,
           make_flash_attention_plan(context, describe_flash_attention(arguments, made.problem),
                                     {.strategy = strategy}),
           arguments);

  const Reals got = download(context, y), qs = download(context, q), ks = download(context, k),
              vs = download(context, v);
  const auto dim = static_cast<size_t>(p.head_dim);
  const auto kv_row = static_cast<size_t>(p.kv_heads) * dim;
  Reals own_keys(static_cast<size_t>(keys) * kv_row), own_values = own_keys, expected(dim),
                                                      tolerance(dim);
  double worst = 0;
  for (int64_t m = 0; m < n; ++m) {
    for (int64_t b = 0; b < p.batch; ++b) {
      for (size_t j = 0; j < static_cast<size_t>(keys); ++j) {
        const size_t from = ((static_cast<size_t>(b * keys) + j) * static_cast<size_t>(n) +
                             static_cast<size_t>(m)) *
                            kv_row;
        for (size_t i = 0; i < kv_row; ++i) {
          own_keys[j * kv_row + i] = ks[from + i];
          own_values[j * kv_row + i] = vs[from + i];
        }
      }
      for (int64_t t = 0; t < p.seq; ++t) {
        for (int64_t h = 0; h < p.heads; ++h) {
          const auto at = static_cast<size_t>(((b * p.seq + t) * n + m) * p.heads + h);
          catalog::FlashAttentionReferenceRow row{std::span(qs).subspan(at * dim, dim), own_keys,
                                                  own_values, t, h / (p.heads / p.kv_heads)};
          row.key_length = keys;
          if (p.key_lengths == KeyLengths::shared) {
            row.key_length = static_cast<int64_t>(made.lengths[static_cast<size_t>(b)]);
          } else if (p.key_lengths == KeyLengths::per_member) {
            row.key_length =
                static_cast<int64_t>(made.lengths[static_cast<size_t>(m * p.batch + b)]);
          }
          if (!bias_values.empty()) {
            const auto index = [&](int axis, int64_t i) { return made.bias[axis] == 1 ? 0 : i; };
            const int64_t line =
                ((index(0, m) * made.bias[1] + index(1, b)) * made.bias[2] + index(2, h)) * p.seq +
                t;
            row.bias = std::span(bias_values)
                           .subspan(static_cast<size_t>(line * keys), static_cast<size_t>(keys));
          }
          if (p.has_slopes) row.slope = made.slopes[static_cast<size_t>(m * p.heads + h)];
          catalog::judge_flash_attention_row(p, row, expected, tolerance);
          for (size_t d = 0; d < dim; ++d) {
            const double error = std::fabs(got[at * dim + d] - expected[d]);
            const double ratio = error == 0 ? 0 : error / tolerance[d];
            worst = ratio <= worst      ? worst
                    : std::isnan(ratio) ? std::numeric_limits<double>::infinity()
                                        : ratio;
          }
        }
      }
    }
  }
  CHECK(worst <= 1);
  return worst;
}

/// On every device at hand, by every strategy.
inline void check_everywhere(const AttentionCase& made) {
  for (const Context& context : devices_at_hand()) {
    for (const std::string& strategy : strategies_for(context, made)) {
      const FlashAttentionProblem p = made.complete();
      INFO(to_string(context.device())
           << " " << strategy << " " << dtype_name(p.dtype) << ", n " << p.num_members << ", batch "
           << p.batch << ", seq " << p.seq << ", kv_seq " << *p.kv_seq << ", heads " << p.heads
           << "/" << p.kv_heads << ", head_dim " << p.head_dim << ", causal " << p.is_causal
           << ", window " << p.window << ", soft cap " << p.soft_cap << ", spread " << made.spread);
      check_attention(context, made, strategy);
    }
  }
}

}  // namespace wide::test
