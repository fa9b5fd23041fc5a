// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/lowering.hpp"
#include "wide/ensemble.hpp"

namespace wide {

/// An x that is one for all members is read for each member: the same value every time.
void lower(Lowering& l, const Node& node, const EnsembleOp& op) {
  const int64_t members = l.members_of(node);
  const PlacedView x = l.rows(node, "x"), y = l.rows(node, node.outputs[0]);
  const PlacedView mask = l.own_parameter(Dtype::uint8, 1, l.mask_storage).as({members});
  const auto arguments = [=](const Bases& at) {
    return EnsembleArguments{.x = at.at(x), .mask = at.at(mask), .y = at.at(y)};
  };
  EnsembleProblem like;
  like.num_members = members;
  like.function = op.ensemble;
  l.add(node, "ensemble", "ensemble", describe_ensemble(arguments(l.example()), like),
        make_ensemble_plan, arguments);
}

}  // namespace wide
