// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routing: which rows of a batch go to which member, where the device alone knows: experts, agents
// of several kinds, networks of parts of a space.
//
// A routing is the rows in the order of their members: member i's are order[first_rows[i]], ...,
// order[first_rows[i + 1] - 1]. Row r and member i are plain numbers, so that a routing may come
// from elsewhere, too. routed_linear.hpp computes with it; a new routing needs no new plan.
#pragma once

#include <memory>
#include <utility>

#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct RoutingProblem {
  int64_t num_members = 1;        ///< up to 2^31 - 1
  int64_t num_rows = 0;           ///< R, ids of a call; up to 2^31 - 1
  int64_t first_id = 0;           ///< of member 0, >= 0: members may be a part of all there are
  Dtype id_dtype = Dtype::int64;  ///< int32 or int64
  friend bool operator==(const RoutingProblem&, const RoutingProblem&) = default;
};

struct RoutingArguments {
  ConstTensorView ids;    ///< [R] or [B, K] with B*K = R, contiguous: id[b, k] is row b*K + k's
  TensorView first_rows;  ///< int32 [N + 1]
  TensorView order;       ///< int32 [R]
};

/// Reads the problem off the operands; `like` gives what they do not show: first_id.
RoutingProblem describe_routing(const RoutingArguments& arguments, const RoutingProblem& like = {});

extern template class PrimitivePlan<RoutingProblem>;

/// There are no parameters, so nothing is prepared.
class RoutingPlan : public PrimitivePlan<RoutingProblem> {
 public:
  /// first_rows[i] = the number of rows r with 0 <= ids[r] - first_id < i
  /// order = the rows of member 0 in ascending order, then those of member 1, ..; the rows that are
  ///         of no member, because their id is not in [first_id, first_id + N), come last, in
  ///         ascending order, too. Such a row is no error: a negative id drops a row.
  /// Layout: as RoutingArguments says, contiguous. No operand overlaps another.
  /// Types: ids int32 or int64; first_rows and order int32.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured:
  ///         what is launched depends on the problem only, never on the ids.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, unsupported, cuda: see plan.hpp.
  /// Threads: safe with an Execution each.
  void run(const RoutingArguments& arguments, const Execution& execution) const;

 private:
  friend RoutingPlan make_routing_plan(const Context&, const RoutingProblem&, const PlanOptions&);
  explicit RoutingPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes the strategy. On CUDA a block of `wide` has counters for all members, which limits their
/// number by its shared memory (8000 are not too many on any device); beyond, "auto" is
/// `sequential`. Errors: see plan.hpp.
RoutingPlan make_routing_plan(const Context& context, const RoutingProblem& problem,
                              const PlanOptions& options = {});

}  // namespace wide
