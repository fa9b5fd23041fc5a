// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where the axes of an activation come from, when nodes only regroup and reorder them: nothing is
// computed until a node needs a layout that a primitive can read. Attention's heads are such axes.
#pragma once

#include <optional>
#include <vector>

#include "host/import/onnx/numbers.hpp"

namespace wide::onnx {

/// Each axis consists of parts of the value's row-major elements, the slowest first:
/// [B, T, H * D] as [B, H, T, D] is {{B}, {H, D}, {T, H * D}, {D, 1}}, each an extent and a step.
class View {
 public:
  struct Part {
    int64_t extent = 1;  ///< kBatch: all of the batch
    int64_t step = 1;    ///< elements of one sample; 0 for the batch and repeated parts
    friend bool operator==(const Part&, const Part&) = default;
  };
  using Axis = std::vector<Part>;  ///< none: an extent of 1

  /// A value as it lies.
  static View of(const Shape& shape);
  /// Of parts that have all elements of a value, each once or repeated.
  static View of(std::vector<Axis> axes);

  int rank() const { return static_cast<int>(axes_.size()); }
  const Axis& axis(int i) const { return axes_[static_cast<size_t>(i)]; }
  int64_t elements() const { return elements_; }  ///< of one sample, each once
  /// What Shape computes: numbers, and a multiple of the batch.
  Numbers extents() const;
  /// The shape, where nothing moved, the batch is in front, and a graph can have that many axes.
  std::optional<Shape> in_place() const;

  /// A copy of the elements: `from`, its axes in another order.
  struct Copy {
    Shape from;
    Dims order;
  };
  /// The copies, one after another, that put the elements into this layout, and its shape. More
  /// than one where parts move past one another that are more than a graph has axes. None where the
  /// batch is not in front by itself, elements are repeated, or there are too many axes or parts.
  struct Copies {
    std::vector<Copy> steps;
    Shape to;
  };
  std::optional<Copies> copies() const;

  // The view after an operator. Throws, without the node's name: invalid_argument where the
  // operator contradicts itself, unsupported where parts would have to be cut out of one another.
  View transposed(const Dims& order) const;
  /// `batch` is the batch's number in the file, which literal extents contain; -1: none.
  View reshaped(const Numbers& wanted, bool copies_zero, int64_t batch) const;
  /// Without axes those of 1, which may be the batch.
  View squeezed(const std::vector<int64_t>& axes, int64_t batch) const;
  View unsqueezed(const std::vector<int64_t>& axes) const;
  View without(int axis) const;  ///< an axis of extent 1
  /// Axes of extent 1 repeated up to the wanted extents, as Expand does.
  View repeated(const Numbers& wanted, int64_t batch) const;
  /// The same with every element once: repeated parts have an extent of 1.
  View once() const;

  /// The value's elements as [B, before, extent, behind], with the axis as `extent`: where it is
  /// one part, and not repeated.
  struct Cut {
    int64_t before = 1, extent = 1, behind = 1;
  };
  std::optional<Cut> cut(int axis) const;
  /// The view after that part got another extent.
  View resized(int axis, int64_t extent) const;
  /// An axis of extent 1 as one part, before all others.
  View opened(int axis) const;

  friend bool operator==(const View&, const View&) = default;

 private:
  std::vector<Axis> axes_;
  int64_t elements_ = 1;
};

}  // namespace wide::onnx
