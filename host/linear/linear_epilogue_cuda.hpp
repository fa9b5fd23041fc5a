// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The epilogue's operands as parameters of the kernels.
#pragma once

#include "kernels/linear/linear_params.hpp"
#include "wide/linear.hpp"

namespace wide {

kernels::LinearEpilogue linear_epilogue_of(const LinearProblem& problem,
                                           const LinearArguments& arguments);

}  // namespace wide
