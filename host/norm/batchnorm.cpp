// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// batchnorm's verbs: validate, choose, launch.
#include "wide/batchnorm.hpp"

#include <limits>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/member_fields.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/text.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"
#include "host/norm/batchnorm_cudnn.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/channel_norm.hpp"
#include "kernels/norm/norm_blocks.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kBatchnormName = "batchnorm";

void require_legal(const BatchnormProblem& p) {
  require_legal_channels(kBatchnormName, p);
  require_enumerator(kBatchnormName, "mode", p.mode, BatchnormMode::train);
  WIDE_REQUIRE(p.momentum >= 0 && p.momentum <= 1,
               "batchnorm: momentum is " + text(p.momentum) + ", expected a number in [0, 1]");
  const int64_t values = num_elements({p.batch, p.height, p.width});
  WIDE_REQUIRE(values <= std::numeric_limits<int32_t>::max(),
               "batchnorm: batch * height * width is " + std::to_string(values) +
                   ", expected < 2^31 values a channel");
  WIDE_REQUIRE(p.mode == BatchnormMode::eval || values >= 2 || p.channels == 0,
               "batchnorm: batch * height * width is " + std::to_string(values) +
                   ", expected >= 2 in mode train: fewer values have no variance");
}

BatchnormProblem resolved(BatchnormProblem p) {
  require_legal(p);
  complete_channels(kBatchnormName, p);
  complete_parameter(name_of(kBatchnormName, "mean_member_stride"), p.mean_member_stride, true,
                     p.num_members, p.channels);
  complete_parameter(name_of(kBatchnormName, "variance_member_stride"), p.variance_member_stride,
                     true, p.num_members, p.channels);
  return p;
}

constexpr auto kBatchnormFields = [](const auto& same, const BatchnormProblem& got,
                                     const BatchnormProblem& plan) {
  channel_norm_fields(same, got, plan);
  same("member stride of running_mean", got.mean_member_stride, plan.mean_member_stride);
  same("member stride of running_variance", got.variance_member_stride,
       plan.variance_member_stride);
  same("is_training", got.mode == BatchnormMode::train, plan.mode == BatchnormMode::train);
  same("momentum", got.momentum, plan.momentum);
};

/// Requires one number per member.
void require_per_member(const char* name, const ConstTensorView& view, const BatchnormArguments& a,
                        const BatchnormProblem& p) {
  if (view.is_absent()) return;
  require_device(kBatchnormName, name, view, a.y.device);
  require_shape(kBatchnormName, name, view, "[num_members]", {p.num_members});
  require_dtype(kBatchnormName, name, view, Dtype::fp32);
  WIDE_REQUIRE(view.is_contiguous(), std::string("batchnorm: ") + name + " has strides " +
                                         to_string(view.strides) + ", expected a stride of 1");
  require_own_memory(kBatchnormName, name, view, "y", a.y);
}

/// The outputs of mode train must overlap nothing.
void require_apart(const BatchnormArguments& a, const BatchnormProblem& p) {
  if (p.mode == BatchnormMode::eval) return;
  const std::pair<const char*, const ConstTensorView*> read[] = {{"x", &a.x},
                                                                 {"gamma", &a.gamma},
                                                                 {"beta", &a.beta},
                                                                 {"epsilon", &a.epsilon},
                                                                 {"momentum", &a.momentum}};
  for (const auto& [name, view] : read) {
    require_own_memory(kBatchnormName, "running_mean", a.running_mean, name, *view);
    require_own_memory(kBatchnormName, "running_variance", a.running_variance, name, *view);
  }
  const auto require_disjoint = [&](const char* name, int64_t member_stride) {
    require_disjoint_rows(kBatchnormName, name, {1, {0, member_stride}}, p.num_members, p.channels);
  };
  require_disjoint("running_mean", p.mean_member_stride);
  require_disjoint("running_variance", p.variance_member_stride);
  require_own_memory(kBatchnormName, "running_mean", a.running_mean, "running_variance",
                     a.running_variance);
}

}  // namespace

std::string problem_key(const BatchnormProblem& complete) {
  return key_of_fields(complete, kBatchnormFields);
}
TuningKey tuning_key(const BatchnormProblem& problem) {
  return {std::string(kBatchnormName), problem_key(resolved(problem))};
}

BatchnormProblem describe_batchnorm(const BatchnormArguments& a, const BatchnormProblem& like) {
  BatchnormProblem p = like;
  // First: without them the number of members is not known, and gamma would seem not to fit.
  WIDE_REQUIRE(!a.running_mean.is_absent() && !a.running_variance.is_absent(),
               "batchnorm: running_mean or running_variance is absent, expected both");
  if (a.running_mean.rank() == 2) p.num_members = a.running_mean.shape[0];
  read_channels(kBatchnormName, a, p);
  require_legal(p);
  p.mean_member_stride =
      read_parameters(kBatchnormName, "running_mean", a.running_mean, a.y, p, Dtype::fp32);
  p.variance_member_stride =
      read_parameters(kBatchnormName, "running_variance", a.running_variance, a.y, p, Dtype::fp32);
  require_per_member("epsilon", a.epsilon, a, p);
  require_per_member("momentum", a.momentum, a, p);
  require_apart(a, p);
  return p;
}

template <>
struct PlanState<BatchnormProblem> : CudnnWideState<BatchnormProblem, BatchnormCudnn> {};
template class PrimitivePlan<BatchnormProblem>;

BatchnormPlan make_batchnorm_plan(const Context& context, const BatchnormProblem& problem,
                                  const PlanOptions& options) {
  const BatchnormProblem full = resolved(problem);
  // Both names of the catalogue run these kernels: each proves what the other does not.
  const bool is_trusted =
      is_wide_verified("batchnorm1d", context) && is_wide_verified("batchnorm2d", context);
  const bool is_eval = full.mode == BatchnormMode::eval;
  const int64_t vector = 16 / dtype_bytes(full.dtype);
  // At most: short channels share blocks in mode train, and those of one position in both.
  const CudnnWideParts parts{
      is_empty_channels(full), is_trusted,
      launch_refusal(
          is_eval ? "blocks" : "channels", full.num_members,
          [&](int64_t members) {
            const int64_t slices = kernels::batchnorm_slices(full, members);
            if (!is_eval || slices == 0) return slices;
            return kernels::block_product({slices, kernels::batchnorm_eval_blocks(full, vector)});
          }),
      "operands are not aligned to 16 bytes, y is x, or members have an epsilon or momentum of "
      "their own"};
  return BatchnormPlan(std::make_shared<const BatchnormPlan::State>(
      make_cudnn_wide_state<BatchnormCudnn>(kBatchnormName, context, full, options, parts)));
}

namespace {

/// Calls f(view of `packed`, members' views) for every parameter that the problem has.
template <class Packed, class Member, class F>
void for_each_parameter(const BatchnormProblem& p, const BasicBatchnormParameters<Packed>& packed,
                        std::span<const BasicBatchnormParameters<Member>> members, const F& f) {
  const auto visit = [&](const char* name, auto field) {
    const ConstTensorView joined =
        member_parameters(kBatchnormName, name, packed.*(field.first), p.num_members, p.channels);
    Packed stacked = packed.*(field.first);
    stacked.shape = joined.shape;
    stacked.strides = joined.strides;
    f(stacked, fields_of(members, field.second));
  };
  using P = BasicBatchnormParameters<Packed>;
  using M = BasicBatchnormParameters<Member>;
  if (p.has_gamma) visit("gamma", std::pair{&P::gamma, &M::gamma});
  if (p.has_beta) visit("beta", std::pair{&P::beta, &M::beta});
  visit("running_mean", std::pair{&P::running_mean, &M::running_mean});
  visit("running_variance", std::pair{&P::running_variance, &M::running_variance});
}

}  // namespace

void BatchnormPlan::prepare_weights(std::span<const ConstBatchnormParameters> members,
                                    const BatchnormParameters& packed, Stream stream) const {
  for_each_parameter(state_->problem, packed, members,
                     [&](const TensorView& to, std::span<const ConstTensorView> from) {
                       pack(operands::channel_parameter, from, to, stream);
                     });
}

void BatchnormPlan::restore_weights(const ConstBatchnormParameters& packed,
                                    std::span<const BatchnormParameters> members,
                                    Stream stream) const {
  for_each_parameter(state_->problem, packed, members,
                     [&](const ConstTensorView& from, std::span<const TensorView> to) {
                       unpack(operands::channel_parameter, from, to, stream);
                     });
}

void BatchnormPlan::run(const BatchnormArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kBatchnormName, "y", arguments.y, s.context.device());
  require_same_problem(kBatchnormName, describe_batchnorm(arguments, s.problem), s.problem,
                       kBatchnormFields);
  require_workspace(kBatchnormName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    return run_batchnorm_cpu(s.context, s.problem, s.choice.strategy, arguments);
  }
  if (s.has_run(kBatchnormName, batchnorm_cudnn_unsupported_reason, arguments, execution)) return;
  run_batchnorm_cuda(s.context, s.problem, s.own_strategy(), arguments, execution.stream);
}

}  // namespace wide
