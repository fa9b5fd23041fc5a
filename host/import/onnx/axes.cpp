// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The axis arithmetic of ONNX's operators.
#include "host/import/onnx/axes.hpp"

#include <algorithm>
#include <numeric>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "wide/graph.hpp"

namespace wide::onnx {

int checked_axis(int64_t axis, int rank) {
  WIDE_REQUIRE(axis >= -rank && axis < rank,
               "has axis " + std::to_string(axis) + ", expected one of " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<bool> marked_axes(const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> marked(static_cast<size_t>(rank));
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(checked_axis(axis, rank));
    WIDE_REQUIRE(!marked[at], "has axis " + std::to_string(axis) + " twice");
    marked[at] = true;
  }
  return marked;
}

std::vector<int64_t> squeezed(const Shape& shape, const std::vector<int64_t>& axes) {
  const std::vector<bool> marked = marked_axes(axes, shape.rank());
  std::vector<int64_t> kept;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_squeezed = axes.empty() ? shape[axis] == 1 : marked[static_cast<size_t>(axis)];
    if (!is_squeezed) kept.push_back(shape[axis]);
    if (is_squeezed && shape[axis] == kBatch) throw_unsupported("squeezes the batch");
    WIDE_REQUIRE(!is_squeezed || shape[axis] == 1,
                 "squeezes axis " + std::to_string(axis) + ", expected an extent of 1");
  }
  return kept;
}

std::vector<int64_t> unsqueezed(const Shape& shape, const std::vector<int64_t>& axes) {
  WIDE_REQUIRE(axes.size() <= static_cast<size_t>(kMaxRank - shape.rank()),
               "makes more than " + std::to_string(kMaxRank) + " axes");
  const int rank = shape.rank() + static_cast<int>(axes.size());
  const std::vector<bool> marked = marked_axes(axes, rank);
  std::vector<int64_t> extents;
  for (int axis = 0, from = 0; axis < rank; ++axis)
    extents.push_back(marked[static_cast<size_t>(axis)] ? 1 : shape[from++]);
  return extents;
}

std::vector<SliceRange> slice_ranges(const Shape& shape, const std::vector<int64_t>& starts,
                                     const std::vector<int64_t>& ends, std::vector<int64_t> axes,
                                     std::vector<int64_t> steps) {
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  WIDE_REQUIRE(!starts.empty() && starts.size() == ends.size() && axes.size() == starts.size() &&
                   steps.size() == starts.size(),
               "slices with " + std::to_string(starts.size()) + " starts, " +
                   std::to_string(ends.size()) + " ends, " + counted(axes.size(), "axis", "axes") +
                   " and " + counted(steps.size(), "step") + ", expected as many of each");
  (void)marked_axes(axes, shape.rank());
  std::vector<SliceRange> ranges;
  for (const int64_t extent : shape) ranges.push_back({0, 1, extent});
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = checked_axis(axes[i], shape.rank());
    const int64_t extent = shape[axis], step = steps[i];
    WIDE_REQUIRE(step != 0, "slices in steps of 0");
    if (extent == kBatch) {
      const bool is_all = starts[i] == 0 && ends[i] >= INT32_MAX && step == 1;
      if (!is_all) throw_unsupported("slices the batch");
      continue;
    }
    const auto clamped = [&](int64_t at, int64_t least, int64_t most) {
      return std::clamp(at < 0 && at >= -extent ? at + extent
                        : at < 0                ? int64_t{-1}
                                                : at,
                        least, most);
    };
    const int64_t first = clamped(starts[i], 0, step > 0 ? extent : extent - 1);
    const int64_t end = step > 0 ? clamped(ends[i], 0, extent) : clamped(ends[i], -1, extent - 1);
    const int64_t span = step > 0 ? end - first : first - end;
    const int64_t stride = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
    const int64_t count = span <= 0 || extent == 0 ? 0 : (span - 1) / stride + 1;
    ranges[static_cast<size_t>(axis)] = {first, step, count};
  }
  return ranges;
}

Dims transpose_order(std::vector<int64_t> perm, int rank) {
  if (perm.empty()) {
    for (int axis = rank; axis-- > 0;) perm.push_back(axis);
  }
  WIDE_REQUIRE(std::ssize(perm) == rank, "has an order of " + counted(perm.size(), "axis", "axes") +
                                             ", expected " + std::to_string(rank));
  (void)marked_axes(perm, rank);
  for (int64_t& axis : perm) axis = checked_axis(axis, rank);
  return Dims(perm);
}

std::vector<int64_t> split_sizes(int64_t extent, size_t num_parts, std::vector<int64_t> sizes,
                                 bool may_be_uneven) {
  const auto parts = static_cast<int64_t>(num_parts);
  if (sizes.empty()) {
    WIDE_REQUIRE(may_be_uneven || extent % parts == 0,
                 "splits " + std::to_string(extent) + " into " + std::to_string(parts) +
                     " parts without num_outputs, expected equal ones");
    const int64_t size = (extent + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i)
      sizes.push_back(std::clamp<int64_t>(extent - i * size, 0, size));
  }
  int64_t total = 0;
  bool is_sound = std::ssize(sizes) == parts;
  for (const int64_t size : sizes) {
    is_sound = is_sound && size >= 0 && size <= extent - total;
    total += is_sound ? size : 0;
  }
  WIDE_REQUIRE(is_sound && total == extent, "splits " + std::to_string(extent) + " into " +
                                                std::to_string(parts) +
                                                " parts whose sizes do not fit");
  return sizes;
}

std::vector<std::byte> moved_axes(const std::byte* data, int64_t element_bytes, const Shape& shape,
                                  const Dims& order) {
  std::vector<std::byte> out(static_cast<size_t>(checked_bytes(shape, element_bytes)));
  const Strides strides = contiguous_strides(shape);
  Dims place = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) place[axis] = 0;
  for (size_t to = 0; to < out.size(); to += static_cast<size_t>(element_bytes)) {
    int64_t from = 0;
    for (int axis = 0; axis < order.rank(); ++axis)
      from += place[axis] * strides[static_cast<int>(order[axis])];
    std::copy_n(data + from * element_bytes, element_bytes,
                out.begin() + static_cast<std::ptrdiff_t>(to));
    for (int axis = order.rank(); axis-- > 0;) {
      if (++place[axis] < shape[static_cast<int>(order[axis])]) break;
      place[axis] = 0;
    }
  }
  return out;
}

}  // namespace wide::onnx
