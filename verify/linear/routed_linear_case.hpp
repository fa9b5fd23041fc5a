// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routings, and operands of routed_linear with known small integers, whose results are exact in
// every dtype. The expected values come from a formula over (member, row, feature), so a wrong
// index shows as a wrong number.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "verify/linear/placed_storage.hpp"
#include "verify/support/dice.hpp"

namespace wide::test {

struct Routing {
  std::vector<int64_t> first_rows, order;
  int64_t num_rows() const { return static_cast<int64_t>(order.size()); }
};

/// By plain loops over the members; rows whose id is no member's are of none.
inline Routing routing_of(const std::vector<int64_t>& ids, int64_t num_members) {
  Routing routing;
  for (int64_t member = 0; member <= num_members; ++member) {
    routing.first_rows.push_back(routing.num_rows());
    for (size_t row = 0; row < ids.size(); ++row) {
      const bool is_of_none = ids[row] < 0 || ids[row] >= num_members;
      if ((is_of_none ? num_members : ids[row]) == member) {
        routing.order.push_back(static_cast<int64_t>(row));
      }
    }
  }
  return routing;
}

/// So many rows of each member, and of none, shuffled.
inline Routing routing_of_counts(const std::vector<int64_t>& counts, int64_t of_none = 0,
                                 uint64_t seed = 3) {
  std::vector<int64_t> ids(static_cast<size_t>(of_none), -1);
  for (size_t i = 0; i < counts.size(); ++i) {
    ids.insert(ids.end(), static_cast<size_t>(counts[i]), static_cast<int64_t>(i));
  }
  Dice dice(seed);
  for (size_t left = ids.size(); left > 1; --left) {
    const auto other = static_cast<size_t>(dice.between(0, static_cast<int64_t>(left) - 1));
    std::swap(ids[left - 1], ids[other]);
  }
  return routing_of(ids, static_cast<int64_t>(counts.size()));
}

/// Of the same sizes, and of no ids: rows and members that there are not, rows named twice, first
/// rows out of order. Where several members claim a place in routed order, no row is there: two
/// blocks would write it, a race that a simulated GPU reports.
inline std::vector<Routing> wrong_routings(const Routing& right) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t rows = right.num_rows();
  std::vector<Routing> wrong;
  for (const int64_t number : {int64_t{-1}, rows, kLeast, kMost}) {
    wrong.push_back(right);
    for (size_t i = 0; i < right.order.size(); i += 2) wrong.back().order[i] = number;
  }
  for (const int64_t number : {kLeast, int64_t{-1}, rows, rows + 1, kMost}) {
    wrong.push_back(right);
    for (int64_t& first : wrong.back().first_rows) first = number;
    for (const size_t step : {size_t{2}, size_t{3}}) {
      wrong.push_back(right);
      wrong.back().order.assign(right.order.size(), -1);
      for (size_t i = 0; i < right.first_rows.size(); i += step) {
        wrong.back().first_rows[i] = number;
      }
    }
  }
  wrong.push_back(right);
  wrong.back().order.assign(right.order.size(), -1);
  for (int64_t& first : wrong.back().first_rows) first = rows - first;
  return wrong;
}

class PlacedRouted {
 public:
  /// Operands begin `misalign` elements behind an aligned address, with NaN in all gaps.
  PlacedRouted(TestDevice& bench, const RoutedLinearProblem& problem, const Routing& routing,
               int64_t misalign = 0, bool is_in_place = false)
      : bench_(bench), problem_(problem), is_in_place_(is_in_place) {
    const RoutedLinearProblem& p = problem_;
    const bool has_residual = p.epilogue.residual != Residual::none;
    const bool is_per_output = p.epilogue.scale == OutputScale::per_output;
    y_ = storage(p.dtype, p.num_rows * y_row(), misalign);
    residual_ = storage(p.dtype, p.num_rows * residual_row(), misalign);
    x_ = place(p.dtype, misalign, {1, p.num_rows / p.choices, p.in_features}, {0, x_row()},
               [](int64_t, int64_t row, int64_t k) { return x_value(row, k); });
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
    first_rows_ = storage(Dtype::int32, p.num_members + 1, misalign);
    order_ = storage(Dtype::int32, p.num_rows, misalign);
    route(routing);
  }

  /// Another routing in the same memory; y is as at first.
  void route(const Routing& routing) {
    routing_ = routing;
    const auto fill = [&](PlacedStorage& storage, const std::vector<int64_t>& numbers) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        storage.put(static_cast<int64_t>(i), static_cast<double>(numbers[i]));
      }
      storage.upload(bench_);
    };
    fill(first_rows_, routing.first_rows);
    fill(order_, routing.order);
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
        .first_rows = first_rows_.view({p.num_members + 1}),
        .order = order_.view({p.num_rows})};
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
    for (int64_t member = 0; member <= problem_.num_members; ++member) {
      const bool is_last = member == problem_.num_members;
      const auto at = static_cast<size_t>(member);
      const int64_t end = is_last ? problem_.num_rows : routing_.first_rows[at + 1];
      for (int64_t j = routing_.first_rows[at]; j < end; ++j) {
        const int64_t row = routing_.order[static_cast<size_t>(j)];
        const int64_t to = problem_.scatters ? row : j;
        for (int64_t o = 0; o < problem_.out_features; ++o) {
          y_.put(expected, to * y_row() + o, is_last ? 0 : expected_value(member, row, j, o));
        }
      }
    }
    y_.require(bench_, expected);
    check_inputs();
  }

  /// Whatever else y has.
  void check_gaps() const {
    std::vector<std::byte> gaps = y_.download(bench_);
    for (int64_t row = 0; row < problem_.num_rows; ++row) {
      for (int64_t o = 0; o < problem_.out_features; ++o) {
        y_.restore(gaps, row * y_row() + o);
      }
    }
    CHECK(gaps == y_.contents());
  }

  void check_inputs() const {
    for (const PlacedStorage* one :
         {&x_, &weight_, &bias_, &scale_, &residual_, &gates_, &first_rows_, &order_}) {
      one->require_unchanged(bench_);
    }
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

  static double x_value(int64_t row, int64_t k) {
    return static_cast<double>((row * 7 + row / 5 + k * 3) % 5) - 2;
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
  static double gate_value(int64_t row) { return row % 3 == 0 ? 0.5 : row % 3 == 1 ? -2 : 1; }

  /// Of row `row`, the j-th in routed order.
  double expected_value(int64_t member, int64_t row, int64_t j, int64_t o) const {
    const Epilogue& epilogue = problem_.epilogue;
    const int64_t from = problem_.gathers ? row / problem_.choices : j;
    const int64_t to = problem_.scatters ? row : j;
    double sum = 0;
    for (int64_t k = 0; k < problem_.in_features; ++k) {
      sum += x_value(from, k) * weight_value(member, o, k);
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
  Routing routing_;
  PlacedStorage x_, weight_, bias_, scale_, residual_, gates_, first_rows_, order_, y_;
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
