// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN recognises attention by the pattern of its operations: product, scale, mask, the steps of a
// softmax with its statistics, product. Omitting or moving one makes another pattern, which is
// refused.
#include "host/attention/flash_attention_cudnn.hpp"

#include <limits>

#include "host/core/plan_checks.hpp"
#include "host/core/pointer.hpp"
#include "host/core/text.hpp"

namespace wide {

namespace {

using enum CudnnFunction;

/// Whether members lie side by side as heads in all four operands.
bool are_heads(const FlashAttentionProblem& p) {
  const int64_t features = p.heads * p.head_dim, kv_features = p.kv_heads * p.head_dim;
  return p.num_members == 1 || (p.q.member == features && p.y.member == features &&
                                p.k.member == kv_features && p.v.member == kv_features);
}

/// Whether batch rows of all members, member after member, are as far apart as a member's.
bool are_batch_rows(const FlashAttentionProblem& p) {
  const auto follows = [&](const RowStrides& s, int64_t seq) {
    return p.batch == 1 || s.member == p.batch * seq * s.row;
  };
  return follows(p.q, p.seq) && follows(p.y, p.seq) && follows(p.k, *p.kv_seq) &&
         follows(p.v, *p.kv_seq);
}

/// An operand as [batch, heads, positions, elements of a head], or with the last two swapped.
CudnnTensorId bind(CudnnGraph& graph, const FlashAttentionProblem& p, const RowStrides& s,
                   int64_t seq, int64_t heads, bool is_transposed = false) {
  Shape shape{p.batch, heads, seq, p.head_dim};
  Strides strides{seq * s.row, p.head_dim, s.row, 1};
  if (are_heads(p)) {
    shape[1] *= p.num_members;
  } else {
    if (p.batch == 1) strides[0] = s.member;
    shape[0] *= p.num_members;
  }
  if (is_transposed) {
    std::swap(shape[2], shape[3]);
    std::swap(strides[2], strides[3]);
  }
  return graph.bind(cudnn_type(p.dtype), shape, strides);
}

/// Query i has position i + Tk - Tq and sees no later key.
CudnnTensorId append_causal_mask(CudnnGraph& graph, CudnnTensorId scores,
                                 const FlashAttentionProblem& p) {
  const auto shift = static_cast<double>(*p.kv_seq - p.seq);
  const CudnnTensorId row = graph.apply(index, scores, kNoCudnnTensor, kNoCudnnTensor, 2);
  const CudnnTensorId position = graph.apply(add, row, graph.number(shift, 4, CudnnType::int32));
  const CudnnTensorId key = graph.apply(index, scores, kNoCudnnTensor, kNoCudnnTensor, 3);
  const CudnnTensorId is_seen = graph.apply(at_least, position, key);
  constexpr double kHidden = std::numeric_limits<float>::lowest();
  return graph.apply(select, scores, graph.number(kHidden, 4), is_seen);
}

FlashAttentionProblem one_of(const FlashAttentionProblem& problem) {
  FlashAttentionProblem one = problem;
  one.num_members = 1;
  return one;
}

/// Member n's operands that cuDNN takes, which exclude masks.
FlashAttentionArguments member_of(const FlashAttentionProblem& p, const FlashAttentionArguments& a,
                                  int64_t n) {
  const int64_t bytes = dtype_bytes(p.dtype);
  FlashAttentionArguments own = a;
  own.q.data = advanced(a.q.data, n * p.q.member, bytes);
  own.k.data = advanced(a.k.data, n * p.k.member, bytes);
  own.v.data = advanced(a.v.data, n * p.v.member, bytes);
  own.y.data = advanced(a.y.data, n * p.y.member, bytes);
  return own;
}

}  // namespace

std::string flash_attention_cudnn_unsupported_reason(const FlashAttentionProblem& p) {
  if (p.dtype == Dtype::fp32) return "it would multiply fp32 as tf32";
  if (p.head_dim % 8 != 0) {
    return "heads are of " + counted(p.head_dim, "element") + ", expected a multiple of 8";
  }
  if (p.window > 0 || p.soft_cap > 0 || p.has_slopes || p.has_bias) {
    return "it is asked for no window, soft cap, slopes or bias";
  }
  if (p.key_lengths != KeyLengths::none) {
    return "its documentation does not say what lengths of 0, or beyond the keys, give";
  }
  if (*p.kv_seq == 0 || (p.is_causal && p.seq > *p.kv_seq)) {
    return "some queries see no key, and its documentation does not say that these give 0";
  }
  if (!are_heads(p) && !are_batch_rows(p)) {
    return "members lie neither side by side as heads nor one after another as batch rows";
  }
  return "";
}

std::string flash_attention_cudnn_unsupported_reason(const FlashAttentionArguments& a) {
  return cudnn_alignment_reason({{"q", a.q}, {"k", a.k}, {"v", a.v}, {"y", a.y}});
}

std::string flash_attention_cudnn_member_reason(const FlashAttentionProblem& p) {
  constexpr int64_t kVector = 8;
  for (const RowStrides& strides : {p.q, p.k, p.v, p.y}) {
    if (strides.member % kVector != 0) {
      return "members are " + counted(strides.member, "element") +
             " apart, expected a multiple of 8";
    }
  }
  return flash_attention_cudnn_unsupported_reason(one_of(p));
}

FlashAttentionCudnnGraph describe_flash_attention_cudnn(const FlashAttentionProblem& p) {
  FlashAttentionCudnnGraph g;
  CudnnGraph& graph = g.graph;
  g.q = bind(graph, p, p.q, p.seq, p.heads);
  g.k = bind(graph, p, p.k, *p.kv_seq, p.kv_heads, true);
  g.v = bind(graph, p, p.v, *p.kv_seq, p.kv_heads);
  g.y = bind(graph, p, p.y, p.seq, p.heads);
  const Shape q = graph.tensor(g.q).shape;
  const Shape pairs{q[0], q[1], q[2], *p.kv_seq}, rows{q[0], q[1], q[2], 1};
  const auto reduced = [&](CudnnReduction::Of of, CudnnTensorId x) {
    const CudnnTensorId result = graph.inside(CudnnType::fp32, rows);
    graph.append(CudnnReduction{of, x, result});
    return result;
  };
  const CudnnTensorId products = graph.inside(CudnnType::fp32, pairs);
  graph.append(CudnnMatmul{g.q, g.k, products});
  CudnnTensorId scores =
      graph.apply(multiply, products, graph.number(static_cast<double>(*p.scale), 4));
  if (p.is_causal) scores = append_causal_mask(graph, scores, p);
  const CudnnTensorId largest = reduced(CudnnReduction::Of::maximum, scores);
  const CudnnTensorId powers = graph.apply(exp, graph.apply(subtract, scores, largest));
  const CudnnTensorId total = reduced(CudnnReduction::Of::sum, powers);
  (void)graph.apply(add, largest, graph.apply(log, total));  // the statistics: part of the pattern
  const CudnnTensorId shares = graph.inside(cudnn_type(p.dtype), pairs);
  graph.append(CudnnPointwise{divide, powers, total, kNoCudnnTensor, shares});
  graph.append(CudnnMatmul{shares, g.v, g.y});
  return g;
}

CudnnBindings bind_flash_attention_cudnn(const FlashAttentionCudnnGraph& g,
                                         const FlashAttentionArguments& a) {
  return {{g.q, a.q}, {g.k, a.k}, {g.v, a.v}, {g.y, a.y}};
}

FlashAttentionCudnn::FlashAttentionCudnn(const CudnnDevice& device,
                                         const FlashAttentionProblem& problem, Calls calls,
                                         int place)
    : problem_(problem),
      calls_(calls),
      graph_(describe_flash_attention_cudnn(calls == Calls::one ? problem : one_of(problem))),
      plan_(make_cudnn_plan("flash_attention", device, graph_.graph, {.allows_tensor_cores = true},
                            place)) {}

void FlashAttentionCudnn::run(const FlashAttentionArguments& arguments,
                              const Execution& execution) const {
  const int64_t calls = calls_ == Calls::one ? 1 : problem_.num_members;
  void* const cudnn = require_cudnn("flash_attention", execution, arguments.q.device);
  for (int64_t n = 0; n < calls; ++n) {
    plan_->run(cudnn, bind_flash_attention_cudnn(graph_, member_of(problem_, arguments, n)),
               execution.workspace, execution.stream);
  }
}

}  // namespace wide
