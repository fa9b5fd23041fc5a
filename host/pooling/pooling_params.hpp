// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From problems to what kernels are told, but for operands' addresses; and how many blocks that is.
#pragma once

#include "kernels/pooling/pooling_params.hpp"
#include "wide/pooling.hpp"

namespace wide {

kernels::PoolingParams pooling_params(const PoolingProblem& problem);

/// Of one launch for so many of the problem's members, wherever operands lie; 0 where y is empty.
int64_t pooling_launch_blocks(const PoolingProblem& problem, int64_t members);

}  // namespace wide
