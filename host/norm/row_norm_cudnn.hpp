// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Layernorm and rmsnorm by cuDNN, whose norms take dense rows and one scale for all of them: in one
// call the rows of one member, or of all members where these have no parameters. Where members lie
// side by side, a member's rows have gaps between them, which cuDNN does not take: there the
// baseline's separate calls are cuDNN's, but `sequential` is only where members are stacked.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "host/cudnn/cudnn_wide_plan.hpp"
#include "host/norm/row_norm.hpp"

namespace wide {

/// Why cuDNN cannot express the problem; empty where it can.
std::string row_norm_cudnn_unsupported_reason(const ChainProblem& problem);
/// Why a plan of cuDNN's, which is made without operands, cannot run on these; empty where it can.
std::string row_norm_cudnn_unsupported_reason(const ChainArguments& arguments);

/// The problem in cuDNN's terms. Ids are of tensors in memory, or kNoCudnnTensor.
struct RowNormCudnnGraph {
  CudnnGraph graph;
  CudnnRowNorm operation;
};
RowNormCudnnGraph describe_row_norm_cudnn(const ChainProblem& problem);
/// Addresses for all of the graph's tensors in memory.
CudnnBindings bind_row_norm_cudnn(const RowNormCudnnGraph& graph, const ChainArguments& arguments);

/// The graph with its plan, in the words of layernorm, rmsnorm or chain.
class RowNormCudnn {
 public:
  /// By the configuration at `place`, as make_cudnn_plan() has it. Throws unsupported with the
  /// reason where cuDNN cannot run the problem, or is missing.
  RowNormCudnn(const CudnnDevice& device, const ChainProblem& problem, int place = 0);
  template <class Problem>
  RowNormCudnn(const CudnnDevice& device, const Problem& problem, int place = 0)
      : RowNormCudnn(device, to_chain(problem), place) {}

  /// Why it cannot run the problem's members one by one; empty where it may.
  static std::string member_reason(const ChainProblem& problem);
  template <class Problem>
  static std::string member_reason(const Problem& problem) {
    return member_reason(to_chain(problem));
  }
  /// Member n's operands, by address alone.
  template <class Problem, class Arguments>
  static Arguments member_of(const Problem& problem, const Arguments& arguments, int64_t n) {
    Arguments own = arguments;
    const ChainArguments one = member_of(to_chain(problem), to_chain(arguments), n);
    own.x = one.x;
    own.y = one.y;
    own.gamma = one.gamma;
    if constexpr (requires { own.beta; }) own.beta = one.beta;
    return own;
  }
  static ChainArguments member_of(const ChainProblem& problem, const ChainArguments& arguments,
                                  int64_t n);

  int64_t workspace_bytes() const { return plan_->workspace_bytes(); }
  const std::string& explain() const { return plan_->explain(); }
  /// For operands without an unsupported reason.
  void run(const ChainArguments& arguments, const Execution& execution) const;
  template <class Arguments>
  void run(const Arguments& arguments, const Execution& execution) const {
    run(to_chain(arguments), execution);
  }

 private:
  RowNormCudnnGraph graph_;
  std::shared_ptr<const CudnnPlan> plan_;
};

/// Of a plan that may be cuDNN's.
CudnnWideParts row_norm_cudnn_parts(std::string_view primitive, const Context& context,
                                    const ChainProblem& problem);

/// run() of a plan with this state, a CudnnWideState.
template <class State, class Arguments>
void run_rows_or_cudnn(std::string_view primitive, const State& s, const Arguments& given,
                       const Execution& execution, int64_t workspace_bytes) {
  require_rows(primitive, s, given);
  require_workspace(primitive, execution, workspace_bytes);
  const NvtxRange range(s.range.c_str());
  const auto reason = [](const Arguments& a) {
    return row_norm_cudnn_unsupported_reason(to_chain(a));
  };
  if (s.has_run(primitive, reason, given, execution)) return;
  run_row_norm(s.context, to_chain(s.problem), s.own_strategy(), to_chain(given), execution.stream);
}

}  // namespace wide
