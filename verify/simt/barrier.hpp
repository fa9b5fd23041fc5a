// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler tells barriers and collectives; what programs call is in machine.hpp.
#pragma once

#include "verify/simt/machine.hpp"

namespace wide::simt {

/// Lanes that exited are waited for no longer.
void lanes_exited(Warp& warp);
/// Arrivals that nobody waited for.
void report_unfinished_barriers(Block& block);

}  // namespace wide::simt
