// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions for tests: operands that differ everywhere, the reference's outputs, and every
// strategy that a device has held against them.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_reference.hpp"
#include "host/conv/conv_strategy.hpp"
#include "host/linear/linear_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"
#include "wide/conv.hpp"
#include "wide/error.hpp"

namespace wide::test {

/// A packed operand of `channels` channels in one of the problem's layouts.
struct ConvGrid {
  int64_t outer, channels;
  PerAxis size;
  bool is_last;

  ConvGrid(ChannelLayout layout, int64_t outer_, int64_t channels_, const PerAxis& size_)
      : outer(outer_),
        channels(channels_),
        size(size_),
        is_last(layout == ChannelLayout::channels_last) {}

  Shape shape() const {
    return is_last ? Shape{outer, size.height, size.width, channels}
                   : Shape{outer, channels, size.height, size.width};
  }
  size_t at(int64_t o, int64_t c, int64_t h, int64_t w) const {
    return static_cast<size_t>(is_last ? ((o * size.height + h) * size.width + w) * channels + c
                                       : ((o * channels + c) * size.height + h) * size.width + w);
  }
};
inline ConvGrid x_grid(const ConvProblem& p) {
  return {x_layout_of(p), p.batch, p.num_members * p.in_channels, p.input};
}
inline ConvGrid y_grid(const ConvProblem& p) {
  return {p.layout, p.batch, p.num_members * p.out_channels, conv_output_size(p)};
}
inline ConvGrid weight_grid(const ConvProblem& p) {
  return {p.layout, p.num_members * p.out_channels, p.in_channels / p.groups, p.kernel};
}

/// Operands of one problem on one device, packed.
struct ConvOperands {
  Tensor x, weight, bias, residual, y;

  ConvArguments arguments() {
    ConvArguments a{x, weight, {}, y, {}};
    if (bias.shape().rank() > 0) a.bias = bias;
    if (residual.shape().rank() > 0) a.residual = residual;
    return a;
  }
};

/// Whole numbers in [-2, 2], or in [-1, 1): `seed` chooses which.
inline std::vector<double> conv_values(int64_t count, bool are_whole, uint64_t seed) {
  std::vector<double> values = uniform(count, are_whole ? -2 : -1, are_whole ? 3 : 1, seed);
  if (are_whole) {
    for (double& value : values) value = std::floor(value);
  }
  return values;
}

inline ConvOperands conv_operands(const Context& context, const ConvProblem& p, bool are_whole) {
  const auto filled = [&](const Shape& shape, uint64_t seed) {
    return upload(context, p.dtype, shape, conv_values(num_elements(shape), are_whole, seed));
  };
  ConvOperands operands;
  operands.x = filled(x_grid(p).shape(), 1);
  operands.weight = filled(weight_grid(p).shape(), 2);
  if (p.epilogue.has_bias) operands.bias = filled({p.num_members * p.out_channels}, 3);
  if (p.epilogue.residual != Residual::none) operands.residual = filled(y_grid(p).shape(), 4);
  operands.y = Tensor(context, p.dtype, y_grid(p).shape());
  return operands;
}

/// Runs one strategy and waits for it.
inline void run_conv(const Context& context, const ConvArguments& arguments,
                     const ConvProblem& like, std::string_view strategy) {
  const OwnedStream stream(context);
  const VendorHandles handles(context);
  const ConvPlan plan =
      make_conv_plan(context, describe_conv(arguments, like), {.strategy = std::string(strategy)});
  Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
  plan.run(arguments, {stream.get(), {scratch.data(), scratch.bytes()}, &handles});
  context.synchronize(stream.get());
}

/// Those that can run the operands' problem.
inline std::vector<std::string_view> conv_strategies_for(const Context& context,
                                                         const ConvArguments& arguments,
                                                         const ConvProblem& like) {
  const ConvProblem p = describe_conv(arguments, like);
  std::vector<std::string_view> names;
  for (const ConvStrategy& strategy : conv_strategies()) {
    if (!conv_unsupported_reason(strategy, p, context.info()).empty()) continue;
    try {  // cuDNN is asked when the plan is made
      (void)make_conv_plan(context, p, {.strategy = std::string(strategy.name)});
      names.push_back(strategy.name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
    }
  }
  return names;
}

/// What y must be and how far off it may be: every input is added to the outputs that it reaches,
/// the other way round than any strategy and than the catalogue's reference.
struct ConvExpected {
  std::vector<double> values, tolerances;
};

inline ConvExpected expected_conv(const Context& context, const ConvOperands& operands,
                                  const ConvProblem& p, bool are_whole) {
  const ConvGrid from = x_grid(p), to = y_grid(p), weights = weight_grid(p);
  const std::vector<double> x = download(context, operands.x);
  const std::vector<double> weight = download(context, operands.weight);
  const auto count = static_cast<size_t>(num_elements(to.shape()));
  std::vector<double> sums(count), magnitudes(count);
  /// The output that input `i` reaches through tap `k`, or -1.
  const auto reached = [&](int64_t i, int64_t k, int64_t PerAxis::*axis) {
    const int64_t steps = i + p.padding.*axis - k * (p.dilation.*axis);
    const bool is_output =
        steps >= 0 && steps % (p.stride.*axis) == 0 && steps / (p.stride.*axis) < to.size.*axis;
    return is_output ? steps / (p.stride.*axis) : -1;
  };
  const int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups;
  for (int64_t c = 0; c < from.channels; ++c) {
    const int64_t first_output = c / in * out;  // groups of all members, one after the other
    for (int64_t i = 0; i < from.size.height * from.size.width; ++i) {
      const int64_t ih = i / from.size.width, iw = i % from.size.width;
      for (int64_t k = 0; k < p.kernel.height * p.kernel.width; ++k) {
        const int64_t kh = k / p.kernel.width, kw = k % p.kernel.width;
        const int64_t oh = reached(ih, kh, &PerAxis::height), ow = reached(iw, kw, &PerAxis::width);
        if (oh < 0 || ow < 0) continue;
        for (int64_t o = first_output; o < first_output + out; ++o) {
          const double w = weight[weights.at(o, c % in, kh, kw)];
          for (int64_t b = 0; b < p.batch; ++b) {
            const double product = w * x[from.at(b, c, ih, iw)];
            sums[to.at(b, o, oh, ow)] += product;
            magnitudes[to.at(b, o, oh, ow)] += std::fabs(product);
          }
        }
      }
    }
  }
  const auto values_of = [&](const Tensor& operand) {
    return operand.shape().rank() == 0 ? std::vector<double>() : download(context, operand);
  };
  const std::vector<double> bias = values_of(operands.bias),
                            residual = values_of(operands.residual);
  ConvExpected expected{std::vector<double>(count), std::vector<double>(count)};
  catalog::ProductSum sum{.terms = conv_terms(p),
                          .dtype = p.dtype,
                          .y_dtype = p.dtype,
                          .allow_tf32 = p.allow_tf32,
                          .activation = p.epilogue.activation};
  for (int64_t o = 0; o < to.channels; ++o) {
    for (int64_t i = 0; i < to.outer * to.size.height * to.size.width; ++i) {
      const int64_t row = i / to.size.width;
      const size_t at = to.at(row / to.size.height, o, row % to.size.height, i % to.size.width);
      sum.value = sums[at];
      sum.magnitude = magnitudes[at];
      const auto add = [&](double value) {
        sum.value += value;
        sum.magnitude += std::fabs(value);
      };
      if (!bias.empty()) add(bias[static_cast<size_t>(o)]);
      if (p.epilogue.residual == Residual::before_activation) add(residual[at]);
      if (p.epilogue.residual == Residual::after_activation) sum.residual_behind = residual[at];
      const catalog::JudgedOutput judged = catalog::judge_product_sum(
          sum, are_whole ? catalog::Fill::integers : catalog::Fill::uniform);
      expected.values[at] = judged.value;
      expected.tolerances[at] = judged.tolerance;
    }
  }
  return expected;
}

/// The largest error over tolerance; infinite for a NaN, and for any error where none is allowed.
inline double worst_conv_ratio(const std::vector<double>& got, const ConvExpected& expected) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected.values[i]) continue;
    worst = worse_ratio(worst, got[i], expected.values[i], expected.tolerances[i]);
  }
  return worst;
}

/// Every strategy of the device that can run the problem, on numbers and on whole numbers, whose
/// sums are exact; of small cases fp32 on the former, 16 bits on the latter. Returns how many did.
inline int check_conv(const Context& context, const ConvProblem& problem) {
  const ConvProblem p = complete_conv_problem(problem);
  int ran = 0;
  for (const bool are_whole : {false, true}) {
    if (wants_small_cases() && are_whole == (p.dtype == Dtype::fp32)) continue;
    ConvOperands operands = conv_operands(context, p, are_whole);
    const ConvExpected expected = expected_conv(context, operands, p, are_whole);
    for (const std::string_view strategy : conv_strategies_for(context, operands.arguments(), p)) {
      INFO(to_string(context.device()) << " " << strategy << " " << dtype_name(p.dtype) << " "
                                       << conv_layout_name(p.layout) << " whole " << are_whole);
      const OwnedStream stream(context);
      fill_bytes(operands.y, 0xff, stream.get());
      context.synchronize(stream.get());
      run_conv(context, operands.arguments(), p, strategy);
      CHECK(worst_conv_ratio(download(context, operands.y), expected) <= 1);
      ++ran;
    }
  }
  return ran;
}

}  // namespace wide::test
