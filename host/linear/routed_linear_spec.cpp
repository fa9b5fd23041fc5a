// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear, as bench and verify see it. How unevenly rows are routed is one axis, `spread`.
// Rows of all members are shuffled: where x or y lies by rows, a member's are scattered over it.
#include <cstring>
#include <numeric>

#include "host/linear/linear_reference.hpp"
#include "host/linear/linear_values.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"
#include "wide/linear.hpp"
#include "wide/routed_linear.hpp"

namespace wide::catalog {

namespace {

/// Rows of each member.
std::vector<int64_t> row_counts(const Case& point, const WorkloadOptions& options) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < point.integer("n"); ++i) {
    const int64_t id =
        options.member_ids.empty() ? i : options.member_ids.at(static_cast<size_t>(i));
    counts.push_back(
        draw_member_size(point.integer("batch"), point.integer("spread"), 1, "batch", id));
  }
  return counts;
}

/// The one place where axis values become a problem.
RoutedLinearProblem routed_problem_of(const Case& point, const std::vector<int64_t>& counts) {
  const int64_t d = point.integer("d"), in = point.integer("in"), out = point.integer("out");
  RoutedLinearProblem problem;
  problem.num_members = point.integer("n");
  problem.num_rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  problem.in_features = in == 0 ? d : in;
  problem.out_features = out == 0 ? d : out;
  problem.dtype = point.dtype();
  problem.allow_tf32 = point.word("tf32") == "yes";
  problem.gathers = point.word("gather") == "yes";
  problem.scatters = point.word("scatter") == "yes";
  problem.has_gates = point.word("gates") == "yes";
  problem.epilogue = epilogue_of_case(point);
  return problem;
}

std::string routed_impossible_reason(const Case& point) {
  if (point.integer("spread") > 100) {
    return "spread is " + std::to_string(point.integer("spread")) + " percent, expected up to 100";
  }
  return tf32_impossible_reason(point);
}

/// Which rows are whose.
struct ShuffledRows {
  explicit ShuffledRows(const std::vector<int64_t>& counts) : of_member(counts.size()) {
    constexpr uint64_t kSeed = 7;
    std::vector<size_t> owners;
    first_rows.push_back(0);
    for (size_t i = 0; i < counts.size(); ++i) {
      owners.insert(owners.end(), static_cast<size_t>(counts[i]), i);
      first_rows.push_back(static_cast<int32_t>(owners.size()));
    }
    for (size_t left = owners.size(); left > 1; --left) {
      std::swap(owners[left - 1], owners[random_bits(kSeed, left) % left]);
    }
    for (size_t row = 0; row < owners.size(); ++row) {
      of_member[owners[row]].push_back(static_cast<int64_t>(row));
    }
    for (const auto& rows : of_member) order.insert(order.end(), rows.begin(), rows.end());
  }

  std::vector<int32_t> first_rows, order;
  std::vector<std::vector<int64_t>> of_member;  ///< ascending
};

class RoutedLinearWorkload final
    : public PlanWorkload<describe_routed_linear, make_routed_linear_plan> {
 public:
  RoutedLinearWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : RoutedLinearWorkload(context, point, options, row_counts(point, options)) {}

  std::string baseline_unsupported_reason() const override {
    if (gates_ != nullptr) return "linear has no gates";
    return cublas_unavailable_reason();
  }

  /// One linear of one member each, on rows that lie together: one cublasGemmEx and its epilogue
  /// (CPU: our kernel).
  PreparedMembers prepare_members() override {
    std::vector<LinearPlan> plans;
    std::vector<LinearArguments> members;
    int64_t workspace_bytes = 0;
    for (int64_t i = 0; i < num_members(); ++i) {
      const OperandViews view(i);
      LinearArguments& one = members.emplace_back();
      one.x = x_.member(i);
      one.weight = view(weight_);
      one.bias = view(bias_);
      one.y = y_->member(i);
      one.scale = view(scale_);
      if (residual_ != nullptr) one.residual = residual_->member(i);
      plans.push_back(make_linear_plan(context(), describe_linear(one, member_problem()),
                                       {.strategy = "sequential"}));
      workspace_bytes = std::max(workspace_bytes, plans.back().workspace_bytes());
    }
    return {[plans, members](int64_t member, const Execution& execution) {
              const auto i = static_cast<size_t>(member);
              plans[i].run(members[i], execution);
            },
            workspace_bytes};
  }

  Cost cost() const override {
    const RoutedLinearProblem& p = like();
    Cost cost;
    cost.items = static_cast<double>(p.num_rows);
    cost.flops = static_cast<double>(p.num_rows) * static_cast<double>(p.out_features) *
                 (2 * static_cast<double>(p.in_features) + (bias_ ? 1 : 0) + (scale_ ? 1 : 0) +
                  (residual_ ? 1 : 0) + (gates_ ? 1 : 0));
    cost.bytes_read = bytes_of({&x_, &weight_, bias_, scale_, residual_, gates_, first_rows_,
                                p.gathers || p.scatters || p.has_gates ? order_ : nullptr});
    cost.bytes_written = bytes_of({y_});
    return cost;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const RoutedLinearProblem& p = like();
    const LinearReferenceRow operands{row_of(&x_, member, row, p.in_features),
                                      values_of(&weight_, member), values_of(bias_, member),
                                      values_of(scale_, member),
                                      row_of(residual_, member, row, p.out_features)};
    judge_linear_row(member_problem(), operands, options().fill, values, tolerances);
    if (gates_ == nullptr) return;
    // One more rounding in fp32; exact tolerances remain so, as such fills' gates are powers of
    // two.
    const double gate = gates_->values(member)[static_cast<size_t>(row)];
    for (size_t o = 0; o < values.size(); ++o) {
      values[o] *= gate;
      if (tolerances[o] == 0) continue;
      tolerances[o] =
          tolerances[o] * std::fabs(gate) + 0x1p-24 * std::fabs(values[o]) + min_subnormal(p.dtype);
    }
  }

  double mean_square_limit() const override {
    return product_mean_square_limit(like().dtype, like().dtype, like().allow_tf32, options().fill);
  }

  double reference_row_flops() const override {
    return 4 * static_cast<double>(like().in_features) * static_cast<double>(like().out_features);
  }

 private:
  RoutedLinearWorkload(const Context& context, const Case& point, const WorkloadOptions& options,
                       const std::vector<int64_t>& counts)
      : PlanWorkload(context, complete_routed_linear_problem(routed_problem_of(point, counts)),
                     options),
        rows_(counts),
        x_(add_rows("x", like().dtype, like().in_features, like().gathers,
                    linear_input_distribution(options.fill, like().dtype, like().epilogue,
                                              like().in_features * (like().has_gates ? 2 : 1)))),
        weight_(add_operand(operands::linear_weight, like().dtype,
                            {like().out_features, like().in_features}, parameters())) {
    const RoutedLinearProblem& p = like();
    const int64_t out = p.out_features;
    const bool is_per_member = p.epilogue.scale == OutputScale::per_member;
    bias_ =
        add_operand_if(p.epilogue.has_bias, operands::linear_bias, p.dtype, {out}, parameters());
    scale_ =
        add_operand_if(p.epilogue.scale != OutputScale::none, operands::linear_scale, Dtype::fp32,
                       {is_per_member ? 1 : out}, linear_scale_distribution(options.fill));
    if (p.epilogue.residual != Residual::none) {
      residual_ = &add_rows("residual", p.dtype, out, p.scatters, parameters());
    }
    if (p.has_gates) {
      gates_ = &add_rows("gates", Dtype::fp32, 1, true, linear_scale_distribution(options.fill), 0);
    }
    first_rows_ = &add_numbers("first_rows", rows_.first_rows);
    order_ = &add_numbers("order", rows_.order);
    y_ = &add_rows("y", p.dtype, out, p.scatters, Distribution::none());
  }

  /// Rows of all members, by rows or in routed order.
  Operand& add_rows(std::string_view name, Dtype dtype, int64_t features, bool is_by_rows,
                    const Distribution& distribution, std::optional<int64_t> padding = {}) {
    const int64_t stride = features + padding.value_or(options().row_padding);
    std::vector<MemberPlace> places;
    for (size_t i = 0; i < rows_.of_member.size(); ++i) {
      const auto count = static_cast<int64_t>(rows_.of_member[i].size());
      MemberPlace& place = places.emplace_back();
      place = {.shape = {count, features}, .strides = {stride, 1}};
      if (is_by_rows) {
        place.rows = rows_.of_member[i];
      } else {
        place.offset = rows_.first_rows[i] * stride;
      }
    }
    return add_ragged_operand(name, dtype, std::move(places), distribution);
  }

  /// A part of the routing.
  Operand& add_numbers(std::string_view name, const std::vector<int32_t>& numbers) {
    Operand::Description description;
    description.packing.name = name;
    description.dtype = Dtype::int32;
    description.member_shape = {static_cast<int64_t>(numbers.size())};
    description.is_shared = true;
    description.contents = [numbers](int64_t, bool, std::span<std::byte> bytes) {
      if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
    };
    return add_operand(std::move(description));
  }

  Arguments arguments(const OperandViews& view) const override {
    const auto rows_of = [&](const Operand* operand, int64_t features) {
      if (operand == nullptr) return TensorView();
      TensorView rows = operand->packed();
      rows.shape = Shape{like().num_rows, features};
      rows.strides = Strides{features + options().row_padding, 1};
      return rows;
    };
    const int64_t out = like().out_features;
    return {.x = rows_of(&x_, like().in_features),
            .weight = view(weight_),
            .bias = view(bias_),
            .y = rows_of(y_, out),
            .scale = view(scale_),
            .residual = rows_of(residual_, out),
            .gates = view(gates_),
            .first_rows = view(first_rows_),
            .order = view(order_)};
  }

  /// A member as a problem of linear, whatever its rows.
  LinearProblem member_problem() const {
    LinearProblem one;
    one.num_members = 1;
    one.in_features = like().in_features;
    one.out_features = like().out_features;
    one.dtype = one.y_dtype.emplace(like().dtype);
    one.allow_tf32 = like().allow_tf32;
    one.epilogue = like().epilogue;
    return one;
  }

  Distribution parameters() const { return linear_parameter_distribution(options().fill); }

  ShuffledRows rows_;
  const Operand& x_;
  const Operand& weight_;
  const Operand* bias_ = nullptr;
  const Operand* scale_ = nullptr;
  const Operand* residual_ = nullptr;
  const Operand* gates_ = nullptr;
  const Operand* first_rows_ = nullptr;
  const Operand* order_ = nullptr;
  const Operand* y_ = nullptr;
};

std::vector<AxisInfo> routed_axes() {
  return {
      {"n", "members", int64_t{8}, {}, 1},
      {"batch", "rows of the member that has most", int64_t{16}, {}, 0},
      {"d", "in = out = d", int64_t{256}, {}, 0},
      {"in", "in_features; 0: d", int64_t{0}, {}, 0},
      {"out", "out_features; 0: d", int64_t{0}, {}, 0},
      {"spread", "percent of them by which a member's rows may be fewer", int64_t{75}, {}, 0},
      {"gather", "whether x lies by rows, not in routed order", "yes", {"yes", "no"}},
      {"scatter", "whether y and the residual lie by rows", "no", {"no", "yes"}},
      {"gates", "whether each row has a factor", "no", {"no", "yes"}},
      dtype_axis("of x, weight, bias and y"),
      activation_axis("after the bias"),
      {"bias", "whether there is one", "yes", {"yes", "no"}},
      {"scale", "what fp32 factors the sums get", "no", {"no", "member", "output"}},
      epilogue_residual_axis(),
      tf32_axis(),
  };
}

std::vector<StrategyInfo> routed_strategies() {
  using enum StrategyKind;
  return {
      // No vendor's: cuBLAS has the sizes of its products from the host, which does not know them.
      {"sequential", DeviceType::cuda, sequential, "simt's kernel, one launch per member"},
      {"simt",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel that finds its rows itself, fp32 multiply-adds, epilogue fused",
       // Every warp asks for the members' first rows; operands as ragged_linear's.
       {.streamed = 1.06, .rereads = 0.2, .bank_conflicts = 0.025}},
      {"tensor_core",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel that finds its rows itself on tensor cores, epilogue fused",
       {.streamed = 1.06, .rereads = 0.2, .bank_conflicts = 0.01}},
      {"sequential", DeviceType::cpu, sequential, "member after member, each over all threads"},
      {"wide", DeviceType::cpu, hand_written, "the blocks of all members over all threads at once"},
  };
}

std::vector<Sweep> routed_sweeps() {
  return {
      {"quick",
       {{"n", ints({8, 32})},
        {"batch", ints({64})},
        {"d", ints({256})},
        {"spread", ints({0, 75})}}},
      {"full",
       {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
        {"batch", ints({8, 32, 128})},
        {"d", ints({128, 256, 512, 768})},
        {"spread", ints({0, 50, 90})}}},
      {"ci",
       {{"n", ints({4, 16})}, {"batch", ints({16})}, {"d", ints({256})}, {"spread", ints({75})}}},
  };
}

}  // namespace

const PrimitiveSpec& routed_linear_spec() {
  static const PrimitiveSpec spec{
      .name = "routed_linear",
      .summary = "linear on the rows of one batch that are routed to each member, in one call",
      .axes = routed_axes(),
      .strategies = routed_strategies(),
      .sweeps = routed_sweeps(),
      .tolerance_formula = kLinearToleranceFormula,
      .impossible_reason = routed_impossible_reason,
      .tuning_key =
          [](const Case& point) {
            return tuning_key(routed_problem_of(point, row_counts(point, {})));
          },
      .make_workload = make_workload<RoutedLinearWorkload>};
  return spec;
}

}  // namespace wide::catalog
