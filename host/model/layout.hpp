// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The position of members among the axes of every value of a graph, so that each node can read its
// operands in place. Where that is impossible, MoveNeeded names the node that needs a copy.
//
// Members stand in front of one axis of a member's shape. In front of the last one they are packed
// as linear's x is, [B, T, N*D]; in front of axis 1 as conv's, [B, N*C, H, W]; in front of the
// batch they are stacked, [N, B, ..], which every primitive with features last reads as well, and
// which survives reshapes that the others do not: [B, T, D] to [B, T*D].
#pragma once

#include <cstdint>
#include <vector>

#include "wide/graph.hpp"

namespace wide {

/// Throws invalid_argument for names that the graph as given does not have: a pass removes
/// parameters that are no longer read.
void check_shared_parameters(const Graph& source, const std::vector<std::string>& names);

/// Whether a value is one for all members: it depends on shared inputs and shared parameters only.
/// Names of removed parameters are ignored. `drops_out`: dropout makes members differ.
std::vector<bool> shared_values(const Graph& graph,
                                const std::vector<std::string>& shared_parameters, bool drops_out);

/// The axis that members stand in front of, for every value; -1 for shared values and parameters.
/// Throws MoveNeeded with the node whose operands cannot be arranged.
std::vector<int> choose_member_axes(const Graph& graph, const std::vector<bool>& is_shared);

/// Where the axis may go in a reshape: bit a for each axis a of `to` with as many elements in front
/// of it. Axes of one element have as many in front as the next one.
uint32_t reshaped_axes(const Shape& from, const Shape& to, int axis);

}  // namespace wide
