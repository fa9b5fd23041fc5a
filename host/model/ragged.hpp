// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Members with batches of their own. Values lie as those of one member would whose rows are all
// members', one member's behind the other's: what has no parameters runs on these as it is, and a
// member's rows are a slice of them, so that everything else runs on slices as it would with one
// member. A linear layer is one ragged_linear.
#pragma once

#include <vector>

#include "host/model/lowering.hpp"

namespace wide {

/// With the `batch` that its batches make. Throws invalid_argument for what no model can have.
ModelProblem checked_problem(ModelProblem problem);

/// N + 1 entries: member i has rows [first[i], first[i + 1]) of the values; none where all members
/// have one batch.
std::vector<int64_t> first_rows(const ModelProblem& problem);

/// A node of a ragged model. Throws unsupported for one that joins members.
void lower_ragged(Lowering& l, const Node& node);

}  // namespace wide
