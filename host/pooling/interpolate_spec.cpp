// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// interpolate for bench and verify: axes, sweeps, strategies, operands, cost.
#include <cmath>
#include <vector>

#include "host/conv/conv_problem.hpp"
#include "host/plan_workload.hpp"
#include "host/pooling/interpolate_problem.hpp"
#include "host/pooling/interpolate_reference.hpp"
#include "host/specs.hpp"
#include "wide/pack.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem: one scale for both axes, of signals for one.
InterpolateProblem problem_of(const Case& point) {
  InterpolateProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.channels = point.integer("channels");
  p.height = point.integer("height");
  p.width = point.integer("width") == 0 ? p.height : point.integer("width");
  p.coordinates = *parse_coordinate_mode(point.word("coordinates"));
  p.layout =
      point.word("layout") == "last" ? ChannelLayout::channels_last : ChannelLayout::channels_first;
  p.dtype = point.dtype();
  const float scale = static_cast<float>(point.integer("scale")) / 100;
  const bool is_signal = p.height == 1;
  p.out_height = is_signal ? 1 : interpolate_outputs(p.height, scale);
  p.out_width = interpolate_outputs(p.width, scale);
  if (point.word("by") == "scale") {
    p.row_scale = is_signal ? 0 : scale;
    p.column_scale = scale;
  }
  return p;
}

class InterpolateWorkload final : public PlanWorkload<describe_interpolate, make_interpolate_plan> {
 public:
  InterpolateWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {
    const InterpolateProblem& p = like();
    const bool is_last = p.layout == ChannelLayout::channels_last;
    const PackedOperand& packing =
        is_last ? operands::interpolate_x_channels_last : operands::interpolate_x;
    const auto images = [&](int64_t height, int64_t width) {
      return conv_shape(p.layout, 4, p.batch, p.channels, 1, {height, width});
    };
    x_ = &add_operand(packing, p.dtype, images(p.height, p.width), Distribution::uniform());
    y_ = &add_operand(packing, p.dtype, images(p.out_height, p.out_width), Distribution::none());
  }

  /// Two products and a sum along each axis. Positions that no output lies beside do not count.
  Cost cost() const override {
    const double axes = like().height == 1 ? 1 : 3;  // twice between columns, once between rows
    return {3 * axes * elements_of(*y_), bytes_of({x_}) * share_read(), bytes_of({y_})};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    interpolate_reference(like(), x_->values(member), row, values, tolerances);
  }
  double reference_row_flops() const override {
    return 40 * static_cast<double>(y_->member_shape(0).back());
  }

 private:
  InterpolateArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(y_)};
  }

  /// Of x. Where channels are first, rows whole: what columns skip lies in sectors that they need.
  double share_read() const {
    const InterpolateProblem& p = like();
    const auto share = [&](int64_t extent, int64_t outputs, float scale) {
      std::vector<bool> is_read(static_cast<size_t>(extent));
      for (int64_t i = 0; i < outputs; ++i) {
        const double at = interpolate_position(p.coordinates, i, extent, outputs, scale);
        is_read[static_cast<size_t>(std::floor(at))] = true;
        is_read[static_cast<size_t>(std::ceil(at))] = true;
      }
      return static_cast<double>(std::count(is_read.begin(), is_read.end(), true)) /
             static_cast<double>(extent);
    };
    const double rows = share(p.height, p.out_height, p.row_scale);
    return p.layout == ChannelLayout::channels_first
               ? rows
               : rows * share(p.width, p.out_width, p.column_scale);
  }

  const Operand *x_ = nullptr, *y_ = nullptr;
};

std::vector<Sweep> sweeps() {
  const Axis usual{"coordinates", {"half_pixel", "align_corners"}};
  const Axis all{"coordinates", word_values(kAllCoordinateModes, coordinate_mode_name)};
  return {{"quick",
           {{"n", ints({4, 8, 16, 32})},
            {"batch", ints({8})},
            {"channels", ints({64})},
            {"height", ints({32})},
            usual}},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
            {"batch", ints({8, 32})},
            {"channels", ints({64, 256})},
            {"height", ints({14, 28, 56})},
            {"layout", {"first", "last"}},
            {"scale", ints({50, 150, 200})},
            all}},
          {"ci",
           {{"n", ints({4, 16})},
            {"batch", ints({2})},
            {"channels", ints({16})},
            {"height", ints({16})},
            {"scale", ints({200, 70})},
            usual,
            {"layout", {"first", "last"}}}}};
}

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "interpolate";
  spec.summary = "y = x with more positions or fewer, by linear interpolation, channel by channel";
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0, {3, 2, 2}},
      {"channels", "channels C of a member", int64_t{64}, {}, 0, {5, 7, 11}},
      {"height", "rows of positions H; 1: signals", int64_t{32}, {}, 1, {7, 5, 19}},
      {"width", "positions in a row W; 0: as height", int64_t{0}, {}, 0, {11, 13, 67}},
      {"scale", "outputs of 100 positions, along each axis", int64_t{200}, {}, 1, {150, 73, 310}},
      {"coordinates", "where outputs lie", "half_pixel",
       words_of(kAllCoordinateModes, coordinate_mode_name)},
      {"by", "what that goes by: outputs / positions, or the scale", "sizes", {"sizes", "scale"}},
      dtype_axis("of x and y"),
      {"layout", "whether channels are first or last", "first", {"first", "last"}}};
  spec.strategies = wide_strategies(
      "one launch; channels first: whole images in shared memory, read once, and a thread has four "
      "outputs in each of some rows; last: 16 bytes of channels in each",
      {.streamed = 1.03, .bank_conflicts = 0.65, .is_memory_bound = true});
  // What neighbouring outputs share is asked for again, mostly by the same block.
  spec.strategies[1].traffic_channels_last = Traffic{.streamed = 1.55, .rereads = 2.3};
  spec.sweeps = sweeps();
  spec.tolerance_formula =
      "4 (1 + 2^-22) 2^-24 sum w |x| + 2 2^-24 D + u_out |y| + 2 min_subnormal, of neighbours of "
      "weights w, D apart at most";
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<InterpolateWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& interpolate_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
