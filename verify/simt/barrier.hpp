// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler tells barriers and collectives; what programs call is in machine.hpp.
#pragma once

#include <bit>
#include <functional>

#include "verify/simt/machine.hpp"

namespace wide::simt {

template <class Function>
void for_lanes(LaneMask lanes, const Function& function) {
  for (; lanes != 0; lanes &= lanes - 1) function(std::countr_zero(lanes));
}

/// Lanes at an instruction that `pass` carries out, and says of whether they go on; else they are
/// blocked. Where it is aligned and the rest of their warp has not come, they wait for it first.
bool reach_together(Warp& warp, Path& path, LaneMask lanes, bool is_aligned, const char* waits_for,
                    Location at, const std::function<bool(LaneMask)>& pass);
/// Lanes that exited are waited for no longer.
void lanes_exited(Warp& warp);
/// Where no thread can run: reports lanes that wait at a barrier for the rest of their warp, and
/// lets them arrive without it, as hardware may. Whether there were any.
bool part_barriers(Block& block);
/// Arrivals that nobody waited for.
void report_unfinished_barriers(Block& block);

}  // namespace wide::simt
