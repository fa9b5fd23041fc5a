// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// groupnorm, instancenorm1d and instancenorm2d for bench and verify: one workload under three
// names. Instances are groups of one channel.
#include <algorithm>

#include "host/conv/conv_problem.hpp"
#include "host/norm/batchnorm_reference.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "host/norm/instancenorm_cudnn.hpp"
#include "host/norm/norm_spec.hpp"
#include "host/specs.hpp"
#include "wide/groupnorm.hpp"

namespace wide::catalog {

namespace {

bool is_1d(const Case& point) {
  return point.op() == "instancenorm1d";
}

/// The one place where axis values become a problem.
GroupnormProblem problem_of(const Case& point) {
  GroupnormProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  if (point.op() == "groupnorm") {
    p.groups = point.integer("groups");
    p.channels = p.groups * point.integer("group_size");
  } else {
    p.channels = point.integer("channels");
    p.groups = std::max<int64_t>(1, p.channels);
  }
  p.width = point.integer(is_1d(point) ? "length" : "width");
  if (!is_1d(point)) {
    p.height = point.integer("height");
    if (p.width == 0) p.width = p.height;
  }
  p.dtype = point.dtype();
  p.layout =
      point.word("layout") == "last" ? ChannelLayout::channels_last : ChannelLayout::channels_first;
  p.has_gamma = p.has_beta = point.word("affine") == "yes";
  return p;
}

const PackedOperand& packing_of(const Case& point) {
  if (point.word("layout") == "last") return operands::groupnorm_x_channels_last;
  if (point.op() == "groupnorm") return operands::groupnorm_x;
  return is_1d(point) ? operands::instancenorm1d_x : operands::instancenorm2d_x;
}

class GroupnormWorkload final : public PlanWorkload<describe_groupnorm, make_groupnorm_plan> {
 public:
  GroupnormWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {
    const GroupnormProblem& p = like();
    const Shape x = is_1d(point)
                        ? conv_shape(p.layout, 3, p.batch, p.channels, 1, {1, p.width})
                        : conv_shape(p.layout, 4, p.batch, p.channels, 1, {p.height, p.width});
    const auto add_parameter = [&](bool is_there) {
      return add_operand_if(is_there, operands::channel_parameter, p.dtype, {p.channels},
                            Distribution::uniform());
    };
    x_ = &add_operand(packing_of(point), p.dtype, x, around_offset(point));
    gamma_ = add_parameter(p.has_gamma);
    beta_ = add_parameter(p.has_beta);
    y_ = &add_operand(packing_of(point), p.dtype, x, Distribution::none());
  }

  /// Per element: subtract, two sums, square, scale by two factors, shift.
  Cost cost() const override {
    return {8 * elements_of(*x_), bytes_of({x_, gamma_, beta_}), bytes_of({y_})};
  }

  /// In the reference's terms a group of a batch row is a channel of a batch of one.
  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const GroupnormProblem& p = like();
    BatchnormProblem as_channels;
    as_channels.batch = 1;
    as_channels.channels = p.batch * p.groups;
    as_channels.width = p.channels / p.groups * p.height * p.width;
    as_channels.dtype = p.dtype;
    as_channels.epsilon = p.epsilon;
    const auto x = x_->values(member);
    const bool is_last = p.layout == ChannelLayout::channels_last;
    if (statistics_member_ != member) {
      statistics_ = is_last ? channel_statistics(as_channels, channels_first(x))
                            : channel_statistics(as_channels, x);
      statistics_member_ = member;
    }
    const auto normalise = [&](int64_t image_channel, size_t first, size_t count) {
      const auto channel = static_cast<size_t>(image_channel % p.channels);
      const auto of = [&](const Operand* operand, double absent) {
        return operand == nullptr ? absent : operand->values(member)[channel];
      };
      const auto group = static_cast<size_t>(image_channel / (p.channels / p.groups));
      batchnorm_reference(as_channels, statistics_[group], of(gamma_, 1), of(beta_, 0),
                          x.subspan(static_cast<size_t>(row) * values.size() + first, count),
                          values.subspan(first, count), tolerances.subspan(first, count));
    };
    const int64_t positions = p.height * p.width;
    if (!is_last) return normalise(row * p.width / positions, 0, values.size());  // b * C + c
    for (size_t c = 0; c < values.size(); ++c) {
      normalise(row / positions * p.channels + static_cast<int64_t>(c), c, 1);
    }
  }
  double reference_row_flops() const override {
    return 12 * static_cast<double>(x_->member_shape(0).back());
  }

 private:
  GroupnormArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(gamma_), view(beta_), view(y_)};
  }
  std::string cudnn_unsupported_reason(const GroupnormArguments& arguments) const override {
    return instancenorm_cudnn_unsupported_reason(arguments);
  }

  /// [B, positions, C] as [B, C, positions].
  std::vector<double> channels_first(std::span<const double> x) const {
    const auto channels = static_cast<size_t>(like().channels),
               positions = static_cast<size_t>(like().height * like().width);
    std::vector<double> turned(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t channel = i % channels, position = i / channels % positions;
      turned[(i / (channels * positions) * channels + channel) * positions + position] = x[i];
    }
    return turned;
  }

  const Operand *x_ = nullptr, *gamma_ = nullptr, *beta_ = nullptr, *y_ = nullptr;
  mutable std::vector<ChannelStatistics> statistics_;  ///< of the member used last
  mutable int64_t statistics_member_ = -1;
};

/// `sizes`: the axes between the batch and those of all norms; the others: their sweeps.
PrimitiveSpec make_spec(std::string_view name, std::string_view summary,
                        const std::vector<AxisInfo>& sizes, const std::vector<Axis>& small_sizes,
                        const std::vector<Axis>& full_sizes) {
  PrimitiveSpec spec;
  spec.name = name;
  spec.summary = summary;
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "batch rows B", int64_t{8}, {}, 0, {3, 2, 2}}};
  spec.axes.insert(spec.axes.end(), sizes.begin(), sizes.end());
  spec.axes.insert(spec.axes.end(),
                   {dtype_axis("of x, gamma, beta and y"),
                    {"layout", "whether channels are first or last", "first", {"first", "last"}},
                    affine_axis(),
                    offset_axis()});
  // gamma and beta are read again by every warp for its chunks: L1 serves them.
  spec.strategies =
      wide_strategies("one launch; a group of a batch row on chip: read once, written once",
                      {.streamed = 1.07, .rereads = 0.07, .is_memory_bound = true});
  // Of many positions x is read twice, and moments are left in between.
  for (StrategyInfo& info : spec.strategies) {
    if (info.name == "wide" || info.name == "sequential") {
      info.traffic_channels_last = Traffic{.streamed = 1.7, .rereads = 0.1, .bank_conflicts = 0.2};
    }
  }
  const auto sweep = [](std::vector<AxisValue> n, std::vector<AxisValue> batch,
                        const std::vector<Axis>& more) {
    return joined<Axis>({{"n", std::move(n)}, {"batch", std::move(batch)}}, more);
  };
  spec.sweeps = {
      {"quick", sweep(ints({4, 8, 16, 32}), ints({8}), small_sizes)},
      {"full", sweep(ints({2, 4, 8, 16, 32, 64, 100}), ints({4, 8, 16, 32}), full_sizes)},
      {"ci", sweep(ints({4, 16}), ints({8}),
                   joined<Axis>(small_sizes, {{"layout", {"first", "last"}}}))}};
  spec.tolerance_formula = kBatchnormToleranceFormula;
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<GroupnormWorkload>;
  return spec;
}

/// cuDNN has the norm with one channel per group.
PrimitiveSpec instancenorm(PrimitiveSpec spec) {
  spec.strategies = with_cudnn(std::move(spec.strategies));
  return spec;
}

AxisInfo channels_axis() {
  return {"channels", "channels C of a member", int64_t{64}, {}, 0, {5, 7, 11}};
}
std::vector<AxisInfo> image_axes() {
  return {{"height", "rows of positions H", int64_t{32}, {}, 0, {7, 5, 19}},
          {"width", "positions in a row W; 0: as height", int64_t{0}, {}, 0, {11, 13, 67}}};
}

}  // namespace

const PrimitiveSpec& groupnorm_spec() {
  static const PrimitiveSpec spec = [] {
    const auto axes =
        joined<AxisInfo>({{"groups", "groups G of a member", int64_t{8}, {}, 1, {2, 3, 3}},
                          {"group_size", "channels of a group", int64_t{8}, {}, 0, {5, 7, 7}}},
                         image_axes());
    return make_spec(
        "groupnorm", "y = (x - mean) / sqrt(variance + eps) * gamma + beta, group by group", axes,
        {{"groups", ints({8})}, {"group_size", ints({8})}, {"height", ints({32})}},
        {{"groups", ints({8, 32})}, {"group_size", ints({4, 8})}, {"height", ints({16, 32, 56})}});
  }();
  return spec;
}

const PrimitiveSpec& instancenorm1d_spec() {
  static const PrimitiveSpec spec = instancenorm(make_spec(
      "instancenorm1d", "y = (x - mean) / sqrt(variance + eps) * gamma + beta, signal by signal",
      {channels_axis(), {"length", "positions L", int64_t{256}, {}, 0, {7, 13, 67}}},
      {{"channels", ints({64})}, {"length", ints({256})}},
      {{"channels", ints({32, 64, 128, 256})}, {"length", ints({64, 256, 1024})}}));
  return spec;
}

const PrimitiveSpec& instancenorm2d_spec() {
  static const PrimitiveSpec spec = [] {
    std::vector<AxisInfo> axes = image_axes();
    axes.insert(axes.begin(), channels_axis());
    return instancenorm(make_spec(
        "instancenorm2d", "y = (x - mean) / sqrt(variance + eps) * gamma + beta, image by image",
        axes, {{"channels", ints({64})}, {"height", ints({32})}},
        {{"channels", ints({32, 64, 128, 256})}, {"height", ints({16, 32, 56})}}));
  }();
  return spec;
}

}  // namespace wide::catalog
