// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// depth_to_space and upsample: copies, each of which takes phases that have as many positions. Both
// are one copy where all phases have.
#include <stdexcept>

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

/// A view of phases' elements, [B, N*C, positions, phases, ..], of x or y.
struct Part {
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;

  void add(int64_t extent, int64_t stride) {
    shape.push_back(extent);
    strides.push_back(stride);
  }
  PlacedView of(const PlacedView& whole) const {
    PlacedView view = whole.as(Shape(std::span<const int64_t>(shape)),
                               Strides(std::span<const int64_t>(strides)));
    view.offset += offset;
    return view;
  }
};

class Interleave {
 public:
  /// `repeats`: all phases are of one channel of x, else each is of its own.
  Interleave(Lowering& l, const Node& node, std::vector<BlockAxis> axes, bool repeats)
      : l_(l),
        node_(node),
        x_(l.joined(node, "x")),
        y_(l.joined(node, node.outputs[0])),
        axes_(std::move(axes)),
        repeats_(repeats) {
    // A copy has as many axes as a tensor: of volumes one more than their own.
    const size_t can_join = static_cast<size_t>(kMaxRank - 2) - axes_.size();
    for (size_t i = 0; i < axes_.size(); ++i) {
      const bool joins = axes_.size() - i <= can_join;
      phases_.push_back(phases_of(axes_[i], y_.view.shape[own(i)], joins));
    }
  }

  void run() {
    Part x, y;
    const int64_t channel = x_.view.strides[1];
    int64_t blocks = 1;
    for (const BlockAxis& axis : axes_) blocks *= axis.block;
    x.add(y_.view.shape[0], x_.view.strides[0]);
    y.add(y_.view.shape[0], y_.view.strides[0]);
    x.add(y_.view.shape[1], repeats_ ? channel : blocks * channel);
    y.add(y_.view.shape[1], y_.view.strides[1]);
    add(0, repeats_ ? 0 : blocks * channel, x, y);
  }

 private:
  static int own(size_t axis) { return static_cast<int>(axis) + 2; }

  /// Copies of all phases of the axes from `axis` on; x's phases of the one before are `step`
  /// apart.
  void add(size_t axis, int64_t step, const Part& x, const Part& y) {
    if (axis == axes_.size()) {
      l_.add_copy(node_.name, x.of(x_), y.of(y_), l_.members_of(node_));
      return;
    }
    const int64_t block = axes_[axis].block, x_stride = x_.view.strides[own(axis)],
                  y_stride = y_.view.strides[own(axis)];
    for (const Phases& p : phases_[axis]) {
      Part from = x, to = y;
      from.offset += p.first * (step / block) + p.from * x_stride;
      to.offset += p.to * y_stride;
      from.add(p.size, x_stride);
      to.add(p.size, block * y_stride);
      if (p.count > 1) {
        from.add(p.count, step / block);
        to.add(p.count, y_stride);
      }
      add(axis + 1, step / block, from, to);
    }
  }

  Lowering& l_;
  const Node& node_;
  PlacedView x_, y_;
  std::vector<BlockAxis> axes_;
  bool repeats_;
  std::vector<std::vector<Phases>> phases_;
};

}  // namespace

void lower(Lowering&, const Node& node, const ConvTransposeOp&) {
  throw std::logic_error("model: " + node.name + " is a transposed convolution after the passes");
}

void lower(Lowering& l, const Node& node, const DepthToSpaceOp& op) {
  const int num_axes = l.graph().type(node.outputs[0]).shape.rank() - 2;
  Interleave(l, node, block_axes(op, num_axes), false).run();
}

void lower(Lowering& l, const Node& node, const UpsampleOp& op) {
  const int num_axes = l.graph().type(node.outputs[0]).shape.rank() - 2;
  Interleave(l, node, block_axes(op, num_axes), true).run();
}

}  // namespace wide
