// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// interpolate's verbs: validate, choose, launch.
#include "wide/interpolate.hpp"

#include <algorithm>
#include <cmath>

#include "host/core/channels.hpp"
#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/wide_plan.hpp"
#include "host/pooling/interpolate_params.hpp"
#include "host/pooling/interpolate_problem.hpp"
#include "host/pooling/interpolate_run.hpp"

namespace wide {

static std::string text(CoordinateMode mode) {
  return text(coordinate_mode_name(mode));
}

namespace {

constexpr std::string_view kInterpolateName = "interpolate";
constexpr int64_t kMostPositions = int64_t{1} << 30;  // of an image: kernels count them in 32 bits
constexpr float kMaxScale = 1 << 30;

// Checked at every run, which allocates nothing: texts are put together only where they are thrown.
void require_positions(const char* what, const char* of, int64_t value) {
  WIDE_REQUIRE(
      value >= 1 && value <= kMostPositions,
      "interpolate: " + text(what) + text(of) + " is " + text(value) + ", expected 1 to 2^30");
}

/// `of`: rows or columns.
void require_axis(const char* of, int64_t size, int64_t outputs, float scale) {
  require_positions("x's number of ", of, size);
  require_positions("y's number of ", of, outputs);
  if (scale == 0.0f) return;
  WIDE_REQUIRE(scale >= 1 / kMaxScale && scale <= kMaxScale, "interpolate: the scale of " +
                                                                 text(of) + " is " + text(scale) +
                                                                 ", expected 0 or 2^-30 to 2^30");
  // Further outputs would be beyond the last position; and a position is a number of 64 bits.
  WIDE_REQUIRE(
      static_cast<double>(outputs - 1) <= static_cast<double>(size) * static_cast<double>(scale),
      "interpolate: y's number of " + text(of) + " is " + text(outputs) + ", expected up to x's " +
          text(size) + " times " + text(scale) + ", and 1");
}

void require_legal_positions(const InterpolateProblem& p) {
  require_enumerator(kInterpolateName, "coordinates", p.coordinates, kAllCoordinateModes.back());
  require_enumerator(kInterpolateName, "layout", p.layout, ChannelLayout::channels_last);
  require_axis("rows", p.height, p.out_height, p.row_scale);
  require_axis("columns", p.width, p.out_width, p.column_scale);
  require_positions("height * width", "", p.height * p.width);
  require_positions("out_height * out_width", "", p.out_height * p.out_width);
}

void require_legal(const InterpolateProblem& p) {
  require_at_least(kInterpolateName, "num_members", p.num_members, 1);
  require_at_least(kInterpolateName, "batch", p.batch, 0);
  require_at_least(kInterpolateName, "channels", p.channels, 0);
  require_float_dtype(kInterpolateName, p.dtype);
  require_legal_positions(p);
  const int64_t bytes = dtype_bytes(p.dtype);
  (void)checked_bytes({p.batch, p.num_members, p.channels, p.height, p.width}, bytes);
  (void)checked_bytes({p.batch, p.num_members, p.channels, p.out_height, p.out_width}, bytes);
}

InterpolateProblem resolved(InterpolateProblem p) {
  p = resolved_positions(p);
  require_legal(p);
  const auto complete = [&](const char* name, int64_t height, int64_t width, ChannelStrides& of) {
    of = complete_strides(kInterpolateName, name,
                          {p.batch, p.num_members, p.channels, height, width, {}, p.layout}, of);
  };
  complete("x", p.height, p.width, p.x);
  complete("y", p.out_height, p.out_width, p.y);
  return p;
}

/// An operand as kernels see it.
MemberChannels look_at(const char* argument, const ConstTensorView& view,
                       const InterpolateProblem& like) {
  return member_images(kInterpolateName, argument, view, like.layout, like.num_members);
}

constexpr auto kInterpolateFields = [](const auto& same, const InterpolateProblem& got,
                                       const InterpolateProblem& plan) {
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
  same("coordinates", got.coordinates, plan.coordinates);
  same("row_scale", got.row_scale, plan.row_scale);
  same("column_scale", got.column_scale, plan.column_scale);
};

}  // namespace

std::string problem_key(const InterpolateProblem& complete) {
  return key_of_fields(complete, kInterpolateFields);
}
TuningKey tuning_key(const InterpolateProblem& problem) {
  return {std::string(kInterpolateName), problem_key(resolved(problem))};
}

InterpolateProblem resolved_positions(InterpolateProblem p) {
  if (p.out_height == 0) p.out_height = interpolate_outputs(p.height, p.row_scale);
  if (p.out_width == 0) p.out_width = interpolate_outputs(p.width, p.column_scale);
  require_legal_positions(p);
  return p;
}

int64_t interpolate_outputs(int64_t size, float scale) {
  if (!(scale > 0.0f)) return size;
  const double outputs = std::floor(static_cast<double>(size) * static_cast<double>(scale));
  constexpr double kMost = 0x1p62;
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(outputs, kMost)));
}

InterpolateProblem describe_interpolate(const InterpolateArguments& a,
                                        const InterpolateProblem& like) {
  const MemberChannels x = look_at("x", a.x, like), y = look_at("y", a.y, like);
  WIDE_REQUIRE(a.x.rank() == a.y.rank() && x.batch == y.batch && x.channels == y.channels,
               "interpolate: y is " + to_string(a.y.shape) +
                   ", expected the batch and channels of x = " + to_string(a.x.shape));
  InterpolateProblem p = like;
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
  require_disjoint_channels(kInterpolateName, "y", y);
  require_dtype(kInterpolateName, "y", a.y, p.dtype);
  require_device(kInterpolateName, "x", a.x, a.y.device);
  require_own_memory(kInterpolateName, "y", a.y, "x", a.x);
  return p;
}

template <>
struct PlanState<InterpolateProblem> : WideState<InterpolateProblem> {};
template class PrimitivePlan<InterpolateProblem>;

InterpolatePlan make_interpolate_plan(const Context& context, const InterpolateProblem& problem,
                                      const PlanOptions& options) {
  const InterpolateProblem full = resolved(problem);
  const LaunchRefusal launches = launch_refusal("blocks", full.num_members, [&](int64_t members) {
    return interpolate_launch_blocks(full, members);
  });
  return InterpolatePlan(std::make_shared<const InterpolatePlan::State>(
      make_wide_state(kInterpolateName, context, full, options, launches)));
}

void InterpolatePlan::run(const InterpolateArguments& arguments, const Execution& execution) const {
  const State& s = *state_;
  require_device(kInterpolateName, "y", arguments.y, s.context.device());
  require_same_problem(kInterpolateName, describe_interpolate(arguments, s.problem), s.problem,
                       kInterpolateFields);
  const NvtxRange range(s.range.c_str());
  if (s.context.device().type == DeviceType::cpu) {
    run_interpolate_cpu(s.context, s.problem, s.choice.strategy, arguments);
  } else {
    run_interpolate_cuda(s.context, s.problem, s.choice.strategy, arguments, execution.stream);
  }
}

}  // namespace wide
