// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// binary for bench and verify: axes, sweeps, strategies, operands, cost.
#include <algorithm>

#include "host/plan_workload.hpp"
#include "host/pointwise/binary_reference.hpp"
#include "host/pointwise/binary_run.hpp"
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

class BinaryWorkload final : public PlanWorkload<describe_binary, make_binary_plan> {
 public:
  BinaryWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {
    const BinaryProblem& p = like();
    const Shape rows{p.rows, p.features};
    const bool has_integers = options.fill == Fill::integers;
    x_ = &add_operand(operands::binary_x, p.dtype, rows,
                      has_integers ? Distribution::integers(-8, 8) : Distribution::uniform(-4, 4));
    // Divisors whose quotients stay finite in fp16.
    const Distribution others =
        has_integers ? Distribution::integers(1, 4) : Distribution::uniform(0.5, 2);
    other_ = p.broadcast == Broadcast::none
                 ? &add_operand(operands::binary_x, p.dtype, rows, others)
                 : &add_operand(operands::binary_other, p.dtype,
                                {p.broadcast == Broadcast::rows ? p.features : 1}, others,
                                p.broadcast == Broadcast::members);
    y_ = &add_operand(operands::binary_x, p.dtype, rows, Distribution::none());
  }

  /// One operation per element, whatever the function: bytes determine the time.
  Cost cost() const override { return {elements_of(*x_), bytes_of({x_, other_}), bytes_of({y_})}; }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const BinaryProblem& p = like();
    binary_reference(p, row_of(x_, member, row, p.features),
                     p.broadcast == Broadcast::none ? row_of(other_, member, row, p.features)
                                                    : values_of(other_, member),
                     values, tolerances);
    const bool is_exact = options().fill == Fill::integers &&
                          p.function != BinaryFunction::divide &&
                          (p.activation == Activation::none || p.activation == Activation::relu);
    if (is_exact) std::fill(tolerances.begin(), tolerances.end(), 0.0);
  }
  double reference_row_flops() const override { return 200 * static_cast<double>(like().features); }

 private:
  BinaryArguments arguments(const OperandViews& view) const override {
    ConstTensorView other = view(other_);
    if (like().broadcast == Broadcast::features) {  // [N, 1] as [N]
      other = ConstTensorView(other.data, other.dtype, {other.shape[0]}, Strides{other.strides[0]},
                              other.device);
    }
    return {view(x_), other, view(y_)};
  }

  const Operand *x_ = nullptr, *other_ = nullptr, *y_ = nullptr;
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "binary";
  spec.summary = "y = activation(function(x, other)), element by element of every member";
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "rows of x per member: B, or B*T", int64_t{1024}, {}, 0},
      {"d", "features", int64_t{256}, {}, 0},
      {"function", "of x and other", "add", words_of(kAllBinaryFunctions, binary_function_name)},
      {"broadcast",
       "axes of x along which other stays the same: it is x's like, [N, D], [N] or [1]", "none",
       words_of(kAllBroadcasts, broadcast_name)},
      activation_axis("of the result"),
      dtype_axis("of x, other and y")};
  // Rows of the second operand are read again for every four rows of x.
  spec.strategies =
      wide_strategies("one launch over all elements of all members, 16 bytes a load and store",
                      {.streamed = 1.03, .rereads = 0.13, .is_memory_bound = true});
  const std::vector<AxisValue> functions{"add", "multiply"};
  spec.sweeps = {{"quick",
                  {{"n", ints({8, 32})},
                   {"batch", ints({1024})},
                   {"d", ints({256})},
                   {"function", functions}}},
                 {"full",
                  {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
                   {"batch", ints({1024, 4096})},
                   {"d", ints({128, 256, 512, 768})},
                   {"function", word_values(kAllBinaryFunctions, binary_function_name)},
                   {"broadcast", word_values(kAllBroadcasts, broadcast_name)}}},
                 {"ci", {{"n", ints({4, 16})}, {"batch", ints({128})}, {"d", ints({256})}}}};
  spec.trusted_zeros = 0.65;  // half of relu's are
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
