// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pooling's verbs: validate, choose, launch.
#include "wide/pooling.hpp"

#include "host/core/channels.hpp"
#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/window_room.hpp"
#include "host/cudnn/cudnn_wide_plan.hpp"
#include "host/pooling/pooling_cudnn.hpp"
#include "host/pooling/pooling_params.hpp"
#include "host/pooling/pooling_problem.hpp"
#include "host/pooling/pooling_run.hpp"

namespace wide {

static std::string text(PoolingMode mode) {
  return text(pooling_mode_name(mode));
}
static std::string text(const PoolingWindow& w) {
  return "{kernel " + text(w.kernel) + ", stride " + text(w.stride) + ", padding " +
         text(w.padding) + ", dilation " + text(w.dilation) + "}";
}

namespace {

constexpr std::string_view kPoolingName = "pooling";
constexpr int64_t kMaxPositions = int64_t{1} << 30;  // of an image: kernels count them in 32 bits
constexpr int64_t kMaxSpan = int64_t{1} << 29;       // of a window

/// `argument` and, where there is one, `field` name it.
[[noreturn]] void refuse(const char* argument, int64_t value, const std::string& expected,
                         const char* field = "") {
  throw_invalid_argument(std::string("pooling: ") + argument + field + " is " +
                         std::to_string(value) + ", expected " + expected);
}

void require_range(const char* argument, int64_t value, int64_t least, int64_t most,
                   const char* field = "") {
  if (value >= least && value <= most) return;
  refuse(argument, value, std::to_string(least) + " to " + std::to_string(most), field);
}

void require_outputs(const char* name, int64_t size, int64_t got, const PoolingWindow& w,
                     bool ceil_mode) {
  const int64_t expected = pooling_outputs(size, w, ceil_mode);
  WIDE_REQUIRE(expected >= 1, "pooling: a window of " + std::to_string(w.kernel) + " " + name +
                                  " with dilation " + std::to_string(w.dilation) +
                                  " is larger than x's " + std::to_string(size) + " and padding " +
                                  std::to_string(w.padding));
  if (got != expected) refuse("y's number of ", got, std::to_string(expected), name);
}

void require_legal(const PoolingProblem& p) {
  require_at_least(kPoolingName, "num_members", p.num_members, 1);
  require_at_least(kPoolingName, "batch", p.batch, 0);
  require_at_least(kPoolingName, "channels", p.channels, 0);
  require_range("height", p.height, 1, kMaxPositions);
  require_range("width", p.width, 1, kMaxPositions);
  require_range("height * width", p.height * p.width, 1, kMaxPositions);
  require_float_dtype(kPoolingName, p.dtype);
  if (p.mode == PoolingMode::adaptive_average) {
    require_adaptive_outputs("out_height", p.out_height);
    require_adaptive_outputs("out_width", p.out_width);
  } else {
    require_outputs("rows", p.height, p.out_height, p.rows, p.ceil_mode);
    require_outputs("columns", p.width, p.out_width, p.columns, p.ceil_mode);
  }
  const int64_t bytes = dtype_bytes(p.dtype);
  (void)checked_bytes({p.batch, p.num_members, p.channels, p.height, p.width}, bytes);
  (void)checked_bytes({p.batch, p.num_members, p.channels, p.out_height, p.out_width}, bytes);
}

/// Fills in strides that are left to the kernel; an adaptive pool has no windows to look at.
void complete_windows(PoolingProblem& p) {
  require_enumerator(kPoolingName, "mode", p.mode, kAllPoolingModes.back());
  require_enumerator(kPoolingName, "layout", p.layout, ChannelLayout::channels_last);
  if (p.mode == PoolingMode::adaptive_average) {
    p.rows = p.columns = {};
    return;
  }
  for (PoolingWindow* window : {&p.rows, &p.columns}) {
    if (window->stride == 0) window->stride = window->kernel;
  }
  require_pooling_window("rows", p.rows, p.mode);
  require_pooling_window("columns", p.columns, p.mode);
}

PoolingProblem resolved(PoolingProblem p) {
  complete_windows(p);
  require_range("height", p.height, 1, kMaxPositions);
  require_range("width", p.width, 1, kMaxPositions);
  if (p.mode != PoolingMode::adaptive_average) {
    if (p.out_height == 0) p.out_height = pooling_outputs(p.height, p.rows, p.ceil_mode);
    if (p.out_width == 0) p.out_width = pooling_outputs(p.width, p.columns, p.ceil_mode);
  }
  require_legal(p);
  const auto complete = [&](const char* name, int64_t height, int64_t width, ChannelStrides& of) {
    of = complete_strides(kPoolingName, name,
                          {p.batch, p.num_members, p.channels, height, width, {}, p.layout}, of);
  };
  complete("x", p.height, p.width, p.x);
  complete("y", p.out_height, p.out_width, p.y);
  return p;
}

/// An operand as kernels see it.
MemberChannels look_at(const char* argument, const ConstTensorView& view,
                       const PoolingProblem& like) {
  return member_images(kPoolingName, argument, view, like.layout, like.num_members);
}

constexpr auto kPoolingFields = [](const auto& same, const PoolingProblem& got,
                                   const PoolingProblem& plan) {
  same("batch", got.batch, plan.batch);
  same("channels", got.channels, plan.channels);
  same("height", got.height, plan.height);
  same("width", got.width, plan.width);
  same("out_height", got.out_height, plan.out_height);
  same("out_width", got.out_width, plan.out_width);
  same("dtype", got.dtype, plan.dtype);
  same("stride of x", got.x, plan.x);
  same("stride of y", got.y, plan.y);
  same("num_members", got.num_members, plan.num_members);
  same("layout", got.layout, plan.layout);
  same("mode", got.mode, plan.mode);
  same("rows", got.rows, plan.rows);
  same("columns", got.columns, plan.columns);
  same("ceil_mode", got.ceil_mode, plan.ceil_mode);
  same("counts_padding", got.counts_padding, plan.counts_padding);
};

}  // namespace

std::string problem_key(const PoolingProblem& complete) {
  return key_of_fields(complete, kPoolingFields);
}
TuningKey tuning_key(const PoolingProblem& problem) {
  return {std::string(kPoolingName), problem_key(resolved(problem))};
}

void require_pooling_window(const char* name, PoolingWindow w, PoolingMode mode) {
  if (w.stride == 0) w.stride = w.kernel;
  require_range(name, w.kernel, 1, kMaxSpan, ".kernel");
  require_range(name, w.stride, 1, kMaxSpan, ".stride");
  require_range(name, w.padding, 0, w.kernel / 2, ".padding");
  require_range(name, w.dilation, 1, kMaxSpan, ".dilation");
  if (mode == PoolingMode::average && w.dilation != 1) {
    refuse(name, w.dilation, "1 for averages", ".dilation");
  }
  const bool is_short = (w.kernel - 1) <= (kMaxSpan - 1) / w.dilation;
  if (!is_short) refuse(name, w.dilation, "a window below 2^29 positions", ".dilation");
}

void require_adaptive_outputs(const char* name, int64_t outputs) {
  require_range(name, outputs, 1, kMaxPositions);
}

int64_t pooling_outputs(int64_t size, const PoolingWindow& window, bool ceil_mode) {
  const int64_t stride = window.stride == 0 ? window.kernel : window.stride;
  const int64_t room = window_room(size, window.kernel, stride, window.padding, window.dilation);
  if (room < 0) return 0;
  const auto steps = [stride](int64_t positions) {  // rounded up
    return positions / stride + (positions % stride == 0 ? 0 : 1);
  };
  const int64_t outputs = (ceil_mode ? steps(room) : room / stride) + 1;
  const bool begins_outside = outputs - 1 >= steps(size + window.padding);
  return outputs - (begins_outside ? 1 : 0);
}

PoolingProblem describe_pooling(const PoolingArguments& a, const PoolingProblem& like) {
  const MemberChannels x = look_at("x", a.x, like), y = look_at("y", a.y, like);
  WIDE_REQUIRE(a.x.rank() == a.y.rank() && x.batch == y.batch && x.channels == y.channels,
               "pooling: y is " + to_string(a.y.shape) +
                   ", expected the batch and channels of x = " + to_string(a.x.shape));
  PoolingProblem p = like;
  complete_windows(p);
  p.batch = x.batch;
  p.channels = x.channels;
  p.height = x.height;
  p.width = x.width;
  p.out_height = y.height;
  p.out_width = y.width;
  p.dtype = a.x.dtype;
  p.x = x.strides;
  p.y = y.strides;
  require_legal(p);
  require_disjoint_channels(kPoolingName, "y", y);
  require_dtype(kPoolingName, "y", a.y, p.dtype);
  require_device(kPoolingName, "x", a.x, a.y.device);
  require_own_memory(kPoolingName, "y", a.y, "x", a.x);
  return p;
}

template <>
struct PlanState<PoolingProblem> : CudnnWideState<PoolingProblem, PoolingCudnn> {};
template class PrimitivePlan<PoolingProblem>;

PoolingPlan make_pooling_plan(const Context& context, const PoolingProblem& problem,
                              const PlanOptions& options) {
  const PoolingProblem full = resolved(problem);
  const CudnnWideParts parts{
      full.batch == 0 || full.channels == 0, is_wide_verified(kPoolingName, context),
      launch_refusal("blocks", full.num_members,
                     [&](int64_t members) { return pooling_launch_blocks(full, members); }),
      "operands are not aligned to 16 bytes"};
  return PoolingPlan(std::make_shared<const PoolingPlan::State>(
      make_cudnn_wide_state<PoolingCudnn>(kPoolingName, context, full, options, parts)));
}

void PoolingPlan::run(const PoolingArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kPoolingName, "y", arguments.y, s.context.device());
  require_same_problem(kPoolingName, describe_pooling(arguments, s.problem), s.problem,
                       kPoolingFields);
  require_workspace(kPoolingName, execution, workspace_bytes());
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    return run_pooling_cpu(s.context, s.problem, s.choice.strategy, arguments);
  }
  if (s.has_run(kPoolingName, pooling_cudnn_unsupported_reason, arguments, execution)) return;
  run_pooling_cuda(s.context, s.problem, s.own_strategy(), arguments, execution.stream);
}

}  // namespace wide
