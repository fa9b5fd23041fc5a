// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Up to six 64-bit extents without an allocation: the shape of a tensor, or its strides.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace wide {

inline constexpr int kMaxRank = 6;

class Dims {
 public:
  constexpr Dims() = default;
  /// Throws invalid_argument for more than kMaxRank values.
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values);

  constexpr int rank() const { return rank_; }
  constexpr int64_t operator[](int axis) const { return values_[static_cast<size_t>(axis)]; }
  constexpr int64_t& operator[](int axis) { return values_[static_cast<size_t>(axis)]; }
  constexpr int64_t back() const { return values_[static_cast<size_t>(rank_ - 1)]; }
  constexpr const int64_t* begin() const { return values_.data(); }
  constexpr const int64_t* end() const { return values_.data() + rank_; }

  /// Unused places are zero, so that comparing all of them is comparing the used ones.
  friend constexpr bool operator==(const Dims&, const Dims&) = default;

 private:
  std::array<int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

using Shape = Dims;
using Strides = Dims;  ///< in elements, one per axis

/// "[4, 128, 64]"
std::string to_string(const Dims& dims);

/// Product of the extents; 1 for rank 0. Throws invalid_argument for a negative extent and for a
/// product that does not fit in int64_t (also where a zero extent would hide the overflow).
int64_t num_elements(const Shape& shape);

/// num_elements times the element size, checked likewise.
int64_t checked_bytes(const Shape& shape, int64_t element_bytes);

/// Row-major strides of a densely packed tensor.
Strides contiguous_strides(const Shape& shape);

}  // namespace wide
