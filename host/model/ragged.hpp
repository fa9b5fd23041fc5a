// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members with batches of their own. Values lie like those of a single member that has all members'
// rows, one member's after another's: nodes without parameters run on these directly, and a
// member's rows are a slice of them, so that all other nodes run on slices as with one
// member. A linear layer is one ragged_linear.
#pragma once

#include <vector>

#include "host/model/lowering.hpp"

namespace wide {

/// With `batch` set from its batches. Throws invalid_argument for what no model can have.
ModelProblem checked_problem(ModelProblem problem);

/// N + 1 entries: member i has rows [first[i], first[i + 1]) of the values; none where all members
/// have one batch.
std::vector<int64_t> first_rows(const ModelProblem& problem);

/// A node of a ragged model. Throws unsupported for one that joins members.
void lower_ragged(Lowering& l, const Node& node);

}  // namespace wide
