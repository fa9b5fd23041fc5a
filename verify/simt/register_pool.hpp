// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// setmaxnreg: warps of a block give registers to one another. What a block has is fixed when it is
// launched, so a warp that asks for more than the others give waits forever on a device.
#pragma once

#include "verify/simt/machine.hpp"

namespace wide::simt {

/// An executed setmaxnreg by these lanes.
void set_max_registers(Warp& warp, LaneMask lanes, int count, bool grows, Location at);

/// At the end of a block: whether its warps held no more than it has, and warpgroups the same.
void check_register_pool(const Block& block);

}  // namespace wide::simt
