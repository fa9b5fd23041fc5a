// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// batchnorm's verbs: validate, choose, launch.
#include "wide/batchnorm.hpp"

#include <array>
#include <limits>
#include <vector>

#include "host/core/channels.hpp"
#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/verified.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/norm_plan.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kName = "batchnorm";

void require_legal(const BatchnormProblem& p) {
  require_least(kName, "num_members", p.num_members, 1);
  require_least(kName, "batch", p.batch, 0);
  require_least(kName, "channels", p.channels, 0);
  require_least(kName, "height", p.height, 0);
  require_least(kName, "width", p.width, 0);
  require_norm_dtype(kName, p.dtype);
  require_epsilon(kName, p.epsilon);
  WIDE_REQUIRE(
      p.momentum >= 0 && p.momentum <= 1,
      "batchnorm: momentum is " + std::to_string(p.momentum) + ", expected a number in [0, 1]");
  (void)checked_bytes({p.batch, p.num_members, p.channels, p.height, p.width},
                      dtype_bytes(p.dtype));
  const int64_t values = num_elements({p.batch, p.height, p.width});
  WIDE_REQUIRE(values <= std::numeric_limits<int32_t>::max(),
               "batchnorm: batch * height * width is " + std::to_string(values) +
                   ", expected < 2^31 values a channel");
  WIDE_REQUIRE(p.mode == BatchnormMode::eval || values >= 2 || p.channels == 0,
               "batchnorm: batch * height * width is " + std::to_string(values) +
                   ", expected >= 2 in mode train: fewer values have no variance");
}

MemberChannels extents_of(const BatchnormProblem& p) {
  return {p.batch, p.num_members, p.channels, p.height, p.width, {}};
}

BatchnormProblem resolved(BatchnormProblem p) {
  require_legal(p);
  p.x = complete_strides(extents_of(p), p.x);
  p.y = complete_strides(extents_of(p), p.y);
  const auto fill = [&](int64_t& stride, bool is_present) {
    if (!is_present) stride = 0;
    if (is_present && stride == 0) stride = p.channels;
  };
  fill(p.gamma_member_stride, p.has_gamma);
  fill(p.beta_member_stride, p.has_beta);
  fill(p.mean_member_stride, true);
  fill(p.variance_member_stride, true);
  return p;
}

/// The member stride of parameters [N, C] or [N*C] on y's device.
int64_t read_parameters(const char* name, const ConstTensorView& view, const BatchnormArguments& a,
                        const BatchnormProblem& p, Dtype dtype) {
  if (view.is_absent()) return 0;
  require_device(kName, name, view, a.y.device);
  WIDE_REQUIRE(!may_overlap(view, a.y), std::string("batchnorm: y overlaps ") + name);
  return parameter_stride(kName, name,
                          member_parameters(kName, name, view, p.num_members, p.channels),
                          "[num_members, channels]", p.num_members, p.channels, dtype);
}

/// A number of each member's own.
void require_per_member(const char* name, const ConstTensorView& view, const BatchnormArguments& a,
                        const BatchnormProblem& p) {
  if (view.is_absent()) return;
  require_device(kName, name, view, a.y.device);
  require_shape(kName, name, view, "[num_members]", {p.num_members});
  require_dtype(kName, name, view, Dtype::fp32);
  WIDE_REQUIRE(view.is_contiguous(), std::string("batchnorm: ") + name + " has strides " +
                                         to_string(view.strides) + ", expected a stride of 1");
}

/// What mode train writes shares no byte with anything.
void require_apart(const BatchnormArguments& a, const BatchnormProblem& p) {
  if (p.mode == BatchnormMode::eval) return;
  const std::array<ConstTensorView, 2> written{a.running_mean, a.running_variance};
  for (const ConstTensorView& view : written) {
    for (const ConstTensorView& other : {a.x, a.gamma, a.beta, a.epsilon, a.momentum}) {
      WIDE_REQUIRE(!may_overlap(view, other),
                   "batchnorm: running statistics overlap an input in mode train");
    }
  }
  WIDE_REQUIRE(!may_overlap(written[0], written[1]),
               "batchnorm: running_mean overlaps running_variance in mode train");
}

/// In the problem's terms, for comparing and naming.
void require_same(const BatchnormProblem& got, const BatchnormProblem& expected) {
  if (got == expected) return;
  require_same_count(kName, "num_members", got.num_members, expected.num_members);
  require_same_count(kName, "batch", got.batch, expected.batch);
  require_same_count(kName, "channels", got.channels, expected.channels);
  require_same_count(kName, "height", got.height, expected.height);
  require_same_count(kName, "width", got.width, expected.width);
  require_same_presence(kName, "gamma", got.has_gamma, expected.has_gamma);
  require_same_presence(kName, "beta", got.has_beta, expected.has_beta);
  require_same_dtype(kName, got.dtype, expected.dtype);
  throw_invalid_argument("batchnorm: the strides of " +
                         std::string(got.x != expected.x   ? "x"
                                     : got.y != expected.y ? "y"
                                                           : "the parameters") +
                         " differ from the plan's problem");
}

}  // namespace

BatchnormProblem describe_batchnorm(const BatchnormArguments& a, const BatchnormProblem& like) {
  BatchnormProblem p = like;
  p.dtype = a.x.dtype;
  p.has_gamma = !a.gamma.is_absent();
  p.has_beta = !a.beta.is_absent();
  if (a.running_mean.rank() == 2) p.num_members = a.running_mean.shape[0];
  const MemberChannels x = member_channels(kName, "x", a.x, p.num_members);
  p.batch = x.batch;
  p.channels = x.channels;
  p.height = x.height;
  p.width = x.width;
  p.x = x.strides;
  require_legal(p);
  const MemberChannels y = member_channels(kName, "y", a.y, p.num_members);
  WIDE_REQUIRE(a.y.shape == a.x.shape, "batchnorm: y is " + to_string(a.y.shape) +
                                           ", expected the shape of x = " + to_string(a.x.shape));
  require_disjoint_channels(kName, "y", y);
  p.y = y.strides;
  require_dtype(kName, "y", a.y, p.dtype);
  require_device(kName, "x", a.x, a.y.device);
  const bool is_in_place = a.x.data == a.y.data && p.x == p.y;
  WIDE_REQUIRE(is_in_place || !may_overlap(a.x, a.y),
               "batchnorm: y overlaps x, expected x itself or memory of its own");
  p.gamma_member_stride = read_parameters("gamma", a.gamma, a, p, p.dtype);
  p.beta_member_stride = read_parameters("beta", a.beta, a, p, p.dtype);
  WIDE_REQUIRE(!a.running_mean.is_absent() && !a.running_variance.is_absent(),
               "batchnorm: running_mean or running_variance is absent, expected both");
  p.mean_member_stride = read_parameters("running_mean", a.running_mean, a, p, Dtype::fp32);
  p.variance_member_stride =
      read_parameters("running_variance", a.running_variance, a, p, Dtype::fp32);
  require_per_member("epsilon", a.epsilon, a, p);
  require_per_member("momentum", a.momentum, a, p);
  require_apart(a, p);
  return p;
}

struct BatchnormPlan::State : NormState<BatchnormProblem> {};

BatchnormPlan make_batchnorm_plan(const Context& context, const BatchnormProblem& problem,
                                  const PlanOptions& options) {
  const BatchnormProblem full = resolved(problem);
  require_no_policy(kName, options.policy);
  // Both names of the catalogue run these kernels: each proves what the other does not.
  const int capability = context.info().compute_capability;
  const bool is_trusted = is_verified("batchnorm1d", "wide", capability) &&
                          is_verified("batchnorm2d", "wide", capability);
  return BatchnormPlan(std::make_shared<const BatchnormPlan::State>(
      BatchnormPlan::State{make_norm_state(kName, context, full, options, is_trusted)}));
}

const BatchnormProblem& BatchnormPlan::problem() const {
  return state_->problem;
}
std::string_view BatchnormPlan::strategy() const {
  return strategy_name(state_->choice.strategy);
}
std::string BatchnormPlan::explain() const {
  return state_->choice.explain;
}
int64_t BatchnormPlan::workspace_bytes() const {
  return 0;
}
std::string_view BatchnormPlan::weight_format() const {
  return "packed";
}

namespace {

/// Calls f(name, view of `packed`, members' views) for every parameter that the problem has.
template <class Packed, class Member, class F>
void for_each_parameter(const BatchnormProblem& p, const BasicBatchnormParameters<Packed>& packed,
                        std::span<const BasicBatchnormParameters<Member>> members, const F& f) {
  const auto visit = [&](const char* name, auto field) {
    std::vector<Member> views;
    for (const auto& member : members) views.push_back(member.*(field.second));
    const ConstTensorView joined =
        member_parameters(kName, name, packed.*(field.first), p.num_members, p.channels);
    Packed stacked = packed.*(field.first);
    stacked.shape = joined.shape;
    stacked.strides = joined.strides;
    f(stacked, views);
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
  require_device(kName, "y", arguments.y, s.context.device());
  require_same(describe_batchnorm(arguments, s.problem), s.problem);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_batchnorm_cpu(s.context, s.problem, s.choice.strategy, arguments);
  } else {
    run_batchnorm_cuda(s.context, s.problem, s.choice.strategy, arguments, execution.stream);
  }
}

}  // namespace wide
