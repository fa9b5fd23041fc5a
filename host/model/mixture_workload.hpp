// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a mixture of experts takes where each expert is a model of its own: rows are gathered in the
// order of their experts, each expert runs on its own, and results are scaled and added up.
#pragma once

#include <span>
#include <vector>

#include "host/model/random_routing.hpp"
#include "wide/catalog.hpp"
#include "wide/model.hpp"

namespace wide::catalog {

/// Dense, as the plan of the mixture has them: the graph's inputs, those of its router, outputs.
struct MixtureOperands {
  std::vector<ConstTensorView> inputs, router_inputs;
  std::vector<TensorView> outputs;
};

/// Before all members top_k, if they are chosen by scores, the routing, and one gathering of each
/// input; after them the gates and one sum of each output. `routing` is of these inputs. What
/// follows from it is given, not computed: how many rows a member has, which a device would have to
/// tell the host, which rows of inputs these are, and where their results lie.
PreparedMembers make_mixture_baseline(const Context& context, const Graph& graph,
                                      const ModelProblem& problem, const RandomRouting& routing,
                                      std::span<const MemberParameters> members,
                                      MixtureOperands operands);

}  // namespace wide::catalog
