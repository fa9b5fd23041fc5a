// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// binary for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/pointwise/binary_reference.hpp"
#include "host/spec.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
BinaryProblem problem_of(const Case& point) {
  BinaryProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch");
  p.features = point.integer("d");
  p.function = *parse_binary_function(point.word("function"));
  p.broadcast = *parse_broadcast(point.word("broadcast"));
  p.activation = *parse_activation(point.word("activation"));
  p.dtype = point.dtype();
  return p;
}

class BinaryWorkload final : public PackedWorkload {
 public:
  BinaryWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options), shape_(problem_of(point)) {
    const Shape rows{shape_.rows, shape_.features};
    const bool has_integers = options.fill == Fill::integers;
    x_ = &add_operand(operands::binary_x, shape_.dtype, rows,
                      has_integers ? Distribution::integers(-8, 8) : Distribution::uniform(-4, 4));
    // Divisors whose quotients stay finite in fp16.
    other_ = &add_other(
        rows, has_integers ? Distribution::integers(1, 4) : Distribution::uniform(0.5, 2));
    y_ = &add_operand(operands::binary_x, shape_.dtype, rows, Distribution::none());
    arguments_ = {x_->packed(), packed_other(), y_->packed()};
    problem_ = describe_binary(arguments_, shape_);
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against(
        [&] { return make_binary_plan(context(), problem_, {.strategy = std::string(strategy)}); });
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(make_binary_plan(context(), problem_, options), arguments_);
  }

  /// A baseline member is our own kernel with N = 1.
  PreparedMembers prepare_members() override {
    BinaryProblem one = shape_;
    one.num_members = 1;
    const BinaryPlan plan = make_binary_plan(context(), one, {.strategy = "sequential"});
    std::vector<BinaryArguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      const bool has_rows = shape_.broadcast == Broadcast::rows;
      const ConstTensorView other = has_rows ? own_parameters(other_, n) : other_->member(n);
      arguments.push_back({x_->member(n), other, y_->member(n)});
    }
    return prepared_members(plan, std::move(arguments));
  }

  /// One operation per element, whatever the function: bytes determine the time.
  Cost cost() const override {
    const double elements = static_cast<double>(problem_.num_members) *
                            static_cast<double>(problem_.rows) *
                            static_cast<double>(problem_.features);
    return {elements, static_cast<double>(x_->bytes() + other_->bytes()),
            static_cast<double>(y_->bytes())};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(problem_.features);
    const auto first = static_cast<size_t>(row) * d;
    const bool has_elements = problem_.broadcast == Broadcast::none;
    const auto others = other_->values(member);
    binary_reference(problem_, x_->values(member).subspan(first, d),
                     has_elements ? others.subspan(first, d) : others, values, tolerances);
    const bool is_exact =
        options().fill == Fill::integers && problem_.function != BinaryFunction::divide &&
        (problem_.activation == Activation::none || problem_.activation == Activation::relu);
    if (is_exact) std::fill(tolerances.begin(), tolerances.end(), 0.0);
  }
  double reference_row_flops() const override {
    return 200 * static_cast<double>(problem_.features);
  }

 private:
  Operand& add_other(const Shape& rows, const Distribution& distribution) {
    if (shape_.broadcast == Broadcast::none) {
      return add_operand(operands::binary_x, shape_.dtype, rows, distribution);
    }
    const int64_t count = shape_.broadcast == Broadcast::rows ? shape_.features : 1;
    return add_operand(operands::binary_other, shape_.dtype, {count}, distribution,
                       shape_.broadcast == Broadcast::members);
  }

  /// Stored as [N, 1] where there is one per member.
  ConstTensorView packed_other() const {
    ConstTensorView other = other_->packed();
    if (shape_.broadcast != Broadcast::features) return other;
    return ConstTensorView(other.data, other.dtype, {num_members()}, Strides{other.strides[0]},
                           other.device);
  }

  BinaryProblem shape_;
  Operand* x_ = nullptr;
  Operand* other_ = nullptr;
  Operand* y_ = nullptr;
  BinaryArguments arguments_;
  BinaryProblem problem_;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "binary";
  spec.summary = "y = activation(function(x, other)), element by element of every member";
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "rows of x per member: B, or B*T", int64_t{1024}, {}, 0},
      {"d", "features", int64_t{256}, {}, 0},
      {"function", "of x and other", "add", {"add", "subtract", "multiply", "divide"}, 0},
      {"broadcast",
       "axes of x along which other stays the same: it is x's like, [N, D], [N] or [1]",
       "none",
       {"none", "rows", "features", "members"},
       0},
      {"activation", "of the result", "none", {"none", "relu", "gelu", "gelu_tanh", "silu"}, 0},
      dtype_axis("of x, other and y")};
  // Rows of the second operand are read again for every four rows of x.
  spec.strategies =
      wide_strategies("one launch over all elements of all members, 16 bytes a load and store",
                      {.streamed = 1.03, .rereads = 0.13, .is_memory_bound = true});
  const std::vector<AxisValue> functions{"add", "multiply"};
  std::vector<AxisValue> all, broadcasts;
  for (const BinaryFunction each : kAllBinaryFunctions) {
    all.emplace_back(std::string(binary_function_name(each)));
  }
  for (const Broadcast each : kAllBroadcasts) {
    broadcasts.emplace_back(std::string(broadcast_name(each)));
  }
  spec.sweeps = {{"quick",
                  {{"n", ints({8, 32})},
                   {"batch", ints({1024})},
                   {"d", ints({256})},
                   {"function", functions}}},
                 {"full",
                  {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
                   {"batch", ints({1024, 4096})},
                   {"d", ints({128, 256, 512, 768})},
                   {"function", all},
                   {"broadcast", broadcasts}}},
                 {"ci", {{"n", ints({4, 16})}, {"batch", ints({128})}, {"d", ints({256})}}}};
  spec.tolerance_formula =
      "z = function(x, other): fp32 u |z| + min_subnormal, others (u_out + 2 2^-24) |z| + "
      "min_subnormal, integers 0; with an activation pointwise's at z, and what it changes where z "
      "is off by 2 2^-24 |z|";
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<BinaryWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& binary_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
