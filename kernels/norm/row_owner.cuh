// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows that are routed find their member by an id each: one load, beside those of the row.
#pragma once

#include "kernels/arch/load.cuh"
#include "kernels/norm/row_norm.hpp"

namespace wide::kernels {

/// Whose parameters a row has.
struct RowOwner {
  int64_t member;
  bool is_computed, becomes_zeros = false;

  /// `own`: the member, where rows are not routed. After the wait for the preceding kernel.
  __device__ RowOwner(const RowOwners& owners, int64_t row, bool exists, int64_t own)
      : member(own), is_computed(exists) {
    if (owners.ids == nullptr || !exists) return;
    const int64_t id = owners.is_int64 ? arch::load(static_cast<const int64_t*>(owners.ids) + row)
                                       : arch::load(static_cast<const int32_t*>(owners.ids) + row);
    const uint64_t above = static_cast<uint64_t>(id) - static_cast<uint64_t>(owners.first_id);
    const bool is_member = above < static_cast<uint64_t>(owners.num_members);
    const int64_t found = is_member ? static_cast<int64_t>(above) : RowOwners::kNobody;
    const bool is_meant = owners.only == RowOwners::kAll || owners.only == found;
    member = is_member ? found : 0;
    is_computed = is_member && is_meant;
    becomes_zeros = !is_member && is_meant;
  }
};

}  // namespace wide::kernels
