// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wide/model_plan.hpp"

namespace wide {

/// With `batch` set from its batches. Throws invalid_argument for what no model can have.
ModelProblem checked_problem(ModelProblem problem);

}  // namespace wide
