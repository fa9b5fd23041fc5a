// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions for tests: operands that differ everywhere, the reference's outputs, and every
// strategy that a device has held against them.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_reference.hpp"
#include "host/conv/conv_strategy.hpp"
#include "host/linear/linear_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/conv.hpp"
#include "wide/error.hpp"

namespace wide::test {

/// Where a number stands among positions.
struct ConvAt {
  int64_t depth, row, column;
};

/// A packed operand of `channels` channels in one of the problem's layouts.
struct ConvGrid {
  int64_t outer, channels, depth;
  PerAxis size;
  bool is_last, has_depth;

  ConvGrid(const ConvProblem& p, ChannelLayout layout, int64_t outer_, int64_t channels_,
           int64_t depth_, const PerAxis& size_)
      : outer(outer_),
        channels(channels_),
        depth(depth_),
        size(size_),
        is_last(layout == ChannelLayout::channels_last),
        has_depth(is_volume(p)) {}

  Shape shape() const {
    if (has_depth) {
      return is_last ? Shape{outer, depth, size.height, size.width, channels}
                     : Shape{outer, channels, depth, size.height, size.width};
    }
    return is_last ? Shape{outer, size.height, size.width, channels}
                   : Shape{outer, channels, size.height, size.width};
  }
  int64_t positions() const { return depth * size.height * size.width; }
  ConvAt position(int64_t index) const {
    return {index / size.width / size.height, index / size.width % size.height, index % size.width};
  }
  size_t at(int64_t o, int64_t c, const ConvAt& p) const {
    const int64_t position = (p.depth * size.height + p.row) * size.width + p.column;
    return static_cast<size_t>(is_last ? (o * positions() + position) * channels + c
                                       : (o * channels + c) * positions() + position);
  }
};
inline ConvGrid x_grid(const ConvProblem& p) {
  return {p, x_layout_of(p), p.batch, p.num_members * p.in_channels, p.depth.input, p.input};
}
inline ConvGrid y_grid(const ConvProblem& p) {
  return {p,
          p.layout,
          p.batch,
          p.num_members * p.out_channels,
          conv_output_depth(p),
          conv_output_size(p)};
}
inline ConvGrid weight_grid(const ConvProblem& p) {
  return {
      p,       p.layout, p.num_members * p.out_channels, p.in_channels / p.groups, p.depth.kernel,
      p.kernel};
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

inline void run_conv(const Context& context, const ConvArguments& arguments,
                     const ConvProblem& like, std::string_view strategy) {
  run_plan(
      context,
      make_conv_plan(context, describe_conv(arguments, like), {.strategy = std::string(strategy)}),
      arguments);
}

/// Those that can run the operands' problem.
inline std::vector<std::string_view> conv_strategies_for(const Context& context,
                                                         const ConvArguments& arguments,
                                                         const ConvProblem& like) {
  const ConvProblem p = describe_conv(arguments, like);
  std::vector<std::string_view> names;
  for (const ConvStrategy& strategy : conv_strategies()) {
    if (std::find(names.begin(), names.end(), strategy.name) != names.end()) continue;
    if (!conv_unsupported_reason(strategy, without_idle_axes(p), context.info()).empty()) continue;
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
  /// The output that input `i` reaches through a tap, or -1.
  const auto reached = [](int64_t i, int64_t tap, int64_t stride, int64_t padding, int64_t dilation,
                          int64_t outputs) {
    const int64_t steps = i + padding - tap * dilation;
    const bool is_output = steps >= 0 && steps % stride == 0 && steps / stride < outputs;
    return is_output ? steps / stride : -1;
  };
  const auto reached_position = [&](const ConvAt& i, const ConvAt& tap) {
    const ConvDepth& d = p.depth;
    return ConvAt{reached(i.depth, tap.depth, d.stride, d.padding, d.dilation, to.depth),
                  reached(i.row, tap.row, p.stride.height, p.padding.height, p.dilation.height,
                          to.size.height),
                  reached(i.column, tap.column, p.stride.width, p.padding.width, p.dilation.width,
                          to.size.width)};
  };
  const int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups;
  for (int64_t c = 0; c < from.channels; ++c) {
    const int64_t first_output = c / in * out;  // groups of all members, one after the other
    for (int64_t i = 0; i < from.positions(); ++i) {
      for (int64_t k = 0; k < weights.positions(); ++k) {
        const ConvAt at = from.position(i), tap = weights.position(k);
        const ConvAt output = reached_position(at, tap);
        if (std::min({output.depth, output.row, output.column}) < 0) continue;
        for (int64_t o = first_output; o < first_output + out; ++o) {
          const double w = weight[weights.at(o, c % in, tap)];
          for (int64_t b = 0; b < p.batch; ++b) {
            const double product = w * x[from.at(b, c, at)];
            sums[to.at(b, o, output)] += product;
            magnitudes[to.at(b, o, output)] += std::fabs(product);
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
    for (int64_t i = 0; i < to.outer * to.positions(); ++i) {
      const size_t at = to.at(i / to.positions(), o, to.position(i % to.positions()));
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
