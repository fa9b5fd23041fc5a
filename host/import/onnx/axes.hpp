// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The axis arithmetic of ONNX's operators, for constants and activations alike. Errors lack the
// node's name: the caller adds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "wide/shape.hpp"

namespace wide::onnx {

/// -1 is the last one.
int checked_axis(int64_t axis, int rank);
/// Marks `axes`, each of which may occur once.
std::vector<bool> marked_axes(const std::vector<int64_t>& axes, int rank);

/// Empty `axes`: all of extent 1.
std::vector<int64_t> squeezed(const Shape& shape, const std::vector<int64_t>& axes);
std::vector<int64_t> unsqueezed(const Shape& shape, const std::vector<int64_t>& axes);

struct SliceRange {
  int64_t first = 0, step = 1, count = 0;
};
/// One range for each axis. `extents` may have kBatch, of which all must be taken.
std::vector<SliceRange> slice_ranges(const Shape& shape, const std::vector<int64_t>& starts,
                                     const std::vector<int64_t>& ends, std::vector<int64_t> axes,
                                     std::vector<int64_t> steps);

/// Empty `perm`: the axes reversed.
Dims transpose_order(std::vector<int64_t> perm, int rank);

/// Empty `sizes`: equal parts, of which the last may be smaller if `may_be_uneven`; else throws.
std::vector<int64_t> split_sizes(int64_t extent, size_t num_parts, std::vector<int64_t> sizes,
                                 bool may_be_uneven);

/// Elements of `element_bytes` bytes, axis i of the result being axis order[i].
std::vector<std::byte> moved_axes(const std::byte* data, int64_t element_bytes, const Shape& shape,
                                  const Dims& order);

}  // namespace wide::onnx
