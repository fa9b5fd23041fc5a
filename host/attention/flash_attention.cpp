// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention's verbs: validate, choose, launch.
#include "wide/flash_attention.hpp"

#include "host/attention/flash_attention_cudnn.hpp"
#include "host/attention/flash_attention_problem.hpp"
#include "host/attention/flash_attention_run.hpp"
#include "host/core/check.hpp"
#include "host/core/heuristic_policy.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/plan_operands.hpp"
#include "host/core/plan_state.hpp"
#include "host/core/rows.hpp"
#include "host/core/text.hpp"
#include "host/core/tuned_choice.hpp"
#include "host/core/workspace.hpp"

namespace wide {

namespace {

constexpr std::string_view kFlashAttentionName = "flash_attention";

/// The strides of an operand whose first two axes are batch and positions.
RowStrides strides_of(const char* name, const ConstTensorView& view, const FlashAttentionProblem& p,
                      int64_t seq, int64_t features) {
  const bool is_packed = view.rank() == 3;
  const bool is_explicit = view.rank() == 4 && view.shape[2] == p.num_members;
  WIDE_REQUIRE((is_packed || is_explicit) && view.shape[0] == p.batch && view.shape[1] == seq,
               "flash_attention: " + std::string(name) + " is " + to_string(view.shape) +
                   ", expected [batch, positions, num_members * features] = " +
                   to_string(Shape{p.batch, seq, p.num_members * features}) +
                   ", or with members explicit");
  require_dtype(kFlashAttentionName, name, view, p.dtype);
  const RowStrides strides =
      member_rows(kFlashAttentionName, name, view, p.num_members, features).strides;
  WIDE_REQUIRE(features == 0 || strides != RowStrides{},
               "flash_attention: " + std::string(name) + " has strides " + to_string(view.strides) +
                   ", expected positions or members that do not all start at one place");
  return strides;
}

/// The member stride of key_lengths or slopes: rows of one axis, one per member.
int64_t mask_member_stride(const char* name, const ConstTensorView& view, const char* axes,
                           const Shape& expected) {
  require_shape(kFlashAttentionName, name, view, axes, expected);
  const bool has_members = expected.rank() == 2;
  WIDE_REQUIRE(expected.back() <= 1 || view.strides.back() == 1,
               "flash_attention: " + std::string(name) + " has strides " + to_string(view.strides) +
                   ", expected a last stride of 1");
  if (!has_members || expected[0] <= 1) return 0;
  require_members_apart(kFlashAttentionName, name, view);
  return view.strides[0];
}

void describe_masks(const FlashAttentionArguments& a, FlashAttentionProblem& p) {
  if (!a.key_lengths.is_absent()) {
    const bool is_shared = a.key_lengths.rank() == 1;
    p.key_lengths = is_shared ? KeyLengths::shared : KeyLengths::per_member;
    require_dtype(kFlashAttentionName, "key_lengths", a.key_lengths, Dtype::int32);
    p.key_lengths_member_stride =
        is_shared ? mask_member_stride("key_lengths", a.key_lengths, "[batch]", {p.batch})
                  : mask_member_stride("key_lengths", a.key_lengths, "[num_members, batch]",
                                       {p.num_members, p.batch});
  }
  if (!a.slopes.is_absent()) {
    p.has_slopes = true;
    require_dtype(kFlashAttentionName, "slopes", a.slopes, Dtype::fp32);
    p.slopes_member_stride =
        mask_member_stride("slopes", a.slopes, "[num_members, heads]", {p.num_members, p.heads});
  }
}

/// Axes of one element are broadcast.
void describe_bias(const ConstTensorView& bias, FlashAttentionProblem& p) {
  if (bias.is_absent()) return;
  const Shape full{p.num_members, p.batch, p.heads, p.seq, *p.kv_seq};
  bool fits = bias.rank() == 5;
  for (int axis = 0; fits && axis < 5; ++axis) {
    fits = bias.shape[axis] == full[axis] || (axis < 3 && bias.shape[axis] == 1);
  }
  WIDE_REQUIRE(fits, "flash_attention: bias is " + to_string(bias.shape) +
                         ", expected [num_members or 1, batch or 1, heads or 1, seq, kv_seq] = " +
                         to_string(full));
  require_dtype(kFlashAttentionName, "bias", bias, p.dtype);
  WIDE_REQUIRE(bias.shape[4] <= 1 || bias.strides[4] == 1, "flash_attention: bias has strides " +
                                                               to_string(bias.strides) +
                                                               ", expected a last stride of 1");
  const auto stride = [&](int axis) { return bias.shape[axis] == 1 ? 0 : bias.strides[axis]; };
  p.has_bias = true;
  p.bias = {stride(0), stride(1), stride(2), stride(3)};
}

}  // namespace

FlashAttentionProblem describe_flash_attention(const FlashAttentionArguments& a,
                                               const FlashAttentionProblem& like) {
  FlashAttentionProblem p;
  p.num_members = like.num_members;
  p.heads = like.heads;
  p.kv_heads = like.kv_heads == 0 ? like.heads : like.kv_heads;
  p.scale = like.scale;
  p.is_causal = like.is_causal;
  p.window = like.window;
  p.soft_cap = like.soft_cap;
  p.aligns_to_lengths = like.aligns_to_lengths;
  p.dtype = a.q.dtype;
  for (const auto& [name, view] : {std::pair{"q", &a.q}, {"k", &a.k}}) {
    WIDE_REQUIRE(view->rank() == 3 || view->rank() == 4,
                 "flash_attention: " + std::string(name) + " is " + to_string(view->shape) +
                     ", expected [batch, positions, num_members * features], or with members "
                     "explicit");
  }
  WIDE_REQUIRE(p.num_members >= 1 && p.heads >= 1,
               "flash_attention: num_members is " + std::to_string(p.num_members) + ", heads is " +
                   std::to_string(p.heads) + ", expected both >= 1");
  p.batch = a.q.shape[0];
  p.seq = a.q.shape[1];
  p.kv_seq = a.k.shape[1];
  const int64_t heads_in_row = num_elements({a.q.rank() == 3 ? p.num_members : 1, p.heads});
  WIDE_REQUIRE(a.q.shape.back() % heads_in_row == 0,
               "flash_attention: q is " + to_string(a.q.shape) + ", expected a last axis of " +
                   counted(heads_in_row, "head"));
  p.head_dim = a.q.shape.back() / heads_in_row;
  const int64_t features = p.heads * p.head_dim, kv_features = p.kv_heads * p.head_dim;
  p.q = strides_of("q", a.q, p, p.seq, features);
  p.k = strides_of("k", a.k, p, *p.kv_seq, kv_features);
  p.v = strides_of("v", a.v, p, *p.kv_seq, kv_features);
  p.y = strides_of("y", a.y, p, p.seq, features);
  describe_masks(a, p);
  describe_bias(a.bias, p);
  for (const auto& [name, view] : {std::pair{"q", &a.q},
                                   {"k", &a.k},
                                   {"v", &a.v},
                                   {"key_lengths", &a.key_lengths},
                                   {"slopes", &a.slopes},
                                   {"bias", &a.bias}}) {
    if (view->is_absent()) continue;
    require_device(kFlashAttentionName, name, *view, a.y.device);
    require_own_memory(kFlashAttentionName, "y", a.y, name, *view);
  }
  return complete_flash_attention_problem(p);
}

template <>
struct PlanState<FlashAttentionProblem> : PlanFacts<FlashAttentionProblem, FlashAttentionChoice> {
  std::shared_ptr<const FlashAttentionCudnn> cudnn{};  ///< of the strategy, where y is not empty
  bool has_stand_in = false;  ///< our kernel runs what cuDNN does not: cuDNN was not requested
};
template class PrimitivePlan<FlashAttentionProblem>;

namespace {

using Calls = FlashAttentionCudnn::Calls;

/// `sequential` calls cuDNN for each member where it can.
void make_sequential(const Context& context, FlashAttentionPlan::State& state) {
  std::string refusal = flash_attention_cudnn_member_reason(state.problem);
  if (refusal.empty()) {
    refusal = cudnn_refusal([&] {
      state.cudnn = std::make_shared<const FlashAttentionCudnn>(
          cudnn_device(context), state.problem, Calls::one_per_member);
    });
  }
  state.has_stand_in = true;
  const DeviceInfo& device = context.info();
  const std::string_view kernel = strategy_name(flash_attention_kernel(state.problem));
  const std::string own = own_kernel_text(
      kernel, is_verified(kFlashAttentionName, kernel, device.compute_capability), device);
  state.choice.explain += state.cudnn == nullptr
                              ? "; by our " + own + unless_told(state.choice.explain, refusal)
                              : "; " + state.cudnn->explain() +
                                    "; where operands are not aligned to 16 bytes by our " + own;
}

}  // namespace

FlashAttentionPlan make_flash_attention_plan(const Context& context,
                                             const FlashAttentionProblem& problem,
                                             const PlanOptions& options) {
  const FlashAttentionProblem full = complete_flash_attention_problem(problem);
  require_policy(kFlashAttentionName, options, wide_policy_reason);
  std::shared_ptr<const FlashAttentionCudnn> cudnn;
  const auto make = [&](std::string_view policy) {
    cudnn = std::make_shared<const FlashAttentionCudnn>(cudnn_device(context), full, Calls::one,
                                                        cudnn_place(policy));
  };
  FlashAttentionChoice choice = choose_flash_attention_strategy(
      full, context.info(), options.strategy, verified_strategies(),
      [&](std::string_view policy) {
        return is_empty(full) ? "there is nothing to compute"
                              : cudnn_refusal([&] { make(policy); });
      },
      tuning_of(options, kFlashAttentionName, full));
  FlashAttentionPlan::State state{{kFlashAttentionName, context, full, std::move(choice)}};
  if (state.choice.strategy == FlashAttentionStrategy::cudnn && !is_empty(full)) {
    if (cudnn == nullptr) make(options.policy);
    state.cudnn = std::move(cudnn);
    state.has_stand_in = is_automatic(options.strategy);
    tell_cudnn_policy(state.choice, options.policy);
    state.choice.explain += "; " + state.cudnn->explain();
    if (state.has_stand_in) {
      state.choice.explain += "; sequential where operands are not aligned to 16 bytes";
    }
  } else if (state.choice.strategy == FlashAttentionStrategy::sequential && !is_empty(full) &&
             context.device().type == DeviceType::cuda) {
    make_sequential(context, state);
  } else if (state.choice.strategy == FlashAttentionStrategy::wgmma) {
    state.choice.explain += "; by tensor_core where operands are not aligned to 16 bytes";
  } else if (state.choice.strategy == FlashAttentionStrategy::decode) {
    const int parts = flash_attention_decode_parts(full);
    state.choice.explain +=
        "; keys in " + std::to_string(parts) + (parts == 1 ? " part" : " parts");
  }
  state.workspace_bytes = state.cudnn
                              ? aligned_bytes(state.cudnn->workspace_bytes())
                              : flash_attention_workspace_bytes(state.choice.strategy, full);
  state.vendor_calls.cudnn = state.cudnn != nullptr;
  return FlashAttentionPlan(std::make_shared<const FlashAttentionPlan::State>(std::move(state)));
}

/// q and k, by which the others are measured.
static void require_plan_operands(const FlashAttentionArguments& a,
                                  const FlashAttentionProblem& p) {
  require_plan_dtype(kFlashAttentionName, "q", a.q, p.dtype);
  for (const auto& [name, view] : {std::pair{"q", &a.q}, {"k", &a.k}}) {
    if (view->rank() != 3 && view->rank() != 4) continue;
    const bool is_q = view == &a.q;
    const int64_t heads = is_q ? p.heads : p.kv_heads;
    const int64_t members = view->rank() == 3 ? p.num_members : 1;
    require_plan_extent(kFlashAttentionName, name, *view, 0, "batch", p.batch);
    require_plan_extent(kFlashAttentionName, name, *view, 1, is_q ? "seq" : "kv_seq",
                        is_q ? p.seq : *p.kv_seq);
    require_plan_extent(kFlashAttentionName, name, *view, -1, "features of a row",
                        members * heads * p.head_dim);
  }
}

void FlashAttentionPlan::run(const FlashAttentionArguments& arguments,
                             const Execution& execution) const {
  const State& s = *state_;
  require_device(kFlashAttentionName, "y", arguments.y, s.context.device());
  require_plan_operands(arguments, s.problem);
  require_same_flash_attention_problem(describe_flash_attention(arguments, s.problem), s.problem);
  if (is_empty(s.problem)) return;
  require_workspace(kFlashAttentionName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    return run_flash_attention_cpu(s.context, s.problem, s.choice.strategy, arguments);
  }
  FlashAttentionStrategy strategy = s.choice.strategy;
  if (s.cudnn) {
    const std::string reason = flash_attention_cudnn_unsupported_reason(arguments);
    if (reason.empty()) return s.cudnn->run(arguments, execution);
    if (!s.has_stand_in) throw_unsupported("flash_attention: cudnn: " + reason);
    strategy = FlashAttentionStrategy::sequential;
  }
  run_flash_attention_cuda(s.context, s.problem, strategy, arguments, execution);
}

}  // namespace wide
