// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv: what every strategy computes, on every device at hand.
#include "verify/conv/conv_case.hpp"
#include "verify/support/cases.hpp"

#include <catch2/generators/catch_generators_all.hpp>

#include "wide/convert.hpp"
#include "wide/error.hpp"

namespace wide::test {
namespace {

TEST_CASE("conv: a case worked out by hand") {
  for (const Context& context : devices_at_hand()) {
    // Two members of a batch row, two taps: differences for one, sums for the other.
    Tensor x = upload(context, Dtype::fp32, {1, 2, 4}, {1, 2, 4, 8, 1, 10, 100, 1000});
    Tensor weight = upload(context, Dtype::fp32, {2, 1, 2}, {-1, 1, 1, 2});
    Tensor bias = upload(context, Dtype::fp32, {2}, {0.5, 0});
    Tensor y(context, Dtype::fp32, {1, 2, 5});
    const ConvProblem like{.num_members = 2, .padding = {0, 1}};
    const ConvArguments arguments{x, weight, bias, y, {}};
    for (const std::string_view strategy : conv_strategies_for(context, arguments, like)) {
      run_conv(context, arguments, like, strategy);
      CHECK(download(context, y) ==
            std::vector<double>{1.5, 1.5, 2.5, 4.5, -7.5, 2, 21, 210, 2100, 1000});
    }
  }
}

/// What makes convolutions differ, each with something odd about it.
std::vector<ConvProblem> odd_convolutions() {
  using enum Activation;
  const Epilogue plain{},
      all{.has_bias = true, .activation = relu, .residual = Residual::before_activation};
  return {
      // Pads wider than the kernel, rectangles, steps of every kind.
      {.num_members = 2,
       .batch = 2,
       .in_channels = 3,
       .out_channels = 5,
       .input = {6, 7},
       .kernel = {3, 3},
       .padding = {4, 5},
       .epilogue = all},
      {.num_members = 2,
       .batch = 1,
       .in_channels = 4,
       .out_channels = 9,
       .input = {11, 10},
       .kernel = {2, 5},
       .stride = {3, 1},
       .padding = {0, 2},
       .dilation = {1, 2}},
      {.num_members = 1,
       .batch = 2,
       .in_channels = 2,
       .out_channels = 3,
       .input = {5, 40},
       .kernel = {1, 3},
       .stride = {1, 7},
       .padding = {0, 9},
       .dilation = {1, 13}},
      // Signals: one row of many positions; more channels than are staged at a time.
      {.num_members = 3,
       .batch = 1,
       .in_channels = 37,
       .out_channels = 11,
       .input = {1, 150},
       .kernel = {1, 7},
       .padding = {0, 3},
       .epilogue = {.has_bias = true, .activation = gelu, .residual = Residual::after_activation}},
      // Channels that are vectors, whose taps stand in a column.
      {.num_members = 2,
       .batch = 2,
       .in_channels = 16,
       .out_channels = 8,
       .input = {5, 4},
       .kernel = {3, 1},
       .padding = {1, 0}},
      // Every position by itself; as a step, too.
      {.num_members = 2,
       .batch = 2,
       .in_channels = 20,
       .out_channels = 13,
       .input = {3, 5},
       .epilogue = all},
      {.num_members = 2,
       .batch = 2,
       .in_channels = 20,
       .out_channels = 13,
       .input = {4, 5},
       .stride = {2, 2},
       .epilogue = plain},
      // More outputs than a block has channels.
      {.num_members = 1,
       .batch = 1,
       .in_channels = 5,
       .out_channels = 75,
       .input = {4, 9},
       .kernel = {3, 3},
       .padding = {1, 1},
       .epilogue = {.has_bias = true, .activation = silu}},
      // Groups: of one channel, of a few, of a warp's, of odd ones, of more than a chunk.
      {.num_members = 2,
       .batch = 2,
       .in_channels = 21,
       .out_channels = 21,
       .groups = 21,
       .input = {9, 9},
       .kernel = {3, 3},
       .padding = {1, 1},
       .epilogue = all},
      {.num_members = 2,
       .batch = 1,
       .in_channels = 10,
       .out_channels = 30,
       .groups = 10,
       .input = {5, 33},
       .kernel = {3, 3},
       .stride = {2, 2},
       .padding = {1, 1}},
      {.num_members = 2,
       .batch = 1,
       .in_channels = 12,
       .out_channels = 32,
       .groups = 4,
       .input = {6, 6},
       .kernel = {3, 3},
       .epilogue = all},
      {.num_members = 1,
       .batch = 1,
       .in_channels = 18,
       .out_channels = 36,
       .groups = 3,
       .input = {6, 8},
       .kernel = {2, 2},
       .epilogue = plain},
      {.num_members = 1,
       .batch = 2,
       .in_channels = 80,
       .out_channels = 4,
       .groups = 2,
       .input = {1, 9},
       .kernel = {1, 3},
       .padding = {0, 1},
       .epilogue = plain},
      // Rows of x that a kernel's columns share, shifted as far as a tile is wide and one farther.
      {.num_members = 2,
       .batch = 1,
       .in_channels = 25,
       .out_channels = 3,
       .input = {1, 64},
       .kernel = {1, 3},
       .padding = {0, 16},
       .dilation = {1, 16},
       .epilogue = plain},
      {.num_members = 1,
       .batch = 1,
       .in_channels = 3,
       .out_channels = 2,
       .input = {2, 70},
       .kernel = {2, 4},
       .padding = {1, 33},
       .dilation = {1, 11},
       .epilogue = plain},
      // Channels in whole 16 bytes; batch rows a group and one more, and fewer than one.
      {.num_members = 2,
       .batch = 9,
       .in_channels = 8,
       .out_channels = 12,
       .input = {3, 9},
       .kernel = {2, 3},
       .padding = {1, 1},
       .epilogue = all},
      {.num_members = 3,
       .batch = 2,
       .in_channels = 8,
       .out_channels = 10,
       .input = {1, 37},
       .kernel = {1, 4},
       .stride = {1, 2},
       .padding = {0, 3},
       .epilogue = {.has_bias = true, .activation = gelu_tanh}},
      // Volumes: planes that a kernel skips, that lie in the padding, of odd sizes and steps.
      {.num_members = 2,
       .batch = 2,
       .in_channels = 8,
       .out_channels = 12,
       .input = {4, 5},
       .kernel = {3, 2},
       .padding = {1, 0},
       .depth = {.input = 3, .kernel = 3, .padding = 2},
       .epilogue = all},
      {.num_members = 2,
       .batch = 1,
       .in_channels = 5,
       .out_channels = 9,
       .input = {3, 7},
       .kernel = {1, 3},
       .stride = {1, 2},
       .depth = {.input = 7, .kernel = 2, .stride = 3, .padding = 1, .dilation = 2},
       .epilogue = {.has_bias = true, .activation = gelu, .residual = Residual::after_activation}},
      {.num_members = 2,
       .batch = 2,
       .in_channels = 6,
       .out_channels = 6,
       .groups = 6,
       .input = {5, 4},
       .kernel = {3, 3},
       .padding = {1, 1},
       .depth = {.input = 4, .kernel = 3, .padding = 1},
       .epilogue = plain},
      {.num_members = 2,
       .batch = 1,
       .in_channels = 8,
       .out_channels = 8,
       .input = {3, 3},
       .kernel = {2, 2},
       .depth = {.stride = 2, .padding = 2},  // planes of padding around the one
       .epilogue = all},
      // Volumes whose kernel reaches over planes alone, within planes alone, over nothing.
      {.num_members = 2,
       .batch = 2,
       .in_channels = 16,
       .out_channels = 8,
       .input = {3, 4},
       .depth = {.input = 5, .kernel = 3, .stride = 2, .padding = 1},
       .epilogue = all},
      {.num_members = 2,
       .batch = 2,
       .in_channels = 8,
       .out_channels = 16,
       .input = {5, 4},
       .kernel = {3, 3},
       .padding = {1, 1},
       .depth = {.input = 3},
       .epilogue = all},
      {.num_members = 2,
       .batch = 2,
       .in_channels = 16,
       .out_channels = 8,
       .input = {2, 3},
       .depth = {.input = 3},
       .epilogue = all},
      // Taps so far apart that most of what is between them is not read: of rows, of both, in
      // steps.
      {.num_members = 2,
       .batch = 2,
       .in_channels = 5,
       .out_channels = 9,
       .input = {6, 7},
       .kernel = {3, 3},
       .padding = {30, 29},
       .dilation = {30, 29},
       .epilogue = all},
      {.num_members = 2,
       .batch = 1,
       .in_channels = 8,
       .out_channels = 10,
       .groups = 2,
       .input = {9, 40},
       .kernel = {3, 4},
       .stride = {2, 3},
       .padding = {20, 1},
       .dilation = {21, 13},
       .epilogue = all},
      // No channel: bias alone.
      {.num_members = 2,
       .batch = 1,
       .in_channels = 0,
       .out_channels = 3,
       .input = {2, 3},
       .epilogue = all},
  };
}

TEST_CASE("conv: every strategy, layout and dtype, whatever is odd") {
  for (const Context& context : devices_at_hand()) {
    for (ConvProblem p : odd_convolutions()) {
      for (const ChannelLayout layout :
           {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
          p.layout = layout;
          p.x_layout.reset();
          p.dtype = dtype;
          INFO(p.in_channels << " -> " << p.out_channels << " channels, groups " << p.groups
                             << ", input " << p.depth.input << " x " << p.input.height << " x "
                             << p.input.width);
          CHECK(check_conv(context, p) >= 2);
          if (dtype == Dtype::bf16) continue;  // as fp16, there
          p.x_layout = layout == ChannelLayout::channels_first ? ChannelLayout::channels_last
                                                               : ChannelLayout::channels_first;
          CHECK(check_conv(context, p) >= 2);
        }
      }
    }
  }
}

TEST_CASE("conv: kernels of every width, step and dilation, in groups and without") {
  const int64_t width = GENERATE(1, 2, 3, 4, 5, 7, 9), step = GENERATE(1, 2, 3);
  const int64_t dilation = GENERATE(1, 2, 3), groups = GENERATE(1, 4);
  // Narrow images and wide ones: lanes that load together in one row and in several.
  const int64_t columns = GENERATE(11, 40);
  INFO(width << " columns, step " << step << ", dilation " << dilation << ", groups " << groups
             << ", input " << columns);
  ConvProblem p{.num_members = 1,
                .batch = 1,
                .in_channels = 20,
                .out_channels = 12,
                .groups = groups,
                .input = {6, columns},
                .kernel = {2, width},
                .stride = {step, step},
                .padding = {1, width * dilation / 2},
                .dilation = {1, dilation}};
  for (const Context& context : devices_at_hand()) {
    p.layout = ChannelLayout::channels_first;
    p.dtype = width % 2 == 0 ? Dtype::fp16 : Dtype::fp32;
    CHECK(check_conv(context, p) >= 2);
    p.layout = ChannelLayout::channels_last;
    p.dtype = width % 2 == 0 ? Dtype::fp32 : Dtype::fp16;
    CHECK(check_conv(context, p) >= 2);
  }
}

TEST_CASE("conv: what a case costs are products with positions, not with padding") {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("conv3d");
  const auto flops = [&](int64_t padding) {
    const test::Values values{{"n", int64_t{2}},    {"batch", int64_t{3}}, {"channels", int64_t{4}},
                              {"out", int64_t{5}},  {"depth", int64_t{3}}, {"height", int64_t{4}},
                              {"padding", padding}, {"bias", "no"}};
    const catalog::Case point = catalog::make_case(spec, values);
    return spec.make_workload(Context::cpu(), point, {})->cost().flops;
  };
  CHECK(flops(0) == 2.0 * 2 * 3 * 4 * 5 * (3 * 6 * 6));
  // Of three taps of 3 and of 4 outputs, 7 and 10 are inside.
  CHECK(flops(1) == 2.0 * 2 * 3 * 4 * 5 * (7 * 10 * 10));
}

TEST_CASE("conv: the catalogue's reference and the other way round agree") {
  const Context cpu = Context::cpu();
  for (ConvProblem p : odd_convolutions()) {
    p.num_members = 1;  // the reference knows one
    p.layout = p.batch == 1 ? ChannelLayout::channels_first : ChannelLayout::channels_last;
    if (p.groups == 1) p.x_layout = ChannelLayout::channels_last;
    p.epilogue.activation = Activation::none;
    const ConvOperands operands = conv_operands(cpu, p, true);
    const ConvExpected expected = expected_conv(cpu, operands, p, true);
    const auto values = [&](const Tensor& operand) {
      return operand.shape().rank() == 0 ? std::vector<double>() : download(cpu, operand);
    };
    const std::vector<double> x = values(operands.x), weight = values(operands.weight),
                              bias = values(operands.bias), residual = values(operands.residual);
    const ConvGrid y = y_grid(p);
    int64_t differences = 0;
    for (int64_t o = 0; o < y.channels; ++o) {
      for (int64_t i = 0; i < y.outer * y.positions(); ++i) {
        const ConvAt position = y.position(i % y.positions());
        const catalog::ConvOutput at{i / y.positions(), o, position.depth, position.row,
                                     position.column};
        const catalog::ConvSum sum =
            catalog::conv_reference_sum(p, {x, weight, bias, residual}, at);
        const bool is_behind = p.epilogue.residual == Residual::after_activation;
        const double value = sum.value + (is_behind ? sum.residual : 0);
        differences += value != expected.values[y.at(at.batch, o, position)];
      }
    }
    CHECK(differences == 0);
  }
}

TEST_CASE("conv: the bound refuses a foreign tap, a lost one and bf16 sums") {
  const Context cpu = Context::cpu();
  const ConvProblem p = complete_conv_problem({.num_members = 1,
                                               .batch = 1,
                                               .in_channels = 16,
                                               .out_channels = 2,
                                               .input = {8, 8},
                                               .kernel = {3, 3},
                                               .padding = {1, 1}});
  const ConvOperands operands = conv_operands(cpu, p, false);
  const ConvExpected expected = expected_conv(cpu, operands, p, false);
  CHECK(worst_conv_ratio(expected.values, expected) == 0);
  std::vector<double> off = expected.values;
  off[9] += 1e-3;
  CHECK_FALSE(worst_conv_ratio(off, expected) <= 1);
  off = expected.values;
  for (double& value : off) value *= 1 + 0x1p-9;
  CHECK_FALSE(worst_conv_ratio(off, expected) <= 1);
  off = expected.values;
  off.back() = std::nan("");
  CHECK_FALSE(worst_conv_ratio(off, expected) <= 1);
}

void check_parts_of_larger_tensors(const Context& context, ChannelLayout layout, int64_t planes) {
  ConvProblem p{.num_members = 2,
                .batch = 2,
                .in_channels = 6,
                .out_channels = 6,
                .input = {5, 9},
                .kernel = {3, 3},
                .padding = {1, 1},
                .depth = {.input = planes, .kernel = planes, .padding = planes / 2},
                .layout = layout,
                .dtype = Dtype::fp16};
  p.epilogue.residual = Residual::after_activation;
  ConvOperands dense = conv_operands(context, p, true);
  const ConvExpected expected = expected_conv(context, dense, p, true);
  // The same values inside tensors with a frame of 7s, x's being y's and the residual's, too.
  const Shape shape = x_grid(p).shape();
  Shape framed = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) framed[axis] += 3;
  const auto inside = [&](Tensor& tensor) {
    TensorView view = tensor;
    for (int axis = 0; axis < shape.rank(); ++axis) view = view.narrow(axis, 1, shape[axis]);
    return view;
  };
  const auto in_frame = [&](const std::vector<double>& values) {
    std::vector<double> all(static_cast<size_t>(num_elements(framed)), 7);
    const Strides to = contiguous_strides(framed), from = contiguous_strides(shape);
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
      int64_t at = 0, rest = i;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        at += (rest / from[axis] + 1) * to[axis];
        rest %= from[axis];
      }
      all[static_cast<size_t>(at)] = values[static_cast<size_t>(i)];
    }
    return all;
  };
  Tensor x = upload(context, p.dtype, framed, in_frame(download(context, dense.x)));
  Tensor frame(context, p.dtype, framed);
  const ConvArguments like{inside(x), dense.weight, {}, inside(frame), inside(frame)};
  for (const std::string_view strategy : conv_strategies_for(context, like, p)) {
    Tensor y = upload(context, p.dtype, framed, in_frame(download(context, dense.residual)));
    INFO(to_string(context.device()) << " " << strategy);
    const ConvArguments framed_arguments{inside(x), dense.weight, {}, inside(y), inside(y)};
    // By name cuDNN or nobody, and cuDNN does not take these addresses.
    if (strategy == "grouped" || strategy == "channels_last") {
      CHECK_THROWS_AS(run_conv(context, framed_arguments, p, strategy), Error);
      continue;
    }
    run_conv(context, framed_arguments, p, strategy);
    CHECK(download(context, y) == in_frame(expected.values));
  }
}

TEST_CASE("conv: parts of larger tensors, misaligned, the residual in place") {
  for (const Context& context : devices_at_hand()) {
    for (const ChannelLayout layout :
         {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
      for (const int64_t planes : {1, 3}) check_parts_of_larger_tensors(context, layout, planes);
    }
  }
}

}  // namespace
}  // namespace wide::test
