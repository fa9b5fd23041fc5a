// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// PTX names a new register for nearly every result, thousands in a large kernel. Each warp has its
// own, so that most of the host's caches would hold values that no instruction reads again: here
// registers whose lives do not overlap are given the same place.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "verify/ptx/instruction.hpp"

namespace wide::ptx {

struct RegisterPlaces {
  static constexpr int64_t kNone = -1;
  int64_t bytes = 0;             ///< of a warp's registers
  std::vector<int64_t> offsets;  ///< by a register's number before; kNone: nothing names it
};

/// Renumbers the registers of `code`, whose branches have their targets. What some path reads
/// before it is written is still found as the warp began with it. `kept` have places of their own:
/// asynchronous instructions touch them later than their place in the code says.
RegisterPlaces share_places(std::vector<Instruction>& code, int32_t num_registers,
                            const std::set<int32_t>& kept);

}  // namespace wide::ptx
