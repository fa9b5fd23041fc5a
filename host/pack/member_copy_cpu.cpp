// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Row by row: as many bytes at a time as are contiguous on both sides.
#include "host/core/byte_rows.hpp"
#include "host/pack/member_copy.hpp"

namespace wide {

void copy_members_cpu(std::span<const MemberCopy> copies) {
  for (const MemberCopy& copy : copies) {
    if (copy.source.num_elements() == 0) continue;
    for_each_block(byte_rows(copy.source, copy.destination.strides), copy.source.data,
                   copy.destination.data, copy_block);
  }
}

}  // namespace wide
