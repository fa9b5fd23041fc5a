// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows that are routed to members on the device. Values lie like those of a single member that has
// all rows, each row in its place whoever computes it: nodes without parameters run on these
// directly, and a linear layer is one routed_linear, or several of them one routed_mlp, which reads
// and writes rows where they are. Norms of rows look up whose parameters each has.
//
// Where K members run each row, what members compute has K rows for each of the batch, one after
// another; layers gather their rows of what is there once, and copies repeat it for other nodes.
#pragma once

#include <vector>

#include "host/model/lowering.hpp"

namespace wide {

/// The same graph with inputs that are one for all members: all rows are. What depends on shared
/// parameters only is computed once then.
Graph with_shared_inputs(const Graph& graph);

/// Rows of the batch times choices.
int64_t rows_of_choices(const ModelProblem& problem);
/// Of a row, where members are chosen by them.
int64_t scores_of(const ModelProblem& problem);
/// Whether outputs are sums over a row's members, or times a gate.
bool is_mixture(const ModelProblem& problem);

/// Whether a value of a routed model has a row for each member of a row of the batch: members
/// compute it, or it depends on what they compute. Of other models none has.
std::vector<bool> values_of_choices(const ModelProblem& problem, const Graph& graph,
                                    const std::vector<bool>& is_shared);

/// [batch*K, ..] as [batch, ..] of K members.
Place choices_apart(Place place, int64_t choices);

/// The steps before all nodes: a routing of the run's last input, the members' ids of the rows, or
/// of ids that are chosen by scores.
void lower_routing(Lowering& l);

/// The steps after all nodes: an output of the caller's out of what a row's members computed.
void lower_combination(Lowering& l, const OutputCopy& output);

/// A node of a routed model. Throws unsupported for one in which members have parameters, but for
/// linear layers and norms of rows, and for one that joins members.
void lower_routed(Lowering& l, const Node& node);

}  // namespace wide
