// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// depth_to_space and upsample: copies, each of which takes phases that have as many positions. Both
// are mostly one copy where all phases have.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "host/core/channels.hpp"
#include "host/model/conv_transpose.hpp"
#include "host/model/lowering.hpp"

namespace wide {

namespace {

/// Phases of an axis, one after another, that begin at one position of x and have as many.
struct Phases {
  int64_t first, count;    ///< phases
  int64_t from, to, size;  ///< x's first position, y's, and how many of each phase
};

/// `joins`: those that are alike in one, else each phase by itself.
std::vector<Phases> phases_of(const BlockAxis& axis, int64_t size, bool joins) {
  std::vector<Phases> all;
  for (int64_t phase = 0; phase < axis.block; ++phase) {
    const int64_t from = (axis.first + axis.block - 1 - phase) / axis.block;
    const int64_t to = from * axis.block + phase - axis.first;
    const int64_t count = to < size ? (size - to + axis.block - 1) / axis.block : 0;
    if (count == 0) continue;
    Phases* last = all.empty() ? nullptr : &all.back();
    const bool is_next = last != nullptr && last->first + last->count == phase;
    if (joins && is_next && last->from == from && last->size == count) {
      ++last->count;
    } else {
      all.push_back({phase, 1, from, to, count});
    }
  }
  return all;
}

/// Views of x's and y's elements that one copy takes, axis by axis: [B, N, C, positions, phases,
/// ..], or with members and channels behind all of these.
struct Part {
  std::vector<int64_t> shape, x_strides, y_strides;
  int64_t x_offset = 0, y_offset = 0;

  /// Joined with the axis in front where both sides step through them as through one.
  void add(int64_t extent, int64_t x_stride, int64_t y_stride) {
    if (extent == 1 && !shape.empty()) return;
    const bool joins = !shape.empty() && x_strides.back() == extent * x_stride &&
                       y_strides.back() == extent * y_stride;
    const bool replaces = !shape.empty() && shape.back() == 1;
    if (joins || replaces) {
      extent *= shape.back();
      shape.pop_back(), x_strides.pop_back(), y_strides.pop_back();
    }
    shape.push_back(extent);
    x_strides.push_back(x_stride);
    y_strides.push_back(y_stride);
  }
  PlacedView of(const PlacedView& whole, const std::vector<int64_t>& strides,
                int64_t offset) const {
    PlacedView view = whole.as(Shape(std::span<const int64_t>(shape)),
                               Strides(std::span<const int64_t>(strides)));
    view.offset += offset;
    return view;
  }
};

class Interleave {
 public:
  /// `groups`: a DepthToSpaceOp's; none where a channel of x is that of all phases.
  Interleave(Lowering& l, const Node& node, ChannelLayout layout, std::vector<BlockAxis> axes,
             std::optional<int64_t> groups)
      : l_(l),
        node_(node),
        x_(l.joined(node, "x")),
        place_(l.place(node.outputs[0])),
        y_(stacked_view(place_, l.device())),
        layout_(layout),
        axes_(std::move(axes)) {
    const int axis = channel_axis(layout, static_cast<int>(axes_.size()) + 2);
    const int64_t x = x_.view.strides[axis], y = place_.strides[axis], own = place_.shape[axis];
    int64_t blocks = 1;
    for (const BlockAxis& of : axes_) blocks *= of.block;
    const int64_t own_x = groups.has_value() ? own * blocks : own;
    channels_ = {{place_.num_members, own_x * x, place_.member_stride}};
    if (!groups.has_value()) {
      channels_.push_back({own, x, y});
    } else {
      const int64_t of_group = *groups == 0 || own == 0 ? 1 : own / *groups;
      channels_.push_back({own / of_group, blocks * of_group * x, of_group * y});
      channels_.push_back({of_group, x, y});
      phases_step_ = blocks * of_group * x;
    }
  }

  void run() {
    // As many axes with all their phases in one copy as a tensor's axes suffice for.
    size_t joined = axes_.size();
    while (!try_parts(joined)) --joined;
    for (const Part& part : parts_) {
      l_.add_copy(node_.name, part.of(x_, part.x_strides, part.x_offset),
                  part.of(y_, part.y_strides, part.y_offset), l_.members_of(node_));
    }
  }

 private:
  struct Step {
    int64_t extent, x_stride, y_stride;
  };

  /// With the phases of so many last axes in one copy.
  bool try_parts(size_t joined) {
    parts_.clear();
    Part part;
    part.add(place_.shape[0], x_.view.strides[0], place_.strides[0]);
    if (layout_ == ChannelLayout::channels_first) add_channels(part);
    add(0, joined, phases_step_, part);
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const Part& each) { return std::ssize(each.shape) <= kMaxRank; });
  }
  void add_channels(Part& part) const {
    for (const Step& step : channels_) part.add(step.extent, step.x_stride, step.y_stride);
  }
  /// All phases of the axes from `axis` on; x's phases of the one in front are `step` apart.
  void add(size_t axis, size_t joined, int64_t step, Part part) {
    if (axis == axes_.size()) {
      if (layout_ == ChannelLayout::channels_last) add_channels(part);
      parts_.push_back(std::move(part));
      return;
    }
    const int own = position_axis(layout_) + static_cast<int>(axis);
    const int64_t block = axes_[axis].block, x = x_.view.strides[own], y = place_.strides[own];
    const bool joins = axes_.size() - axis <= joined;
    for (const Phases& p : phases_of(axes_[axis], place_.shape[own], joins)) {
      Part more = part;
      more.x_offset += p.first * (step / block) + p.from * x;
      more.y_offset += p.to * y;
      more.add(p.size, x, block * y);
      if (p.count > 1) more.add(p.count, step / block, y);
      add(axis + 1, joined, step / block, std::move(more));
    }
  }

  Lowering& l_;
  const Node& node_;
  PlacedView x_;
  Place place_;  ///< y's: members are apart where it is a part of a concat
  PlacedView y_;
  ChannelLayout layout_;
  std::vector<BlockAxis> axes_;
  std::vector<Step> channels_;
  int64_t phases_step_ = 0;  ///< of x, over all phases of a group
  std::vector<Part> parts_;
};

}  // namespace

void lower(Lowering&, const Node& node, const ConvTransposeOp&) {
  throw std::logic_error("model: " + node.name + " is a transposed convolution after the passes");
}

void lower(Lowering& l, const Node& node, const DepthToSpaceOp& op) {
  const int num_axes = l.graph().type(node.outputs[0]).shape.rank() - 2;
  Interleave(l, node, op.layout, block_axes(op, num_axes), op.groups).run();
}

void lower(Lowering& l, const Node& node, const UpsampleOp& op) {
  const int num_axes = l.graph().type(node.outputs[0]).shape.rank() - 2;
  Interleave(l, node, op.layout, block_axes(op, num_axes), std::nullopt).run();
}

}  // namespace wide
