// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where values of a model lie, and the views by which primitives take them.
//
// Addresses are not known when a plan is made: a view is a template, and gets its address when the
// model runs, from the caller's operands, the model's weights or the workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wide/graph.hpp"
#include "wide/tensor.hpp"

namespace wide {

enum class MemoryKind : uint8_t { input, output, weights, activations };

/// A piece of memory that values lie in: all of an input or output, or some of the others.
struct Storage {
  MemoryKind kind = MemoryKind::activations;
  int64_t index = 0;   ///< of the input or output
  int64_t offset = 0;  ///< bytes into the weights or activations
  int64_t bytes = 0;
};

/// A value of a model: a member's shape, with strides in elements, from the start of its storage.
struct Place {
  int32_t storage = -1;
  int64_t offset = 0;  ///< elements from the storage's start
  Dtype dtype = Dtype::fp32;
  Shape shape;
  Strides strides;
  int64_t num_members = 1;    ///< 1 for what all members share
  int64_t member_stride = 0;  ///< 0 for these
  int member_axis = -1;       ///< that members stand in front of; -1: none
  bool is_shared() const { return member_axis < 0; }
};

/// A view whose address is `storage`'s plus `offset` elements. Absent like an absent view.
struct PlacedView {
  int32_t storage = -1;
  int64_t offset = 0;
  TensorView view;

  /// The same memory in another shape, dense or with these strides.
  PlacedView as(const Shape& shape) const { return as(shape, contiguous_strides(shape)); }
  PlacedView as(const Shape& shape, const Strides& strides) const {
    return {storage, offset, TensorView(nullptr, view.dtype, shape, strides, view.device)};
  }
};

/// Packed: the axes in front of `member_axis`, the members, the other axes; -1: shared. Throws
/// invalid_argument for more bytes than fit in 64 bits.
Place packed_place(Dtype dtype, const Shape& shape, int64_t num_members, int member_axis);

/// Elements [first, first + count) of an axis.
Place sliced_place(const Place& place, int axis, int64_t first, int64_t count);
/// The same elements in another shape, members in front of `member_axis`. Throws unsupported with
/// `node` where strides cannot express it.
Place reshaped_place(const std::string& node, const Place& place, const Shape& shape,
                     int member_axis);

/// Throws MoveNeeded for `value` of `node` unless its last axis is contiguous.
void require_side_by_side(const std::string& node, Value value, const Place& place);
/// Also throws unless all axes before the last one are rows of one stride.
void require_one_row_stride(const std::string& node, Value value, const Place& place);
/// Throws MoveNeeded unless the positions of a volume's planes, [B, C, planes, rows, columns], are
/// rows of one stride, as norms of channels read them.
void require_one_position_stride(const std::string& node, Value value, const Place& place);

/// [.., N, D]: members next to the last axis, whatever they stand in front of.
PlacedView rows_view(const Place& place, Device device);
/// [.., N*E, ..]: joined along the axis that they stand in front of; a shared value as it is.
/// Throws unsupported with `node` where there are gaps between members.
PlacedView joined_view(const std::string& node, const Place& place, Device device);
/// [R, N, F]: all axes in front of `split` as rows, the others as features. Throws unsupported with
/// `node` where they do not fold.
PlacedView folded_view(const std::string& node, const Place& place, int split, Device device);
/// [R, L, F], the last two axes as R and F, all others with the members as L. Throws MoveNeeded for
/// `value` of `node` where these do not fold.
PlacedView matrices_view(const std::string& node, Value value, const Place& place, Device device);
/// [R, 1, F] as [R, F].
PlacedView without_members(const PlacedView& rows);
/// [N, ..]: members in front of everything, with any strides.
PlacedView stacked_view(const Place& place, Device device);
/// A member's shape, without members: for shared values.
PlacedView shared_view(const Place& place, Device device);

/// Addresses of one run.
struct Bases {
  std::span<const ConstTensorView> inputs;
  std::span<const TensorView> outputs;
  std::byte* weights = nullptr;
  std::byte* activations = nullptr;
  std::span<const Storage> storages;
  bool is_example = false;  ///< no memory: addresses that are far apart, for plans to be made with
  std::vector<int32_t>* used = nullptr;  ///< of an example: gets the storages of views

  TensorView at(const PlacedView& placed) const;
};

}  // namespace wide
