// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The bytes that a bulk copy moves, as rows: a row is consecutive in global memory and, up to the
// swizzle's permutation of its 16-byte pieces, in shared memory. What a row has outside the tensor
// is filled on the way in and skipped on the way out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "verify/simt/tensor_map.hpp"

namespace wide::simt {

class BulkRegion {
 public:
  /// `bytes` in a row.
  BulkRegion(uint32_t shared, uint64_t global, int64_t bytes);
  /// The box of a tensor map at its coordinates, as many as it has dimensions.
  BulkRegion(uint32_t shared, const TensorMap& map, std::span<const int32_t> coordinates);

  /// The same as a store, which cuts rows off at whole 16 bytes of the innermost dimension: beyond
  /// its extent it writes up to the next ones, as H100s were seen to do
  /// (github.com/triton-lang/triton, issue 11583).
  BulkRegion as_store() const;

  uint32_t shared() const { return shared_; }
  int64_t row_bytes() const { return row_bytes_; }
  int64_t num_rows() const { return count_[0] * count_[1] * count_[2] * count_[3]; }
  int64_t bytes() const { return num_rows() * row_bytes_; }  ///< in shared memory

  /// A row's bytes [begin, end) lie in the tensor, the first of them at `global`.
  struct Row {
    int64_t index;
    uint64_t global;
    int64_t begin, end;
  };
  /// Calls function(Row) for all rows, in the order in which they lie in shared memory.
  template <class Function>
  void for_rows(const Function& function) const;

  /// From rows to shared memory and back. `row` has row_bytes(), `tile` is what lies at shared().
  void scatter(std::byte* tile, int64_t index, const std::byte* row) const;
  void gather(const std::byte* tile, int64_t index, std::byte* row) const;
  /// Fills what lies outside the tensor.
  void fill(std::byte* row, int64_t bytes) const;

 private:
  template <class Function>
  void for_pieces(int64_t index, const Function& function) const;

  uint32_t shared_;
  Swizzle swizzle_ = Swizzle::none;
  bool fills_nan_ = false;
  int element_bytes_ = 1;
  uint64_t global_;  ///< of the first row's begin_
  int64_t row_bytes_;
  int64_t begin_ = 0, end_;  ///< of every row that lies in the tensor
  // Dimensions 1 to 4: rows, the distance between them, and which of them lie in the tensor.
  std::array<int64_t, 4> count_{1, 1, 1, 1}, step_bytes_{}, first_{}, last_{0, 0, 0, 0};
};

template <class Function>
void BulkRegion::for_rows(const Function& function) const {
  const int64_t count = num_rows();
  std::array<int64_t, 4> at{};
  for (int64_t index = 0; index < count; ++index) {
    uint64_t global = global_;
    bool is_inside = begin_ < end_;
    for (size_t i = 0; i < at.size(); ++i) {
      global += static_cast<uint64_t>(at[i] * step_bytes_[i]);
      is_inside = is_inside && at[i] >= first_[i] && at[i] <= last_[i];
    }
    function(Row{index, global, is_inside ? begin_ : 0, is_inside ? end_ : 0});
    for (size_t i = 0; i < at.size() && ++at[i] == count_[i]; ++i) at[i] = 0;
  }
}

}  // namespace wide::simt
