// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Views of places: arithmetic on shapes and strides.
#include "host/model/place.hpp"

#include <array>

#include "host/core/check.hpp"
#include "host/model/move.hpp"
#include "host/model/sizes.hpp"

namespace wide {

namespace {

/// Extents and strides, built up axis by axis.
class Axes {
 public:
  void add(int64_t extent, int64_t stride) {
    WIDE_REQUIRE(rank_ < kMaxRank, "has more than " + std::to_string(kMaxRank) +
                                       " axes with that of the members, expected at most " +
                                       std::to_string(kMaxRank - 1) + " of its own");
    extents_[rank_] = extent;
    strides_[rank_++] = stride;
  }
  Shape shape() const { return Shape(std::span(extents_.data(), rank_)); }
  Strides strides() const { return Strides(std::span(strides_.data(), rank_)); }

 private:
  std::array<int64_t, kMaxRank> extents_{}, strides_{};
  size_t rank_ = 0;
};

PlacedView placed(const Place& place, const Axes& axes, Device device) {
  return {place.storage, place.offset,
          TensorView(nullptr, place.dtype, axes.shape(), axes.strides(), device)};
}

struct Axis {
  int64_t extent = 1, stride = 1;
};

/// Axes as one, the slowest first; stride -1 where they do not fold.
Axis fold(std::span<const Axis> axes) {
  Axis folded;
  bool is_stepped = false;
  for (size_t i = axes.size(); i-- > 0;) {
    const auto [extent, stride] = axes[i];
    if (extent == 1) continue;
    if (!is_stepped) folded.stride = stride;
    if (is_stepped && stride != folded.extent * folded.stride) return {0, -1};
    is_stepped = true;
    folded.extent *= extent;
  }
  return folded;
}
Axis fold(const Place& place, int begin, int end) {
  std::vector<Axis> axes;
  for (int axis = begin; axis < end; ++axis)
    axes.push_back({place.shape[axis], place.strides[axis]});
  return fold(axes);
}

/// Strides of the axes [to_begin, to_end) of `shape`, whose elements are those of [begin, end).
bool reshape_part(const Place& place, int begin, int end, const Shape& shape, int to_begin,
                  int to_end, Strides& strides) {
  int from = end - 1;
  int64_t run = 1, stride = 1;  // of the remaining old axes, from the back
  for (int to = to_end - 1; to >= to_begin; --to) {
    if (shape[to] == 1) {
      strides[to] = run == 1 ? 1 : stride;
      continue;
    }
    if (run == 1) {
      while (from >= begin && place.shape[from] == 1) --from;
      if (from < begin) return false;
      stride = place.strides[from];
      run = place.shape[from--];
    }
    // Old axes that continue one another are merged.
    while (run % shape[to] != 0 || run < shape[to]) {
      while (from >= begin && place.shape[from] == 1) --from;
      if (from < begin || place.strides[from] != run * stride) return false;
      run *= place.shape[from--];
    }
    strides[to] = stride;
    stride *= shape[to];
    run /= shape[to];
  }
  return run == 1;
}

}  // namespace

Place packed_place(Dtype dtype, const Shape& shape, int64_t num_members, int member_axis) {
  const int64_t members = member_axis < 0 ? 1 : num_members;
  (void)checked_bytes({members, checked_bytes(shape, dtype_bytes(dtype))}, 1);
  Place place{.storage = -1,
              .offset = 0,
              .dtype = dtype,
              .shape = shape,
              .strides = shape,
              .num_members = members,
              .member_stride = 0,
              .member_axis = member_axis};
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place.strides[axis] = stride;
    stride *= shape[axis];
    if (axis != member_axis) continue;
    place.member_stride = stride;
    stride *= num_members;
  }
  return place;
}

Place sliced_place(const Place& place, int axis, int64_t first, int64_t count) {
  Place slice = place;
  slice.offset += first * place.strides[axis];
  slice.shape[axis] = count;
  return slice;
}

Place reshaped_place(const std::string& node, const Place& place, const Shape& shape,
                     int member_axis) {
  Place reshaped = place;
  reshaped.shape = shape;
  reshaped.strides = shape;
  const bool is_shared = place.is_shared();
  const int split = is_shared ? 0 : place.member_axis, to_split = is_shared ? 0 : member_axis;
  reshaped.member_axis = is_shared ? -1 : member_axis;
  const bool fits = reshape_part(place, 0, split, shape, 0, to_split, reshaped.strides) &&
                    reshape_part(place, split, place.shape.rank(), shape, to_split, shape.rank(),
                                 reshaped.strides);
  if (!fits) {
    throw MoveNeeded(node, {},
                     "model: " + node + ": reshapes a part of " + to_string(place.shape) +
                         " with strides " + to_string(place.strides) + " to " + to_string(shape) +
                         ", which no strides can say: this would move data");
  }
  return reshaped;
}

void require_side_by_side(const std::string& node, Value value, const Place& place) {
  if (place.shape.back() <= 1 || place.strides.back() == 1) return;
  throw MoveNeeded(node, value,
                   "model: " + node + ": " + to_string(place.shape) + " with strides " +
                       to_string(place.strides) +
                       ", expected a last stride of 1: this would move data");
}

void require_one_position_stride(const std::string& node, Value value, const Place& place) {
  if (place.shape.rank() < 5 || fold(place, 2, place.shape.rank() - 1).stride >= 0) return;
  throw MoveNeeded(node, value,
                   "model: " + node + ": " + to_string(place.shape) + " with strides " +
                       to_string(place.strides) +
                       ", expected positions that fold into rows of one stride: this would move "
                       "data");
}

void require_one_row_stride(const std::string& node, Value value, const Place& place) {
  require_side_by_side(node, value, place);
  if (fold(place, 0, place.shape.rank() - 1).stride >= 0) return;
  throw MoveNeeded(node, value,
                   "model: " + node + ": " + to_string(place.shape) + " with strides " +
                       to_string(place.strides) +
                       ", expected leading axes that fold into rows of one stride: this would move "
                       "data");
}

PlacedView rows_view(const Place& place, Device device) {
  Axes axes;
  const int last = place.shape.rank() - 1;
  for (int axis = 0; axis < last; ++axis) axes.add(place.shape[axis], place.strides[axis]);
  axes.add(place.num_members, place.member_stride);
  axes.add(place.shape[last], place.strides[last]);
  return placed(place, axes, device);
}

PlacedView joined_view(const std::string& node, const Place& place, Device device) {
  Axes axes;
  for (int axis = 0; axis < place.shape.rank(); ++axis) {
    const bool is_joined = axis == place.member_axis;
    const int64_t extent = place.shape[axis];
    if (is_joined && place.num_members > 1 && place.member_stride != extent * place.strides[axis]) {
      throw MoveNeeded(node, {},
                       "model: " + node + ": members are apart on axis " + std::to_string(axis) +
                           " of " + to_string(place.shape) +
                           ", expected them one after another: this would move data");
    }
    axes.add(is_joined ? extent * place.num_members : extent, place.strides[axis]);
  }
  return placed(place, axes, device);
}

PlacedView folded_view(const std::string& node, const Place& place, int split, Device device) {
  const Axis rows = fold(place, 0, split), features = fold(place, split, place.shape.rank());
  if (rows.stride < 0 || features.stride != 1) {
    throw MoveNeeded(node, {},
                     "model: " + node + ": " + to_string(place.shape) + " with strides " +
                         to_string(place.strides) +
                         " does not fold into rows of features: this would move data");
  }
  Axes axes;
  axes.add(rows.extent, rows.stride);
  axes.add(place.num_members, place.member_stride);
  axes.add(features.extent, 1);
  return placed(place, axes, device);
}

PlacedView matrices_view(const std::string& node, Value value, const Place& place, Device device) {
  require_side_by_side(node, value, place);
  const int rows = place.shape.rank() - 2;
  std::vector<Axis> lead;
  for (int axis = 0; axis <= rows; ++axis) {
    if (axis == place.member_axis) lead.push_back({place.num_members, place.member_stride});
    if (axis < rows) lead.push_back({place.shape[axis], place.strides[axis]});
  }
  const Axis matrices = fold(lead);
  if (place.member_axis > rows || matrices.stride < 0) {
    throw MoveNeeded(node, value,
                     "model: " + node + ": " + to_string(place.shape) + " with strides " +
                         to_string(place.strides) +
                         ", expected matrices of one stride: this would move data");
  }
  Axes axes;
  axes.add(place.shape[rows], place.strides[rows]);
  axes.add(matrices.extent, matrices.stride);
  axes.add(place.shape[rows + 1], 1);
  return placed(place, axes, device);
}

PlacedView without_members(const PlacedView& rows) {
  const Shape& shape = rows.view.shape;
  const Strides& strides = rows.view.strides;
  return rows.as({shape[0], shape[2]}, {strides[0], strides[2]});
}

PlacedView stacked_view(const Place& place, Device device) {
  Axes axes;
  axes.add(place.num_members, place.member_stride);
  for (int axis = 0; axis < place.shape.rank(); ++axis) {
    axes.add(place.shape[axis], place.strides[axis]);
  }
  return placed(place, axes, device);
}

PlacedView shared_view(const Place& place, Device device) {
  Axes axes;
  for (int axis = 0; axis < place.shape.rank(); ++axis) {
    axes.add(place.shape[axis], place.strides[axis]);
  }
  return placed(place, axes, device);
}

TensorView Bases::at(const PlacedView& placed) const {
  TensorView view = placed.view;
  if (placed.storage < 0) return view;
  const Storage& storage = storages[static_cast<size_t>(placed.storage)];
  const auto index = static_cast<size_t>(storage.index);
  std::byte* start = nullptr;
  if (is_example) {
    if (used != nullptr) used->push_back(placed.storage);
    view.data = weights + (placed.storage * kStorageSpacing);
    return view;
  }
  switch (storage.kind) {
    case MemoryKind::input:  // only ever read
      start = static_cast<std::byte*>(const_cast<void*>(inputs[index].data));
      break;
    case MemoryKind::output:
      start = static_cast<std::byte*>(outputs[index].data);
      break;
    case MemoryKind::weights:
      start = weights + storage.offset;
      break;
    case MemoryKind::activations:
      start = activations + storage.offset;
      break;
  }
  view.data = start + placed.offset * dtype_bytes(view.dtype);
  return view;
}

}  // namespace wide
