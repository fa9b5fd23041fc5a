// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of routed_linear with known small integers, whose results are exact in every dtype. The
// expected values come from a formula over (member, row, feature), so a wrong index shows as a
// wrong number.
#pragma once

#include <string>
#include <vector>

#include "verify/linear/routing_case.hpp"

namespace wide::test {

class PlacedRouted {
 public:
  /// Operands begin `misalign` elements behind an aligned address, with NaN in all gaps.
  PlacedRouted(TestDevice& bench, const RoutedLinearProblem& problem, const Routing& routing,
               int64_t misalign = 0, bool is_in_place = false)
      : bench_(bench),
        problem_(problem),
        is_in_place_(is_in_place),
        routing_(bench, routing, misalign) {
    const RoutedLinearProblem& p = problem_;
    const bool has_residual = p.epilogue.residual != Residual::none;
    const bool is_per_output = p.epilogue.scale == OutputScale::per_output;
    y_ = storage(p.dtype, p.num_rows * y_row(), misalign);
    residual_ = storage(p.dtype, p.num_rows * residual_row(), misalign);
    x_ = place(p.dtype, misalign, {1, p.num_rows / p.choices, p.in_features}, {0, x_row()},
               [](int64_t, int64_t row, int64_t k) { return routed_x_value(row, k); });
    weight_ = is_quantized()
                  ? place_blobs()
                  : place(p.dtype, misalign, {p.num_members, p.out_features, p.in_features},
                          {p.out_features * weight_row(), weight_row()}, weight_value);
    bias_ = place(p.dtype, misalign, {p.num_members, 1, p.out_features}, {p.out_features, 0},
                  [](int64_t member, int64_t, int64_t o) { return bias_value(member, o); });
    const int64_t factors = is_per_output ? p.out_features : 1;
    scale_ = place(Dtype::fp32, misalign, {p.num_members, 1, factors}, {factors, 0},
                   [](int64_t member, int64_t, int64_t o) { return scale_value(member, o); });
    gates_ = place(Dtype::fp32, misalign, {1, 1, p.num_rows}, {0, 0},
                   [](int64_t, int64_t, int64_t row) { return gate_value(row); });
    for (int64_t row = 0; row < p.num_rows && has_residual; ++row) {
      for (int64_t o = 0; o < p.out_features; ++o) {
        if (is_in_place_) y_.put(row * y_row() + o, residual_value(row, o));
        if (!is_in_place_) residual_.put(row * residual_row() + o, residual_value(row, o));
      }
    }
    residual_.upload(bench_);
    y_.upload(bench_);
  }

  /// Another routing in the same memory; y is as at first.
  void route(const Routing& routing) {
    routing_.route(routing);
    y_.upload(bench_);
  }

  RoutedLinearArguments arguments() {
    const RoutedLinearProblem& p = problem_;
    const Epilogue& epilogue = p.epilogue;
    const Shape outputs{p.num_rows, p.out_features};
    const int64_t factors = epilogue.scale == OutputScale::per_output ? p.out_features : 1;
    RoutedLinearArguments arguments{
        .x = x_.view({p.num_rows / p.choices, p.in_features}, {x_row(), 1}),
        .weight = is_quantized()
                      ? weight_.view({p.num_members, linear_member_bytes(p)}, {blob_stride(), 1})
                      : weight_.view({p.num_members, p.out_features, p.in_features},
                                     {p.out_features * weight_row(), weight_row(), 1}),
        .y = y_.view(outputs, {y_row(), 1}),
        .first_rows = routing_.first_rows(),
        .order = routing_.order()};
    if (epilogue.has_bias) arguments.bias = bias_.view({p.num_members, p.out_features});
    if (epilogue.scale != OutputScale::none)
      arguments.scale = scale_.view({p.num_members, factors});
    if (epilogue.residual != Residual::none) {
      arguments.residual =
          is_in_place_ ? arguments.y : residual_.view(outputs, {residual_row(), 1});
    }
    if (p.has_gates) arguments.gates = gates_.view({p.num_rows});
    return arguments;
  }

  /// Every output, and that nothing else was written.
  void check() {
    std::vector<std::byte> expected = y_.contents();
    routing_.for_each_row([&](int64_t member, int64_t row, int64_t j) {
      const int64_t to = problem_.scatters ? row : j;
      const bool is_of_none = member == PlacedRouting::kOfNone;
      for (int64_t o = 0; o < problem_.out_features; ++o) {
        y_.put(expected, to * y_row() + o, is_of_none ? 0 : expected_value(member, row, j, o));
      }
    });
    y_.require(bench_, expected);
    check_inputs();
  }

  /// Whatever else y has.
  void check_gaps() const {
    test::check_gaps(bench_, y_, problem_.num_rows, problem_.out_features, y_row());
  }

  void check_inputs() const {
    for (const PlacedStorage* one : {&x_, &weight_, &bias_, &scale_, &residual_, &gates_}) {
      one->require_unchanged(bench_);
    }
    routing_.require_unchanged();
  }

  /// As y lies, gaps included.
  std::vector<std::byte> outputs() const { return y_.download(bench_); }
  int64_t y_row() const { return stride(problem_.y_row_stride, problem_.out_features); }

 private:
  static int64_t stride(int64_t given, int64_t packed) { return given == 0 ? packed : given; }
  int64_t x_row() const { return stride(problem_.x_row_stride, problem_.in_features); }
  int64_t weight_row() const { return stride(problem_.weight.row, problem_.in_features); }
  int64_t residual_row() const {
    return stride(problem_.residual_row_stride, problem_.out_features);
  }

  /// Of two sizes, so that groups of quantised weights have two scales.
  static double weight_value(int64_t member, int64_t o, int64_t k) {
    const double size = (o / 5 + k / 64) % 2 == 0 ? 1 : 2;
    return size * (static_cast<double>((member * 11 + o * 3 + k * 7 + o * k) % 3) - 1);
  }
  static double bias_value(int64_t member, int64_t o) {
    return static_cast<double>((member + o * 2) % 4) - 1;
  }
  static double residual_value(int64_t to, int64_t o) {
    return static_cast<double>((to * 3 + o) % 7) - 3;
  }
  static double scale_value(int64_t member, int64_t o) { return (member + o) % 2 == 0 ? 0.5 : 2; }
  /// Of row `row`, the j-th in routed order.
  double expected_value(int64_t member, int64_t row, int64_t j, int64_t o) const {
    const Epilogue& epilogue = problem_.epilogue;
    const int64_t from = problem_.gathers ? row / problem_.choices : j;
    const int64_t to = problem_.scatters ? row : j;
    double sum = 0;
    for (int64_t k = 0; k < problem_.in_features; ++k) {
      sum += routed_x_value(from, k) * weight_value(member, o, k);
    }
    const bool is_per_output = epilogue.scale == OutputScale::per_output;
    if (epilogue.scale != OutputScale::none) sum *= scale_value(member, is_per_output ? o : 0);
    sum *= static_cast<double>(epilogue.alpha);
    if (epilogue.has_bias) sum += bias_value(member, o);
    const double residual = epilogue.residual == Residual::none ? 0 : residual_value(to, o);
    if (epilogue.residual == Residual::before_activation) sum += residual;
    if (epilogue.activation == Activation::relu && sum < 0) sum = 0;
    if (epilogue.residual == Residual::after_activation) sum += residual;
    return problem_.has_gates ? sum * gate_value(row) : sum;
  }

  bool is_quantized() const { return problem_.weight_format != WeightFormat::packed; }
  int64_t blob_stride() const {
    return stride(problem_.weight.member, linear_member_bytes(problem_));
  }
  /// The same weights, of which a power of two is the scale.
  PlacedStorage place_blobs() const {
    const RoutedLinearProblem& p = problem_;
    const int64_t bytes = linear_member_bytes(p), in = p.in_features;
    const Context cpu = Context::cpu({.num_threads = 1, .allocator = {}});
    PlacedStorage blobs = storage(Dtype::uint8, p.num_members * blob_stride(), 0);
    std::vector<float> dense(static_cast<size_t>(p.out_features * in));
    std::vector<uint8_t> blob(static_cast<size_t>(bytes));
    const ConstTensorView member(dense.data(), Dtype::fp32, {p.out_features, in}, Device{});
    for (int64_t n = 0; n < p.num_members; ++n) {
      for (int64_t at = 0; at < p.out_features * in; ++at) {
        dense[static_cast<size_t>(at)] = static_cast<float>(weight_value(n, at / in, at % in));
      }
      quantize_weights(cpu, linear_quantized_weight(p), std::span(&member, 1),
                       TensorView(blob.data(), Dtype::uint8, {1, bytes}, Device{}), Stream::cpu());
      for (int64_t i = 0; i < bytes; ++i) {
        blobs.put(n * blob_stride() + i, static_cast<double>(blob[static_cast<size_t>(i)]));
      }
    }
    blobs.upload(bench_);
    return blobs;
  }

  PlacedStorage storage(Dtype dtype, int64_t elements, int64_t misalign) const {
    return PlacedStorage(bench_, dtype, elements, misalign);
  }

  /// Values by (outer, row, feature), `strides` of the first two.
  template <class Value>
  PlacedStorage place(Dtype dtype, int64_t misalign, const Shape& shape, const Strides& strides,
                      const Value& value) const {
    const int64_t span = std::max(strides[0], strides[1] * shape[1]);
    PlacedStorage made = storage(dtype, shape[0] * std::max(span, shape[2]), misalign);
    for (int64_t a = 0; a < shape[0]; ++a) {
      for (int64_t b = 0; b < shape[1]; ++b) {
        for (int64_t c = 0; c < shape[2]; ++c) {
          made.put(a * strides[0] + b * strides[1] + c, value(a, b, c));
        }
      }
    }
    made.upload(bench_);
    return made;
  }

  TestDevice& bench_;
  RoutedLinearProblem problem_;
  bool is_in_place_;
  PlacedRouting routing_;
  PlacedStorage x_, weight_, bias_, scale_, residual_, gates_, y_;
};

/// Places, runs and checks.
inline void check_routed(TestDevice& bench, const RoutedLinearProblem& problem,
                         const Routing& routing, const std::string& strategy, int64_t misalign = 0,
                         bool is_in_place = false) {
  const RoutedLinearPlan plan =
      make_routed_linear_plan(bench.context(), problem, {.strategy = strategy});
  PlacedRouted placed(bench, problem, routing, misalign, is_in_place);
  plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
  placed.check();
}

/// A problem that a routing of these members fits.
inline RoutedLinearProblem routed_problem(const Routing& routing, int64_t in, int64_t out,
                                          Dtype dtype = Dtype::fp32) {
  RoutedLinearProblem problem;
  problem.num_members = static_cast<int64_t>(routing.first_rows.size()) - 1;
  problem.num_rows = routing.num_rows();
  problem.in_features = in, problem.out_features = out;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  return problem;
}

}  // namespace wide::test
