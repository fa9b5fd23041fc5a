// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Row by row: memcpy where the innermost axis is contiguous on both sides.
#include <cstring>

#include "host/pack/member_copy.hpp"

namespace wide {

namespace {

void copy_row(const MemberCopy& copy, const char* source, char* destination) {
  const int inner = copy.source.rank() - 1;
  const int64_t bytes = dtype_bytes(copy.source.dtype);
  const int64_t count = inner < 0 ? 1 : copy.source.shape[inner];
  const int64_t from_step = inner < 0 ? 1 : copy.source.strides[inner];
  const int64_t to_step = inner < 0 ? 1 : copy.destination.strides[inner];
  if (count == 1 || (from_step == 1 && to_step == 1)) {
    std::memcpy(destination, source, static_cast<size_t>(count * bytes));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * to_step * bytes, source + i * from_step * bytes,
                static_cast<size_t>(bytes));
  }
}

void copy_axes(const MemberCopy& copy, int axis, const char* source, char* destination) {
  if (axis >= copy.source.rank() - 1) return copy_row(copy, source, destination);
  const int64_t bytes = dtype_bytes(copy.source.dtype);
  for (int64_t i = 0; i < copy.source.shape[axis]; ++i) {
    copy_axes(copy, axis + 1, source + i * copy.source.strides[axis] * bytes,
              destination + i * copy.destination.strides[axis] * bytes);
  }
}

}  // namespace

void copy_members_cpu(std::span<const MemberCopy> copies) {
  for (const MemberCopy& copy : copies) {
    if (copy.source.num_elements() == 0) continue;
    copy_axes(copy, 0, static_cast<const char*>(copy.source.data),
              static_cast<char*>(copy.destination.data));
  }
}

}  // namespace wide
