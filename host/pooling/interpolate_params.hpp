// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From problems to what kernels are told, but for operands' addresses; and how many blocks that is.
#pragma once

#include "kernels/pooling/interpolate_params.hpp"
#include "wide/interpolate.hpp"

namespace wide {

kernels::InterpolateParams interpolate_params(const InterpolateProblem& problem);

/// Of one launch for so many of the problem's members, wherever operands lie; 0 where y is empty.
int64_t interpolate_launch_blocks(const InterpolateProblem& problem, int64_t members);

}  // namespace wide
