// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/norm/row_norm_cudnn.hpp"

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/pointer.hpp"

namespace wide {

namespace {

/// Whether rows of all members lie one after another, those of a batch row first.
bool are_side_by_side(const ChainProblem& p, const RowStrides& s) {
  return (p.num_members == 1 || s.member == p.features) &&
         (p.rows == 1 || s.row == p.num_members * p.features);
}
/// The same, those of a member first.
bool are_stacked(const ChainProblem& p, const RowStrides& s) {
  return (p.rows == 1 || s.row == p.features) &&
         (p.num_members == 1 || s.member == p.rows * p.features);
}

bool are_dense(const ChainProblem& p) {
  return (are_side_by_side(p, p.x) && are_side_by_side(p, p.y)) ||
         (are_stacked(p, p.x) && are_stacked(p, p.y));
}

}  // namespace

std::string row_norm_cudnn_unsupported_reason(const ChainProblem& p) {
  const bool is_layernorm = p.norm == ChainNorm::layernorm;
  if (p.id_dtype) return "cuDNN's norms have no rows routed by ids";
  if (p.has_residual || p.has_sum) return "cuDNN's norms add no residual";
  if (is_layernorm && p.has_gamma != p.has_beta)
    return "cuDNN's layernorm wants gamma and beta, or neither";
  if (p.num_members > 1 && p.has_gamma)
    return "cuDNN's norms have one gamma for all rows, and members have their own";
  return are_dense(p) ? "" : "cuDNN's norms take rows without gaps between them";
}

std::string row_norm_cudnn_unsupported_reason(const ChainArguments& a) {
  if (may_overlap(a.x, a.y)) return "y is x itself, which cuDNN's documentation does not allow";
  return cudnn_alignment_reason({{"x", a.x}, {"gamma", a.gamma}, {"beta", a.beta}, {"y", a.y}});
}

RowNormCudnnGraph describe_row_norm_cudnn(const ChainProblem& p) {
  RowNormCudnnGraph g;
  const auto bind = [&](int64_t rows) {
    return g.graph.bind(cudnn_type(p.dtype), {rows, p.features, 1, 1}, {p.features, 1, 1, 1});
  };
  CudnnRowNorm& o = g.operation;
  o.has_mean = p.norm == ChainNorm::layernorm;
  o.x = bind(p.num_members * p.rows);
  o.y = bind(p.num_members * p.rows);
  if (p.has_gamma) o.scale = bind(1);
  if (p.has_beta) o.bias = bind(1);
  o.epsilon = g.graph.number(p.epsilon, 4);
  g.graph.append(o);
  return g;
}

CudnnBindings bind_row_norm_cudnn(const RowNormCudnnGraph& g, const ChainArguments& a) {
  const CudnnRowNorm& o = g.operation;
  return {{o.x, a.x}, {o.y, a.y}, {o.scale, a.gamma}, {o.bias, a.beta}};
}

RowNormCudnn::RowNormCudnn(const CudnnDevice& device, const ChainProblem& problem, int place) {
  const std::string name(chain_norm_name(problem.norm));
  const std::string reason = row_norm_cudnn_unsupported_reason(problem);
  if (!reason.empty()) throw_unsupported(name + ": cudnn: " + reason);
  graph_ = describe_row_norm_cudnn(problem);
  // Nothing is multiplied and summed: an engine's note on tensor cores is irrelevant.
  plan_ = make_cudnn_plan(name, device, graph_.graph, {.allows_tensor_cores = true}, place);
}

std::string RowNormCudnn::member_reason(const ChainProblem& p) {
  if (p.num_members == 1) return "";
  return member_alignment_reason(
      p.dtype, {p.x.member, p.y.member, p.gamma_member_stride, p.beta_member_stride});
}

ChainArguments RowNormCudnn::member_of(const ChainProblem& p, const ChainArguments& a, int64_t n) {
  const int64_t bytes = dtype_bytes(p.dtype);
  ChainArguments own = member_operands(p, a, n);
  own.gamma.data = advanced(a.gamma.data, n * p.gamma_member_stride, bytes);
  own.beta.data = advanced(a.beta.data, n * p.beta_member_stride, bytes);
  return own;
}

void RowNormCudnn::run(const ChainArguments& arguments, const Execution& execution) const {
  const std::string_view name = graph_.operation.has_mean ? "layernorm" : "rmsnorm";
  plan_->run(require_cudnn(name, execution, arguments.x.device),
             bind_row_norm_cudnn(graph_, arguments),
             {execution.workspace.data, plan_->workspace_bytes()}, execution.stream);
}

CudnnWideParts row_norm_cudnn_parts(std::string_view primitive, const Context& context,
                                    const ChainProblem& p) {
  return {p.rows * p.features == 0, is_wide_verified(primitive, context), row_norm_launches(p),
          "operands are not aligned to 16 bytes, or y is x"};
}

}  // namespace wide
