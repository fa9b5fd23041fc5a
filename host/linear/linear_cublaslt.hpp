// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One cublasLtMatmul with its algorithm, found when the plan is made: cuBLASLt's heuristic offers
// several, best guess first; only measuring shows which is fastest.
#pragma once

#include <memory>
#include <string>

#include "host/linear/linear_strategy.hpp"
#include "wide/context.hpp"

namespace wide {

/// The most algorithms that cuBLASLt is asked for; its policies are heuristic_policy() of these.
inline constexpr int kMaxCublasLtCandidates = 64;

/// Immutable: may run from several threads at a time.
class CublasLtPlan {
 public:
  virtual ~CublasLtPlan() = default;
  /// Arguments are checked and not empty; the execution has workspace().bytes() and handles.
  virtual void run(const LinearArguments& arguments, const Execution& execution) const = 0;

  const LinearWorkspace& workspace() const { return workspace_; }
  const std::string& policy() const { return policy_; }
  /// Says what is fused, and how the algorithm was found.
  const std::string& explain() const { return explain_; }

 protected:
  LinearWorkspace workspace_;
  std::string policy_, explain_;
};

/// `policy`: one of cublaslt's, or empty. With `searches`, the candidates are measured on
/// operands of random numbers, allocated for that, on a stream of its own that is waited for.
/// Throws unsupported where cuBLASLt cannot start or has no algorithm for the problem.
std::shared_ptr<const CublasLtPlan> make_cublaslt_plan(const Context& context,
                                                       const LinearProblem& problem,
                                                       const std::string& policy, bool searches);

}  // namespace wide
