// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Folding of position axes, with messages that name the argument.
#include "host/core/channels.hpp"

#include <array>
#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"

namespace wide {

namespace {

bool is_channels_last(const ConstTensorView& view) {
  return view.shape[1] > 1 && view.strides[1] == 1 && view.strides.back() > 1;
}

/// Folds the axes [first, column) into rows of one stride; 0 where nothing steps along them.
void fold_positions(const ArgumentName& name, const ConstTensorView& view, int first, int column,
                    MemberChannels& c) {
  bool folds = true;
  for (int axis = column - 1; axis >= first; --axis) {
    const int64_t extent = view.shape[axis];
    if (extent != 1) {
      if (c.height == 1) c.strides.row = view.strides[axis];
      folds = folds && (c.height == 1 || view.strides[axis] == c.height * c.strides.row);
    }
    c.height *= extent;
  }
  WIDE_REQUIRE(folds || c.height == 0,
               name + " has shape " + to_string(view.shape) + " and strides " +
                   to_string(view.strides) +
                   ", expected positions that fold into rows of one stride");
}

/// Through num_elements(), so that an overflow is refused rather than wrapped.
ChannelStrides packed_strides(const MemberChannels& e) {
  const int64_t all = num_elements({e.members, e.channels, e.height, e.width});
  if (e.layout == ChannelLayout::channels_last) {
    const int64_t channels = num_elements({e.members, e.channels});
    return {all, e.channels, 1, num_elements({channels, e.width}), channels};
  }
  const int64_t positions = num_elements({e.height, e.width});
  return {all, num_elements({e.channels, positions}), positions, e.width, 1};
}

/// From the batch inwards.
std::array<SteppedAxis, 5> axes_of(const MemberChannels& c, const ChannelStrides& s) {
  return {{{s.batch, c.batch},
           {s.member, c.members},
           {s.channel, c.channels},
           {s.row, c.height},
           {s.column, c.width}}};
}

}  // namespace

ChannelStrides complete_strides(std::string_view primitive, std::string_view argument,
                                const MemberChannels& e, const ChannelStrides& strides) {
  const ArgumentName name = name_of(primitive, argument);
  for (const SteppedAxis& axis : axes_of(e, strides)) {
    WIDE_REQUIRE(axis.stride >= 0,
                 name + " has strides " + text(strides) + ", expected none below 0");
  }
  const ChannelStrides packed = packed_strides(e);
  const bool is_empty = e.batch == 0 || packed.batch == 0;
  if (is_empty || strides == ChannelStrides{}) return packed;
  ChannelStrides complete = strides;
  if (e.width <= 1) complete.column = packed.column;
  if (e.height <= 1) complete.row = packed.row;
  if (e.channels <= 1) complete.channel = packed.channel;
  if (e.members <= 1) complete.member = packed.member;
  if (e.batch <= 1) complete.batch = packed.batch;
  const bool is_last = e.layout == ChannelLayout::channels_last;
  const int64_t last = is_last ? complete.channel : complete.column;
  WIDE_REQUIRE(last == 1, name + " has a " + (is_last ? "channel" : "column") + " stride of " +
                              std::to_string(last) + ", expected the last axis contiguous: 1");
  WIDE_REQUIRE(
      extent_fits(axes_of(e, complete), 1),
      name + " has strides " + text(complete) + ", expected an extent that fits in 64 bits");
  return complete;
}

MemberChannels member_channels(std::string_view primitive, std::string_view argument,
                               const ConstTensorView& view, int64_t num_members) {
  const ArgumentName name = name_of(primitive, argument);
  require_view(primitive, argument, view);
  require_at_least(primitive, "num_members", num_members, 1);
  WIDE_REQUIRE(view.rank() >= 2 && view.shape[1] % num_members == 0,
               name + " is " + to_string(view.shape) +
                   ", expected [batch, num_members * channels, ..] with num_members = " +
                   std::to_string(num_members));
  MemberChannels c{.batch = view.shape[0],
                   .members = num_members,
                   .channels = view.shape[1] / num_members,
                   .height = 1,
                   .width = view.rank() == 2 ? 1 : view.shape.back()};
  c.strides = {view.strides[0], c.channels * view.strides[1], view.strides[1], 0, 1};
  if (view.rank() > 2) {
    if (c.width > 1 && is_channels_last(view)) {
      throw_unsupported(name + " has strides " + to_string(view.strides) +
                        ": channels are last, expected the last axis contiguous");
    }
    require_last_axis_contiguous(primitive, argument, view);
    fold_positions(name, view, 2, view.rank() - 1, c);
  }
  c.strides = complete_strides(primitive, argument, c, c.strides);
  return c;
}

MemberChannels member_channels_last(std::string_view primitive, std::string_view argument,
                                    const ConstTensorView& view, int64_t num_members) {
  const ArgumentName name = name_of(primitive, argument);
  require_view(primitive, argument, view);
  require_at_least(primitive, "num_members", num_members, 1);
  WIDE_REQUIRE(view.rank() >= 3 && view.shape.back() % num_members == 0,
               name + " is " + to_string(view.shape) +
                   ", expected [batch, .., num_members * channels] with num_members = " +
                   std::to_string(num_members));
  const int column = view.rank() - 2;
  require_last_axis_contiguous(primitive, argument, view);
  MemberChannels c{.batch = view.shape[0],
                   .members = num_members,
                   .channels = view.shape.back() / num_members,
                   .height = 1,
                   .width = view.shape[column],
                   .layout = ChannelLayout::channels_last};
  c.strides = {view.strides[0], c.channels, 1, 0, view.strides[column]};
  fold_positions(name, view, 1, column, c);
  c.strides = complete_strides(primitive, argument, c, c.strides);
  return c;
}

MemberChannels member_images(std::string_view primitive, std::string_view argument,
                             const ConstTensorView& view, ChannelLayout layout,
                             int64_t num_members) {
  const bool is_last = layout == ChannelLayout::channels_last;
  WIDE_REQUIRE(
      view.rank() == 3 || view.rank() == 4,
      name_of(primitive, argument) + " is " + to_string(view.shape) +
          (is_last ? ", expected [batch, width, num_members * channels] or [batch, height, "
                     "width, num_members * channels]"
                   : ", expected [batch, num_members * channels, width] or [batch, "
                     "num_members * channels, height, width]"));
  return is_last ? member_channels_last(primitive, argument, view, num_members)
                 : member_channels(primitive, argument, view, num_members);
}

void require_disjoint(std::string_view primitive, std::string_view argument,
                      std::span<const SteppedAxis> axes) {
  std::array<SteppedAxis, kMaxRank> inner_first{};
  size_t count = 0;
  for (const SteppedAxis& axis : axes) {
    if (axis.extent == 0) return;
    size_t i = count++;
    for (; i > 0 && inner_first[i - 1].stride > axis.stride; --i)
      inner_first[i] = inner_first[i - 1];
    inner_first[i] = axis;
  }
  int64_t span = 1;
  for (size_t i = 0; i < count; ++i) {
    const SteppedAxis& axis = inner_first[i];
    if (axis.extent == 1) continue;
    WIDE_REQUIRE(axis.stride >= span, name_of(primitive, argument) + " has a stride of " +
                                          std::to_string(axis.stride) + " over " +
                                          std::to_string(span) +
                                          " elements, expected elements that do not overlap");
    span += (axis.extent - 1) * axis.stride;
  }
}

void require_disjoint_channels(std::string_view primitive, std::string_view argument,
                               const MemberChannels& c) {
  require_disjoint(primitive, argument, axes_of(c, c.strides));
}

ConstTensorView member_parameters(std::string_view primitive, std::string_view argument,
                                  const ConstTensorView& view, int64_t num_members,
                                  int64_t channels) {
  require_view(primitive, argument, view);
  ConstTensorView own = view;
  if (view.rank() == 1 && view.shape[0] == num_members * channels) {
    own.shape = {num_members, channels};
    own.strides = {channels * view.strides[0], view.strides[0]};
  }
  WIDE_REQUIRE((own.shape == Shape{num_members, channels}),
               name_of(primitive, argument) + " is " + to_string(view.shape) +
                   ", expected [num_members, channels] = " +
                   to_string(Shape{num_members, channels}) + " or all in one axis");
  return own;
}

}  // namespace wide
