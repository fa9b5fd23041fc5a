// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows that are routed to members on the device. Values lie like those of a single member that has
// all rows, each row in its place whoever computes it: nodes without parameters run on these
// directly, and a linear layer is one routed_linear, or several of them one routed_mlp, which reads
// and writes rows where they are.
#pragma once

#include "host/model/lowering.hpp"

namespace wide {

/// The same graph with inputs that are one for all members: all rows are. What depends on shared
/// parameters only is computed once then.
Graph with_shared_inputs(const Graph& graph);

/// The step that makes a routing of the run's last input, the members' ids of the rows.
void lower_routing(Lowering& l);

/// A node of a routed model. Throws unsupported for one in which members have parameters, but for
/// linear layers, and for one that joins members.
void lower_routed(Lowering& l, const Node& node);

}  // namespace wide
