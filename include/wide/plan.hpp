// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the plans of all primitives have in common.
//
// Every XPlan is immutable; copies share its state. It may run from several threads at a time, each
// with an Execution of its own. A plan that was moved from may only be assigned to or destroyed.
//
// prepare_weights() and restore_weights() take members' tensors on the plan's device, as the
// prepared ones are; a Model takes them from the CPU, too. copy() brings them there.
//
// Pointers are trusted: memory is where, and as large as, a view's device, dtype, shape and strides
// say. A host pointer in a view on CUDA is an illegal address there, found when the stream is
// waited for.
//
// Operands overlap if their address ranges do, from the first element to the last, gaps included: x
// and y as columns of one buffer overlap, even though they share no element.
//
// Members, unless a primitive joins them: under one strategy of ours, a member's bits depend on its
// own operands only, never on N or its neighbours; for another N vendors may round differently and
// "auto" may choose differently. Rows: a row's bits may depend on how many rows the call has, since
// strategies, tiles and the order of sums go by sizes; a primitive's header may promise more.
//
// Errors, unless a primitive's header adds to them; every message names what was wrong, what was
// got and what was expected:
//   describe_x    invalid_argument: operands that contradict each other or `like`
//   make_x_plan   invalid_argument: an impossible problem, an unknown strategy or policy;
//                 unsupported: the strategy that was asked for by name, or each that "auto" may
//                 choose, cannot run the problem on this device or in this build
//   run           invalid_argument: operands that contradict the problem, an operand or stream of
//                 another device, a workspace that is too small or not aligned, or no
//                 execution.handles where the strategy calls a vendor's library; unsupported:
//                 handles without that library
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace wide {

class TuningCache;

struct PlanOptions {
  /// A strategy's name (`wbench list strategies`), or "auto", which takes a kernel of ours for all
  /// members only where a real device of this compute capability has proved it right (`sequential`,
  /// vendors' calls, and what `tuning` compared with the reference are taken without). Or
  /// "auto_unverified": the same choice as if all had been. A strategy asked for by name runs or
  /// throws unsupported with the reason; there is no silent fallback.
  std::string strategy = "auto";
  /// One of the strategy's policies by name (`wbench list policies`), where the strategy is named
  /// and has any; empty: the strategy chooses. All members of a plan run by the same policy. Where
  /// they are "h0" to "h7", the strategy is a call of cuDNN's: its best guess that numerics allow
  /// and that it can run, the next, and so on; it chooses h0, and one that cuDNN has not is
  /// unsupported.
  std::string policy{};
  /// What "auto" looks the problem up in before it estimates; read while the plan is made, not
  /// kept. explain() says what was found there, or why it is not taken.
  const TuningCache* tuning = nullptr;
  /// Lets a strategy whose library offers several algorithms (cublaslt) measure them when the plan
  /// is made: that allocates operands, runs on a stream of its own and waits for it. Otherwise the
  /// library's own first choice is taken. run() never searches.
  bool search_algorithms = false;
};

/// Which vendors' libraries the runs of a plan call: their Execution needs VendorHandles that have
/// these. Known when the plan is made; neither where there is nothing to compute.
struct VendorCalls {
  bool cublas = false, cudnn = false;
  constexpr bool any() const { return cublas || cudnn; }
  VendorCalls& operator|=(const VendorCalls& other) {
    cublas |= other.cublas;
    cudnn |= other.cudnn;
    return *this;
  }
  friend bool operator==(const VendorCalls&, const VendorCalls&) = default;
};

/// What a plan is made of: the library's own.
template <class Problem>
struct PlanState;

/// What the plan of every primitive says of itself, fixed when it is made.
template <class Problem>
class PrimitivePlan {
 public:
  const Problem& problem() const;     ///< with all strides filled in
  std::string_view strategy() const;  ///< the one chosen
  /// The kernel's policy, or the library's algorithm; empty where the strategy has one way to run.
  std::string_view policy() const;
  /// Why this strategy, and what runs the parts of those that have any: one line.
  std::string explain() const;
  /// Bytes of workspace that run() needs, a multiple of 256; may be 0.
  int64_t workspace_bytes() const;
  VendorCalls vendor_calls() const;
  /// As prepare_weights() says; plans that store weights in several formats have their own.
  std::string_view weight_format() const { return "packed"; }

  using State = PlanState<Problem>;

 protected:
  explicit PrimitivePlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace wide
