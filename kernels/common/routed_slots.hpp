// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The slots in which blocks find the rows that are routed to members, whatever the routing. Needs
// no CUDA header: a plan counts the blocks before there is a launch.
#pragma once

#include <cstdint>

namespace wide::kernels {

/// Member i's rows [f_i, f_(i+1)) have the slots from f_i / tile + i on, one for `tile` rows. As
/// ceil(c / tile) <= (f + c) / tile - f / tile + 1, these are no other member's, whatever the
/// routing; after the last member come the rows of none, as if they were one more's.
constexpr int64_t routed_slots(int64_t num_rows, int64_t num_members, int64_t tile) {
  return num_rows / tile + num_members + 1;
}

}  // namespace wide::kernels
