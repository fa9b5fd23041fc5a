// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. Sizes are read off x and the weight; the others must fit.
#include <algorithm>
#include <string>
#include <utility>

#include "host/conv/conv_problem.hpp"
#include "host/core/channels.hpp"
#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"

namespace wide {

namespace {

/// The sizes and strides of an operand as kernels see it; signals get a row, and images a plane.
struct Seen {
  int64_t outer = 0, channels = 0;  ///< B or N*Cout; N*C or Cin/groups
  int64_t depth = 1;
  PerAxis size{};
  int64_t outer_stride = 0, channel_stride = 0, depth_stride = 0, row_stride = 0, column_stride = 0;
};

Seen look_at(const char* name, const ConstTensorView& view, ChannelLayout layout) {
  require_view(kConvName, name, view);
  const bool is_first = layout == ChannelLayout::channels_first;
  const int channel = is_first ? 1 : view.rank() - 1;
  const int column = is_first ? view.rank() - 1 : view.rank() - 2;
  Seen seen{.outer = view.shape[0],
            .channels = view.shape[channel],
            .depth = 1,
            .size = {1, view.shape[column]},
            .outer_stride = view.strides[0],
            .channel_stride = view.strides[channel],
            .depth_stride = 0,
            .row_stride = 0,
            .column_stride = view.strides[column]};
  if (view.rank() >= 4) {
    seen.size.height = view.shape[column - 1];
    seen.row_stride = view.strides[column - 1];
  }
  if (view.rank() == 5) {
    seen.depth = view.shape[column - 2];
    seen.depth_stride = view.strides[column - 2];
  }
  // Whatever stride a last axis of one element came with: all strides 0 would mean packed.
  int64_t& last = is_first ? seen.column_stride : seen.channel_stride;
  if (view.shape.back() <= 1) last = 1;
  return seen;
}

/// How an operand's axes are to be read, for messages.
std::string axes_of(std::string_view channels, bool is_weight, ChannelLayout layout, int rank) {
  const std::string outer = is_weight ? "[num_members * out_channels, " : "[batch, ";
  const char* const of_weight[] = {"k", "kh, kw", "kd, kh, kw"};
  const char* const of_activation[] = {"L", "H, W", "D, H, W"};
  const std::string positions = (is_weight ? of_weight : of_activation)[rank - 3];
  return layout == ChannelLayout::channels_first
             ? outer + std::string(channels) + ", " + positions + "]"
             : outer + positions + ", " + std::string(channels) + "]";
}

/// y or the residual: of x's rank and the output's size.
ChannelStrides describe_output(const char* name, const ConstTensorView& view, const ConvProblem& p,
                               int rank, int64_t& depth_stride) {
  const int64_t channels = num_elements({p.num_members, p.out_channels});
  const Shape expected =
      conv_shape(p.layout, rank, p.batch, channels, conv_output_depth(p), conv_output_size(p));
  if (view.shape != expected) {
    require_shape(
        kConvName, name, view,
        axes_of("num_members * out_channels", false, p.layout, rank) + " of the output's size",
        expected);
  }
  require_dtype(kConvName, name, view, p.dtype);
  const Seen seen = look_at(name, view, p.layout);
  depth_stride = seen.depth_stride;
  return {seen.outer_stride, p.out_channels * seen.channel_stride, seen.channel_stride,
          seen.row_stride, seen.column_stride};
}

void describe_bias(const ConvArguments& a, ConvProblem& p) {
  p.epilogue.has_bias = !a.bias.is_absent();
  p.bias_member_stride = 0;
  if (!p.epilogue.has_bias) return;
  require_dtype(kConvName, "bias", a.bias, p.dtype);
  const ConstTensorView bias =
      member_parameters(kConvName, "bias", a.bias, p.num_members, p.out_channels);
  const bool are_apart = p.num_members <= 1 || p.out_channels == 0 || bias.strides[0] > 0;
  WIDE_REQUIRE((p.out_channels <= 1 || bias.strides[1] == 1) && are_apart,
               "conv: bias has strides " + to_string(a.bias.strides) +
                   ", expected a last stride of 1 and members apart");
  p.bias_member_stride = bias.strides[0];
}

void describe_weight(const ConvArguments& a, ConvProblem& p) {
  const int rank = a.x.rank();
  const auto expected = [&] { return axes_of("in_channels / groups", true, p.layout, rank); };
  WIDE_REQUIRE(a.weight.rank() == rank, "conv: weight is " + to_string(a.weight.shape) +
                                            ", expected " + expected() + " for an x of " +
                                            counted(rank, "axis", "axes"));
  const Seen seen = look_at("weight", a.weight, p.layout);
  const bool fits = seen.outer % p.num_members == 0 && p.groups >= 1 &&
                    seen.channels == p.in_channels / p.groups && p.in_channels % p.groups == 0;
  WIDE_REQUIRE(fits, "conv: weight is " + to_string(a.weight.shape) + ", expected " + expected() +
                         " with num_members = " + std::to_string(p.num_members) +
                         ", in_channels = " + std::to_string(p.in_channels) +
                         ", groups = " + std::to_string(p.groups));
  require_dtype(kConvName, "weight", a.weight, p.dtype);
  p.out_channels = seen.outer / p.num_members;
  p.kernel = seen.size;
  p.depth.kernel = seen.depth;
  p.depth.weight_stride = seen.depth_stride;
  p.weight = {p.out_channels * seen.outer_stride, seen.outer_stride, seen.channel_stride,
              seen.row_stride, seen.column_stride};
}

void require_apart(const ConvArguments& a, const ConvProblem& p) {
  for (const auto& [name, view] :
       {std::pair{"x", &a.x}, {"weight", &a.weight}, {"bias", &a.bias}}) {
    if (view->is_absent()) continue;
    require_device(kConvName, name, *view, a.y.device);
    require_own_memory(kConvName, "y", a.y, name, *view);
  }
  if (a.residual.is_absent()) return;
  require_device(kConvName, "residual", a.residual, a.y.device);
  const bool is_y = a.residual.data == a.y.data && p.residual == p.y &&
                    p.depth.residual_stride == p.depth.y_stride;
  WIDE_REQUIRE(is_y || !may_overlap(a.residual, a.y),
               "conv: residual overlaps y, expected y itself or memory of its own");
}

}  // namespace

ConvProblem describe_conv(const ConvArguments& a, const ConvProblem& like) {
  ConvProblem p = like;
  const int rank = a.x.rank();
  const auto expected = [&] {
    return axes_of("num_members * in_channels", false, x_layout_of(p), std::clamp(rank, 3, 5));
  };
  WIDE_REQUIRE(rank >= 3 && rank <= 5,
               "conv: x is " + to_string(a.x.shape) + ", expected " + expected());
  require_at_least(kConvName, "num_members", p.num_members, 1);
  const Seen x = look_at("x", a.x, x_layout_of(p));
  WIDE_REQUIRE(x.channels % p.num_members == 0,
               "conv: x is " + to_string(a.x.shape) + ", expected " + expected() +
                   " with num_members = " + std::to_string(p.num_members));
  p.batch = x.outer;
  p.in_channels = x.channels / p.num_members;
  p.input = x.size;
  WIDE_REQUIRE(rank == 5 || p.depth.padding == 0,
               "conv: padding.depth is " + std::to_string(p.depth.padding) +
                   ", expected 0 for an x of " + counted(rank, "axis", "axes"));
  p.depth.input = x.depth;
  p.depth.x_stride = x.depth_stride;
  p.dtype = a.x.dtype;
  p.x = {x.outer_stride, p.in_channels * x.channel_stride, x.channel_stride, x.row_stride,
         x.column_stride};
  describe_weight(a, p);
  describe_bias(a, p);
  WIDE_REQUIRE(a.residual.is_absent() == (p.epilogue.residual == Residual::none),
               a.residual.is_absent()
                   ? "conv: residual is absent, expected one: the problem adds it"
                   : "conv: residual is present, expected none: the problem adds none");
  p.y = p.residual = {};
  p.depth.y_stride = p.depth.residual_stride = 0;
  (void)complete_conv_problem(p);  // sizes that the outputs' are computed from
  p.y = describe_output("y", a.y, p, rank, p.depth.y_stride);
  if (!a.residual.is_absent()) {
    p.residual = describe_output("residual", a.residual, p, rank, p.depth.residual_stride);
  }
  p = complete_conv_problem(p);
  require_apart(a, p);
  return p;
}

}  // namespace wide
