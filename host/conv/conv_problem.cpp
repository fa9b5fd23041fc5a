// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks and completes problems. Extents are computed with overflow checks here, so that the
// kernels need none; channels and padded positions fit in 32 bits.
#include "host/conv/conv_problem.hpp"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "host/core/channels.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/window_room.hpp"

namespace wide {

/// In messages.
static std::string text(const PerAxis& axes) {
  return "{height " + text(axes.height) + ", width " + text(axes.width) + "}";
}
static std::string text(const ConvDepth& d) {
  return "{input " + text(d.input) + ", kernel " + text(d.kernel) + ", stride " + text(d.stride) +
         ", padding " + text(d.padding) + ", dilation " + text(d.dilation) + ", strides of x " +
         text(d.x_stride) + ", y " + text(d.y_stride) + ", residual " + text(d.residual_stride) +
         ", weight " + text(d.weight_stride) + "}";
}

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

/// `field` and, where there is one, `axis` name it.
void require_range(const char* field, int64_t value, int64_t least, int64_t most = kMost,
                   const char* axis = "") {
  WIDE_REQUIRE(value >= least && value <= most, std::string("conv: ") + field + axis + " is " +
                                                    text(value) + ", expected a number in [" +
                                                    text(least) + ", " + text(most) + "]");
}

/// One axis of positions.
struct Window {
  int64_t input, kernel, stride, padding, dilation;

  int64_t outputs() const {
    const int64_t room = window_room(input, kernel, stride, padding, dilation);
    return room < 0 ? 0 : room / stride + 1;
  }
};

Window along(const ConvProblem& p, int64_t PerAxis::*axis) {
  return {p.input.*axis, p.kernel.*axis, p.stride.*axis, p.padding.*axis, p.dilation.*axis};
}
Window along_depth(const ConvProblem& p) {
  const ConvDepth& d = p.depth;
  return {d.input, d.kernel, d.stride, d.padding, d.dilation};
}

void check_axis(const char* name, const Window& w) {
  require_range("input.", w.input, 1, kMost, name);
  require_range("kernel.", w.kernel, 1, kMost, name);
  require_range("stride.", w.stride, 1, kMost, name);
  require_range("padding.", w.padding, 0, kMost, name);
  require_range("dilation.", w.dilation, 1, kMost, name);
  const int64_t padded = w.input + 2 * w.padding;
  require_range("input + 2 padding along the ", padded, 1, kMost, name);
  const int64_t reach = w.dilation * (w.kernel - 1) + 1;
  WIDE_REQUIRE(reach <= padded, "conv: the kernel reaches over " + text(reach) +
                                    " positions along the " + name +
                                    ", expected at most the padded input's = " + text(padded));
}

void check_epilogue(const ConvProblem& p) {
  require_enumerators("conv", p.epilogue);
  WIDE_REQUIRE(p.epilogue.scale == OutputScale::none && p.epilogue.alpha == 1.0f,
               "conv: epilogue has scale " + text(p.epilogue.scale) + " and alpha " +
                   text(p.epilogue.alpha) + ", expected none and 1: multiply the weights");
}

void check_sizes(const ConvProblem& p) {
  require_range("num_members", p.num_members, 1, std::numeric_limits<int64_t>::max());
  require_range("batch", p.batch, 0);
  require_range("in_channels", p.in_channels, 0);
  require_range("out_channels", p.out_channels, 0);
  require_range("groups", p.groups, 1);
  WIDE_REQUIRE(p.in_channels % p.groups == 0 && p.out_channels % p.groups == 0,
               "conv: groups is " + text(p.groups) + ", expected a divisor of in_channels = " +
                   text(p.in_channels) + " and of out_channels = " + text(p.out_channels));
  check_axis("depth", along_depth(p));
  check_axis("height", along(p, &PerAxis::height));
  check_axis("width", along(p, &PerAxis::width));
  require_float_dtype("conv", p.dtype);
  require_enumerator("conv", "layout", p.layout, ChannelLayout::channels_last);
  require_enumerator("conv", "x_layout", p.x_layout.value_or(p.layout),
                     ChannelLayout::channels_last);
  check_epilogue(p);
}

/// An operand's axes from the outermost of the packed tensor to the innermost.
template <size_t kAxes>
using Axes = std::array<std::pair<int64_t*, int64_t>, kAxes>;  // stride, extent

/// Packed where all strides are 0; the packed value where nothing steps along one. Throws where
/// strides are negative or elements are not within 64 bits.
template <size_t kAxes>
void complete(const char* field, const Axes<kAxes>& axes, int64_t element_bytes) {
  bool is_given = false, is_empty = false;
  for (const auto& [stride, extent] : axes) {
    WIDE_REQUIRE(*stride >= 0, "conv: " + std::string(field) + " has a stride of " + text(*stride) +
                                   ", expected none below 0");
    is_given = is_given || *stride != 0;
    is_empty = is_empty || extent == 0;
  }
  int64_t packed = 1, span = 1;
  bool overflows = false;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const auto& [stride, extent] = *axis;
    if (!is_given || is_empty || extent == 1) *stride = packed;
    overflows = overflows || __builtin_mul_overflow(packed, extent, &packed);
    int64_t steps = 0;
    if (is_empty) continue;
    overflows = overflows || __builtin_mul_overflow(extent - 1, *stride, &steps) ||
                __builtin_add_overflow(span, steps, &span);
  }
  overflows = overflows || __builtin_mul_overflow(span, element_bytes, &span) ||
              __builtin_mul_overflow(packed, element_bytes, &packed);
  WIDE_REQUIRE(!overflows, "conv: " + std::string(field) +
                               " reaches over more bytes than 64 bits count, expected fewer");
}

/// An operand that has positions: where its strides are, and how many of each there are.
struct Positions {
  ChannelLayout layout;
  ChannelStrides& strides;
  int64_t& depth_stride;
  int64_t channels, depth;
  PerAxis size;
};

Axes<6> activation_axes(const ConvProblem& p, const Positions& of) {
  ChannelStrides& s = of.strides;
  if (of.layout == ChannelLayout::channels_first) {
    return {{{&s.batch, p.batch},
             {&s.member, p.num_members},
             {&s.channel, of.channels},
             {&of.depth_stride, of.depth},
             {&s.row, of.size.height},
             {&s.column, of.size.width}}};
  }
  return {{{&s.batch, p.batch},
           {&of.depth_stride, of.depth},
           {&s.row, of.size.height},
           {&s.column, of.size.width},
           {&s.member, p.num_members},
           {&s.channel, of.channels}}};
}

Axes<6> weight_axes(ConvProblem& p) {
  ConvWeightStrides& s = p.weight;
  const int64_t in = p.in_channels / p.groups;
  if (p.layout == ChannelLayout::channels_first) {
    return {{{&s.member, p.num_members},
             {&s.out_channel, p.out_channels},
             {&s.in_channel, in},
             {&p.depth.weight_stride, p.depth.kernel},
             {&s.row, p.kernel.height},
             {&s.column, p.kernel.width}}};
  }
  return {{{&s.member, p.num_members},
           {&s.out_channel, p.out_channels},
           {&p.depth.weight_stride, p.depth.kernel},
           {&s.row, p.kernel.height},
           {&s.column, p.kernel.width},
           {&s.in_channel, in}}};
}

/// The layout's last axis, which kernels read several elements of at a time.
int64_t last_stride(ChannelLayout layout, const ChannelStrides& s) {
  return layout == ChannelLayout::channels_first ? s.column : s.channel;
}
void require_contiguous(const char* field, int64_t stride) {
  WIDE_REQUIRE(stride == 1, "conv: " + std::string(field) + " has a last stride of " +
                                text(stride) + ", expected 1: contiguous");
}

}  // namespace

std::string_view conv_layout_name(ChannelLayout layout) {
  return layout == ChannelLayout::channels_first ? "channels_first" : "channels_last";
}

PerAxis conv_output_size(const ConvProblem& p) {
  return {along(p, &PerAxis::height).outputs(), along(p, &PerAxis::width).outputs()};
}
int64_t conv_output_depth(const ConvProblem& p) {
  return along_depth(p).outputs();
}

Shape conv_shape(ChannelLayout layout, int rank, int64_t outer, int64_t channels, int64_t depth,
                 const PerAxis& size) {
  const auto& [h, w] = size;
  if (layout == ChannelLayout::channels_first) {
    return rank == 3   ? Shape{outer, channels, w}
           : rank == 4 ? Shape{outer, channels, h, w}
                       : Shape{outer, channels, depth, h, w};
  }
  return rank == 3   ? Shape{outer, w, channels}
         : rank == 4 ? Shape{outer, h, w, channels}
                     : Shape{outer, depth, h, w, channels};
}

ConvProblem complete_conv_problem(ConvProblem p) {
  check_sizes(p);
  if (p.x_layout == p.layout) p.x_layout.reset();  // so that equal layouts compare equal
  const int64_t bytes = dtype_bytes(p.dtype);
  ConvDepth& depth = p.depth;
  const PerAxis output = conv_output_size(p);
  const int64_t output_depth = conv_output_depth(p);
  const bool is_first = p.layout == ChannelLayout::channels_first;
  const ChannelLayout x_layout = x_layout_of(p);
  const auto y_axes =
      activation_axes(p, {p.layout, p.y, depth.y_stride, p.out_channels, output_depth, output});
  complete("x",
           activation_axes(p, {x_layout, p.x, depth.x_stride, p.in_channels, depth.input, p.input}),
           bytes);
  complete("weight", weight_axes(p), bytes);
  complete("y", y_axes, bytes);
  require_contiguous("x", last_stride(x_layout, p.x));
  require_contiguous("weight", is_first ? p.weight.column : p.weight.in_channel);
  require_contiguous("y", last_stride(p.layout, p.y));
  std::array<SteppedAxis, 6> stepped;
  for (size_t a = 0; a < stepped.size(); ++a) stepped[a] = {*y_axes[a].first, y_axes[a].second};
  require_disjoint("conv", "y", stepped);
  if (p.epilogue.residual == Residual::none) {
    p.residual = {};
    depth.residual_stride = 0;
  } else {
    complete("residual",
             activation_axes(p, {p.layout, p.residual, depth.residual_stride, p.out_channels,
                                 output_depth, output}),
             bytes);
    require_contiguous("residual", last_stride(p.layout, p.residual));
  }
  int64_t one = 1;  // bias is contiguous
  if (!p.epilogue.has_bias) {
    p.bias_member_stride = 0;
  } else {
    if (p.bias_member_stride == 0) p.bias_member_stride = p.out_channels;
    complete<2>("bias", {{{&p.bias_member_stride, p.num_members}, {&one, p.out_channels}}}, bytes);
  }
  // Nothing steps along a single plane: images are the same problem, however described.
  if (depth.input == 1) depth.x_stride = 0;
  if (depth.kernel == 1) depth.weight_stride = 0;
  if (output_depth == 1) depth.y_stride = depth.residual_stride = 0;
  if (!is_volume(p)) depth = {};
  return p;
}

constexpr auto kConvFields = [](const auto& same, const ConvProblem& got, const ConvProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("num_members", got.num_members, plan.num_members);
  same("batch", got.batch, plan.batch);
  same("in_channels", got.in_channels, plan.in_channels);
  same("out_channels", got.out_channels, plan.out_channels);
  same("input", got.input, plan.input);
  same("kernel", got.kernel, plan.kernel);
  same.presence("bias", got.epilogue.has_bias, plan.epilogue.has_bias);
  same("residual", got.epilogue.residual, plan.epilogue.residual);
  same("stride of x", got.x, plan.x);
  same("stride of weight", got.weight, plan.weight);
  same("stride of y", got.y, plan.y);
  same("stride of residual", got.residual, plan.residual);
  same("member stride of bias", got.bias_member_stride, plan.bias_member_stride);
  same("groups", got.groups, plan.groups);
  same("stride", got.stride, plan.stride);
  same("padding", got.padding, plan.padding);
  same("dilation", got.dilation, plan.dilation);
  same("depth", got.depth, plan.depth);
  same("layout", got.layout, plan.layout);
  same("x_layout", got.x_layout, plan.x_layout);
  same("allow_tf32", got.allow_tf32, plan.allow_tf32);
  same("activation", got.epilogue.activation, plan.epilogue.activation);
  same("scale", got.epilogue.scale, plan.epilogue.scale);
  same("alpha", got.epilogue.alpha, plan.epilogue.alpha);
};

void require_same_conv_problem(const ConvProblem& got, const ConvProblem& plan) {
  require_same_problem(kConvName, got, plan, kConvFields);
}
std::string problem_key(const ConvProblem& complete) {
  return key_of_fields(complete, kConvFields);
}
TuningKey tuning_key(const ConvProblem& problem) {
  return {std::string(kConvName), problem_key(complete_conv_problem(problem))};
}

bool is_empty(const ConvProblem& p) {
  return p.batch == 0 || p.out_channels == 0;
}

bool is_volume(const ConvProblem& p) {
  return p.depth.input > 1 || p.depth.kernel > 1 || p.depth.padding > 0;
}

int64_t conv_positions(const ConvProblem& p) {
  const PerAxis size = conv_output_size(p);
  return p.batch * conv_output_depth(p) * size.height * size.width;
}

int64_t conv_terms(const ConvProblem& p) {
  return p.in_channels / p.groups * p.depth.kernel * p.kernel.height * p.kernel.width;
}

}  // namespace wide
