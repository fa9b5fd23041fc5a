// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler tells barriers and collectives; what programs call is in machine.hpp.
#pragma once

#include "verify/simt/machine.hpp"

namespace wide::simt {

/// Lanes that exited are waited for no longer.
void lanes_exited(Warp& warp);
/// Where no thread can run: reports lanes that wait at a barrier for the rest of their warp, and
/// lets them arrive without it, as hardware may. Whether there were any.
bool part_barriers(Block& block);
/// Arrivals that nobody waited for.
void report_unfinished_barriers(Block& block);

}  // namespace wide::simt
