// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ragged_linear for bench and verify. How ragged is one axis, `spread`; a member's shape is
// drawn by its id, as its contents are, so that members can be permuted, repeated and left out.
#include <algorithm>
#include <numeric>

#include "host/linear/linear_reference.hpp"
#include "host/linear/ragged_linear_problem.hpp"
#include "host/linear/ragged_linear_strategy.hpp"
#include "host/linear_values.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"
#include "wide/ragged_linear.hpp"

namespace wide::catalog {

namespace {

/// Features stay multiples of what the largest is a multiple of, up to 16: real widths are.
int64_t draw_features(int64_t largest, int64_t spread, std::string_view axis, int64_t id) {
  return draw_member_size(largest, spread, std::gcd(largest, int64_t{16}), axis, id);
}

int64_t largest_in_of(const Case& point) {
  return point.integer("in") == 0 ? point.integer("d") : point.integer("in");
}

/// The one place where axis values become a problem.
RaggedLinearProblem problem_of(const Case& point, const WorkloadOptions& options) {
  const int64_t out = point.integer("out") == 0 ? point.integer("d") : point.integer("out");
  const int64_t spread = point.integer("spread"), padding = options.row_padding;
  RaggedLinearProblem problem;
  problem.dtype = point.dtype();
  problem.allow_tf32 = point.word("tf32") == "yes";
  problem.epilogue = epilogue_of_case(point);
  for (int64_t i = 0; i < point.integer("n"); ++i) {
    const int64_t id =
        options.member_ids.empty() ? i : options.member_ids.at(static_cast<size_t>(i));
    RaggedLinearMember member;
    member.batch = draw_member_size(point.integer("batch"), spread, 1, "batch", id);
    member.in_features = draw_features(largest_in_of(point), spread, "in", id);
    member.out_features = draw_features(out, spread, "out", id);
    member.x.row = member.weight.row = member.in_features + padding;
    member.y.row = member.out_features + padding;
    problem.members.push_back(member);
  }
  return lay_out_ragged_linear(std::move(problem));
}

std::string impossible_reason(const Case& point) {
  const std::string reason = spread_impossible_reason(point);
  return reason.empty() ? tf32_impossible_reason(point) : reason;
}

class RaggedLinearWorkload final : public PackedWorkload {
 public:
  /// `largest_in`: of members that are not among these, too, so that contents depend on no
  /// neighbour.
  RaggedLinearWorkload(const Context& context, RaggedLinearProblem problem, int64_t largest_in,
                       const WorkloadOptions& options)
      : PackedWorkload(context, static_cast<int64_t>(problem.members.size()), options),
        problem_(std::move(problem)),
        x_(*add("x", problem_.dtype, x_place,
                linear_input_distribution(options.fill, problem_.dtype, problem_.epilogue,
                                          largest_in))),
        weight_(*add("weight", problem_.dtype, weight_place, parameters())) {
    const Epilogue& epilogue = problem_.epilogue;
    if (epilogue.has_bias) bias_ = add("bias", problem_.dtype, bias_place, parameters());
    if (epilogue.scale != OutputScale::none) {
      const bool is_per_member = epilogue.scale == OutputScale::per_member;
      scale_ = add("scale", Dtype::fp32, is_per_member ? member_scale_place : bias_place,
                   linear_scale_distribution(options.fill));
    }
    if (epilogue.residual != Residual::none) {
      residual_ = add("residual", problem_.dtype, y_place, parameters());
    }
    y_ = add("y", problem_.dtype, y_place, Distribution::none());
    for (size_t i = 0; i < problem_.members.size(); ++i) {
      likes_.push_back(ragged_member_problem(problem_, i));
    }
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    const DeviceInfo& device = context().info();
    RaggedLinearStrategy wanted{};
    const std::string reason = reason_against([&] {
      wanted =
          choose_ragged_linear_strategy(problem_, device, verified_strategies(), strategy).strategy;
      return wanted;
    });
    const bool calls_cublas =
        reason.empty() && ragged_linear_workspace_bytes(wanted, problem_, device) > 0;
    return calls_cublas ? cublas_unavailable_reason() : reason;
  }

  Prepared prepare(const PlanOptions& options) override {
    const OperandViews view;
    const RaggedLinearArguments operands{.x = view(x_),
                                         .weight = view(weight_),
                                         .bias = view(bias_),
                                         .y = view(y_),
                                         .scale = view(scale_),
                                         .residual = view(residual_)};
    return prepared(make_ragged_linear_plan(context(), problem_, options), operands);
  }

  std::string baseline_unsupported_reason() const override { return cublas_unavailable_reason(); }

  /// One linear of one member each: one cublasGemmEx and its epilogue (CPU: our kernel).
  PreparedMembers prepare_members() override {
    std::vector<LinearPlan> plans;
    std::vector<LinearArguments> members;
    for (size_t i = 0; i < likes_.size(); ++i) {
      members.push_back(member_arguments(i));
      plans.push_back(make_linear_plan(context(), describe_linear(members.back(), likes_[i]),
                                       {.strategy = "sequential"}));
    }
    return prepared_members(std::move(plans), std::move(members));
  }

  Cost cost() const override {
    Cost cost;
    for (const LinearProblem& one : likes_) {
      cost.items += static_cast<double>(one.batch);
      cost.flops += static_cast<double>(one.batch) * static_cast<double>(one.out_features) *
                    (2 * static_cast<double>(one.in_features) + (bias_ ? 1 : 0) + (scale_ ? 1 : 0) +
                     (residual_ ? 1 : 0));
    }
    cost.bytes_read = bytes_of({&x_, &weight_, bias_, scale_, residual_});
    cost.bytes_written = bytes_of({y_});
    return cost;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const LinearProblem& like = likes_[static_cast<size_t>(member)];
    const LinearReferenceRow operands{row_of(&x_, member, row, like.in_features),
                                      values_of(&weight_, member), values_of(bias_, member),
                                      values_of(scale_, member),
                                      row_of(residual_, member, row, like.out_features)};
    judge_linear_row(like, operands, options().fill, values, tolerances);
  }

  double mean_square_limit() const override {
    const LinearProblem& like = likes_.front();
    return product_mean_square_limit(like.dtype, like.y_dtype.value_or(like.dtype), like.allow_tf32,
                                     options().fill);
  }

  double reference_row_flops() const override {
    double most = 0;
    for (const LinearProblem& one : likes_) {
      most = std::max(
          most, 4 * static_cast<double>(one.in_features) * static_cast<double>(one.out_features));
    }
    return most;
  }

 private:
  using PlaceOf = MemberPlace (*)(const RaggedLinearMember&, int64_t index);

  static MemberPlace x_place(const RaggedLinearMember& m, int64_t) {
    return {{m.batch, m.in_features}, m.x.offset, {m.x.row, 1}};
  }
  static MemberPlace weight_place(const RaggedLinearMember& m, int64_t) {
    return {{m.out_features, m.in_features}, m.weight.offset, {m.weight.row, 1}};
  }
  static MemberPlace y_place(const RaggedLinearMember& m, int64_t) {
    return {{m.batch, m.out_features}, m.y.offset, {m.y.row, 1}};
  }
  static MemberPlace bias_place(const RaggedLinearMember& m, int64_t) {
    return {{m.out_features}, m.bias_offset, {1}};
  }
  static MemberPlace member_scale_place(const RaggedLinearMember&, int64_t index) {
    return {{1}, index, {1}};
  }

  Operand* add(std::string_view name, Dtype dtype, PlaceOf place_of,
               const Distribution& distribution) {
    std::vector<MemberPlace> places;
    for (const RaggedLinearMember& member : problem_.members) {
      places.push_back(place_of(member, static_cast<int64_t>(places.size())));
    }
    return &add_ragged_operand(name, dtype, std::move(places), distribution);
  }

  Distribution parameters() const { return linear_parameter_distribution(options().fill); }

  LinearArguments member_arguments(size_t index) const {
    const auto i = static_cast<int64_t>(index);
    const LinearProblem& like = likes_[index];
    const auto with_member_axis = [](const TensorView& view, const Shape& shape) {
      return TensorView(view.data, view.dtype, shape, view.device);
    };
    LinearArguments arguments;
    arguments.x = x_.member(i);
    arguments.weight =
        with_member_axis(weight_.member(i), {1, like.out_features, like.in_features});
    if (bias_ != nullptr) {
      arguments.bias = with_member_axis(bias_->member(i), {1, like.out_features});
    }
    if (scale_ != nullptr) {
      const bool is_per_member = problem_.epilogue.scale == OutputScale::per_member;
      arguments.scale =
          with_member_axis(scale_->member(i), {1, is_per_member ? 1 : like.out_features});
    }
    if (residual_ != nullptr) arguments.residual = residual_->member(i);
    arguments.y = y_->member(i);
    return arguments;
  }

  RaggedLinearProblem problem_;
  std::vector<LinearProblem> likes_;  ///< the members, one by one
  const Operand& x_;
  const Operand& weight_;
  const Operand* bias_ = nullptr;
  const Operand* scale_ = nullptr;
  const Operand* residual_ = nullptr;
  const Operand* y_ = nullptr;
};

std::vector<AxisInfo> axes() {
  return {
      {"n", "members", int64_t{8}, {}, 1},
      {"batch", "rows of the largest member's x", int64_t{16}, {}, 0},
      {"d", "in = out = d, of the largest member", int64_t{256}, {}, 0},
      {"in", "in_features of the largest; 0: d", int64_t{0}, {}, 0},
      {"out", "out_features of the largest; 0: d", int64_t{0}, {}, 0},
      {"spread",
       "percent of the largest by which batch, in and out of a member may be less",
       int64_t{75},
       {},
       0},
      dtype_axis("of x, weight, bias and y"),
      activation_axis("after the bias"),
      bias_axis(),
      linear_scale_axis(),
      epilogue_residual_axis(),
      tf32_axis(),
  };
}

std::vector<StrategyInfo> strategies() {
  using enum StrategyKind;
  return {
      {"sequential", DeviceType::cuda, sequential,
       "one cuBLAS GEMM and one epilogue per member, each of its own shape"},
      {"cublas_grouped", DeviceType::cuda, vendor,
       "one grouped cuBLAS GEMM by pointers, its epilogue before or after it"},
      {"simt",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel for members of all shapes, fp32 multiply-adds, epilogue fused",
       // Every warp asks for its block's tile and member; operands as linear's.
       {.streamed = 1.06, .rereads = 0.2, .bank_conflicts = 0.025}},
      {"tensor_core",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel for members of all shapes on tensor cores, epilogue fused",
       {.streamed = 1.06, .rereads = 0.2, .bank_conflicts = 0.01}},
      {"sequential", DeviceType::cpu, sequential, "member after member, each over all threads"},
      {"wide", DeviceType::cpu, hand_written, "the blocks of all members over all threads at once"},
  };
}

}  // namespace

const PrimitiveSpec& ragged_linear_spec() {
  static const PrimitiveSpec spec{
      .name = "ragged_linear",
      .summary = "linear with a batch and widths of its own for every member, in one call",
      .axes = axes(),
      .strategies = strategies(),
      .sweeps = uneven_sweeps(),
      .tolerance_formula = kLinearToleranceFormula,
      .trusted_zeros = 0.9,  // of relu, and of few whole numbers
      .impossible_reason = impossible_reason,
      .tuning_key = [](const Case& point) { return tuning_key(problem_of(point, {})); },
      .make_workload = [](const Context& context, const Case& point,
                          const WorkloadOptions& options) -> std::unique_ptr<Workload> {
        return std::make_unique<RaggedLinearWorkload>(context, problem_of(point, options),
                                                      largest_in_of(point), options);
      }};
  return spec;
}

}  // namespace wide::catalog
