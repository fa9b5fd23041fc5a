// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// batchnorm1d and batchnorm2d for bench and verify: one workload under two names, whose positions
// are one axis or two. The running statistics that mode train writes are judged by batchnorm_test.
#include "host/norm/batchnorm_cudnn.hpp"
#include "host/norm/batchnorm_reference.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/norm_spec.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

bool is_2d(const Case& point) {
  return point.op() == "batchnorm2d";
}

/// The one place where axis values become a problem.
BatchnormProblem problem_of(const Case& point) {
  BatchnormProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.channels = point.integer("channels");
  p.width = point.integer(is_2d(point) ? "width" : "length");
  if (is_2d(point)) {
    p.height = point.integer("height");
    if (p.width == 0) p.width = p.height;
  }
  p.dtype = point.dtype();
  p.mode = point.word("mode") == "train" ? BatchnormMode::train : BatchnormMode::eval;
  p.has_gamma = p.has_beta = point.word("affine") == "yes";
  return p;
}

std::string impossible_reason(const Case& point) {
  const BatchnormProblem p = problem_of(point);
  return p.mode == BatchnormMode::train && p.batch * p.height * p.width < 2
             ? "fewer than two values have no variance to train with"
             : "";
}

class BatchnormWorkload final : public PlanWorkload<describe_batchnorm, make_batchnorm_plan> {
 public:
  BatchnormWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {
    const BatchnormProblem& p = like();
    const PackedOperand& packing = is_2d(point) ? operands::batchnorm2d_x : operands::batchnorm1d_x;
    const Shape x = is_2d(point) ? Shape{p.batch, p.channels, p.height, p.width}
                                 : Shape{p.batch, p.channels, p.width};
    const auto offset = static_cast<double>(point.integer("offset"));
    x_ = &add_operand(packing, p.dtype, x, around_offset(point));
    if (p.has_gamma) {
      gamma_ = &add_parameter(p.dtype, Distribution::uniform());
      beta_ = &add_parameter(p.dtype, Distribution::uniform());
    }
    mean_ = &add_parameter(Dtype::fp32, Distribution::uniform(offset - 0.5, offset + 0.5));
    variance_ = &add_parameter(Dtype::fp32, Distribution::uniform(0.25, 1));
    y_ = &add_operand(packing, p.dtype, x, Distribution::none());
  }

  /// Per element: subtract, scale, shift; in train also a sum, a difference, a square, two sums.
  Cost cost() const override {
    const bool trains = like().mode == BatchnormMode::train;
    const double statistics = bytes_of({mean_, variance_});
    return {(trains ? 8 : 3) * elements_of(*x_), bytes_of({x_, gamma_, beta_}) + statistics,
            bytes_of({y_}) + (trains ? statistics : 0)};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto channel = static_cast<size_t>(
        row / (y_->member_shape(member).rank() == 4 ? like().height : 1) % like().channels);
    const auto of = [&](const Operand* operand, double absent) {
      return operand == nullptr ? absent : operand->values(member)[channel];
    };
    const auto x = x_->values(member);
    ChannelStatistics statistics;
    if (like().mode == BatchnormMode::eval) {
      statistics = {of(mean_, 0), of(variance_, 0)};
    } else {
      if (statistics_member_ != member) {
        statistics_ = channel_statistics(like(), x);
        statistics_member_ = member;
      }
      statistics = statistics_[channel];
    }
    batchnorm_reference(like(), statistics, of(gamma_, 1), of(beta_, 0),
                        x.subspan(static_cast<size_t>(row) * values.size(), values.size()), values,
                        tolerances);
  }
  double reference_row_flops() const override { return 12 * static_cast<double>(like().width); }

 private:
  BatchnormArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(gamma_), view(beta_), view(mean_), view(variance_), view(y_), {}, {}};
  }
  std::string cudnn_unsupported_reason(const BatchnormArguments& arguments) const override {
    return batchnorm_cudnn_unsupported_reason(arguments);
  }

  Operand& add_parameter(Dtype dtype, const Distribution& distribution) {
    Operand::Description description;
    description.packing = operands::channel_parameter;
    description.dtype = dtype;
    description.member_shape = {like().channels};
    description.distribution = distribution;
    description.is_state = dtype == Dtype::fp32 && like().mode == BatchnormMode::train;
    return add_operand(std::move(description));
  }

  const Operand *x_ = nullptr, *gamma_ = nullptr, *beta_ = nullptr, *mean_ = nullptr,
                *variance_ = nullptr, *y_ = nullptr;
  mutable std::vector<ChannelStatistics> statistics_;  ///< of the member used last
  mutable int64_t statistics_member_ = -1;
};

PrimitiveSpec make_spec(std::string_view name, std::vector<AxisInfo> positions,
                        std::vector<Axis> small_positions, std::vector<Axis> full_positions) {
  PrimitiveSpec spec;
  spec.name = name;
  spec.summary =
      "y = (x - mean) / sqrt(variance + eps) * gamma + beta, every channel of every member";
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "batch rows B", int64_t{8}, {}, 0, {3, 2, 2}},
               {"channels", "channels C of a member", int64_t{64}, {}, 0, {5, 7, 11}}};
  spec.axes.insert(spec.axes.end(), positions.begin(), positions.end());
  spec.axes.insert(spec.axes.end(),
                   {dtype_axis("of x, gamma, beta and y; running statistics are fp32"),
                    {"mode", "whose statistics", "eval", {"eval", "train"}, 0},
                    affine_axis(),
                    offset_axis()});
  // Parameters are read again by every warp of a channel's blocks.
  spec.strategies = with_cudnn(wide_strategies(
      "one launch; eval streams, train keeps a channel on chip: read once, written once",
      {.streamed = 1.04, .rereads = 0.05, .is_memory_bound = true}));
  const auto small = [&](std::vector<AxisValue> n) {
    return joined<Axis>({{"n", std::move(n)}, {"batch", ints({8})}, {"channels", ints({64})}},
                        small_positions);
  };
  spec.sweeps = {{"quick", small(ints({4, 8, 16, 32}))},
                 {"full", joined<Axis>({{"n", ints({2, 4, 8, 16, 32, 64, 100})},
                                        {"batch", ints({4, 8, 16, 32})},
                                        {"channels", ints({32, 64, 128, 256})}},
                                       full_positions)},
                 {"ci", small(ints({4, 16}))}};
  spec.tolerance_formula = kBatchnormToleranceFormula;
  spec.impossible_reason = impossible_reason;
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<BatchnormWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& batchnorm1d_spec() {
  static const PrimitiveSpec spec =
      make_spec("batchnorm1d", {{"length", "positions L", int64_t{256}, {}, 0, {7, 13, 67}}},
                {{"length", ints({256})}}, {{"length", ints({1, 64, 256, 1024})}});
  return spec;
}

const PrimitiveSpec& batchnorm2d_spec() {
  static const PrimitiveSpec spec = make_spec(
      "batchnorm2d",
      {{"height", "rows of positions H", int64_t{32}, {}, 0, {7, 5, 19}},
       {"width", "positions in a row W; 0: as height", int64_t{0}, {}, 0, {11, 13, 67}}},
      {{"height", ints({32})}}, {{"height", ints({16, 32, 56})}, {"width", ints({16, 32, 56})}});
  return spec;
}

}  // namespace wide::catalog
