// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic on extents.
#include "wide/shape.hpp"

#include <algorithm>
#include <limits>

#include "host/core/check.hpp"
#include "wide/version.hpp"

namespace wide {

Dims::Dims(std::span<const int64_t> values) : rank_(static_cast<int>(values.size())) {
  WIDE_REQUIRE(values.size() <= kMaxRank, "shape: " + std::to_string(values.size()) +
                                              " dimensions, expected at most " +
                                              std::to_string(kMaxRank));
  std::copy(values.begin(), values.end(), values_.begin());
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int axis = 0; axis < dims.rank(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(dims[axis]);
  }
  return text + "]";
}

int64_t checked_bytes(const Shape& shape, int64_t element_bytes) {
  // Zero extents are left out of the product, so that they cannot hide an overflow of the others:
  // strides are products of the others.
  int64_t product = element_bytes;
  bool is_empty = false;
  for (const int64_t extent : shape) {
    WIDE_REQUIRE(extent >= 0, "shape: " + to_string(shape) + ", expected no extent below 0");
    if (extent == 0) {
      is_empty = true;
      continue;
    }
    WIDE_REQUIRE(product <= std::numeric_limits<int64_t>::max() / extent,
                 "shape: " + to_string(shape) +
                     (element_bytes == 1 ? " has more elements than fit in 64 bits"
                                         : " of " + std::to_string(element_bytes) +
                                               "-byte elements does not fit in 64 bits") +
                     ", expected fewer");
    product *= extent;
  }
  return is_empty ? 0 : product;
}

int64_t num_elements(const Shape& shape) {
  return checked_bytes(shape, 1);
}

Strides contiguous_strides(const Shape& shape) {
  (void)num_elements(shape);
  Strides strides = shape;
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

const char* version() {
#define WIDE_TEXT_OF(x) #x
#define WIDE_TEXT(x) WIDE_TEXT_OF(x)
  return WIDE_TEXT(WIDE_VERSION_MAJOR) "." WIDE_TEXT(WIDE_VERSION_MINOR) "." WIDE_TEXT(
      WIDE_VERSION_PATCH);
#undef WIDE_TEXT
#undef WIDE_TEXT_OF
}

}  // namespace wide
