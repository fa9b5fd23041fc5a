// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv: what lies outside x is multiplied as zeros by every strategy, on every device at hand.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "verify/conv/conv_case.hpp"

namespace wide::test {
namespace {

/// Weights of 1, but `value` in the last member's last channel, where the kernel's first plane is.
void check_padding(const Context& context, const ConvProblem& p, double value) {
  ConvOperands operands = conv_operands(context, p, true);
  const ConvGrid weights = weight_grid(p), outputs = y_grid(p);
  std::vector<double> weight(static_cast<size_t>(num_elements(weights.shape())), 1);
  weight[weights.at(weights.outer - 1, 0, {0, 1, 1})] = value;
  operands.x = upload(context, p.dtype, x_grid(p).shape(),
                      std::vector<double>(static_cast<size_t>(num_elements(x_grid(p).shape())), 1));
  operands.weight = upload(context, p.dtype, weights.shape(), weight);
  for (const std::string_view strategy : conv_strategies_for(context, operands.arguments(), p)) {
    INFO(to_string(context.device()) << " " << strategy << ", a weight of " << value << ", "
                                     << dtype_name(p.dtype) << (outputs.is_last ? ", last" : ""));
    run_conv(context, operands.arguments(), p, strategy);
    const std::vector<double> y = download(context, operands.y);
    for (int64_t o = 0; o < outputs.channels; ++o) {
      for (int64_t i = 0; i < outputs.positions(); ++i) {
        const ConvAt at = outputs.position(i);
        const int64_t plane = at.depth - p.depth.padding;  // of x, of the kernel's first one
        const int64_t end = std::min(p.depth.kernel, p.depth.input - plane);
        const int64_t planes = std::max<int64_t>(0, end - std::max<int64_t>(0, -plane));
        const bool is_padding = plane < 0 || plane >= p.depth.input;
        const double got = y[outputs.at(0, o, at)];
        if (o + 1 < outputs.channels) {
          CHECK(got == static_cast<double>(planes * 9 * p.in_channels));
        } else if (is_padding || std::isnan(value)) {
          CHECK(std::isnan(got));
        } else {
          CHECK(got == value);
        }
      }
    }
  }
}

TEST_CASE("conv: planes of padding are zeros, times weights that are not finite, too") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Context& context : devices_at_hand()) {
    for (const ChannelLayout layout :
         {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        // Few kinds of planes and many, with some of padding alone.
        for (const auto& [kernel, padding] : {std::pair<int64_t, int64_t>{3, 1}, {11, 12}}) {
          const ConvProblem p{.num_members = 2,
                              .batch = 1,
                              .in_channels = 2,
                              .out_channels = 3,
                              .input = {3, 6},
                              .kernel = {3, 3},
                              .depth = {.input = 4, .kernel = kernel, .padding = padding},
                              .layout = layout,
                              .dtype = dtype};
          for (const double value : {kInfinity, -kInfinity, std::nan("")}) {
            check_padding(context, p, value);
          }
        }
      }
    }
  }
}

TEST_CASE("conv: planes of padding beside more terms than are added at once") {
  for (const Context& context : devices_at_hand()) {
    for (const ChannelLayout layout :
         {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
      const ConvProblem p{.num_members = 2,
                          .batch = 1,
                          .in_channels = 16,
                          .out_channels = 3,
                          .input = {3, 5},
                          .kernel = {3, 3},
                          .depth = {.input = 3, .kernel = 3, .padding = 1},
                          .layout = layout};
      REQUIRE(conv_terms(p) * 2 / 3 > 256);  // two of three planes of the kernel
      ConvOperands operands = conv_operands(context, p, true);
      const ConvExpected expected = expected_conv(context, operands, p, true);
      for (const std::string_view strategy :
           conv_strategies_for(context, operands.arguments(), p)) {
        INFO(to_string(context.device()) << " " << strategy);
        run_conv(context, operands.arguments(), p, strategy);
        CHECK(download(context, operands.y) == expected.values);
      }
    }
  }
}

}  // namespace
}  // namespace wide::test
