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

/// N + 1 entries: member i has rows [first[i], first[i + 1]) of the values; none where all members
/// have one batch.
std::vector<int64_t> first_rows(const ModelProblem& problem);

/// Whether members differ only in their rows: every sample is computed independently of its
/// member.
bool treats_rows_alike(const Lowering& l, const Node& node);

/// A node as with one member, on the rows of `member`, or of all (-1), for `num_members`.
void lower_selected(Lowering& l, const Node& node, int64_t member, int64_t num_members);

/// A node of a ragged model. Throws unsupported for one that joins members.
void lower_ragged(Lowering& l, const Node& node);

}  // namespace wide
