// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of ragged_linear with known small integers, whose results are exact in every dtype. The
// expected values come from a formula over (member's name, row, feature), so a wrong index shows as
// a wrong number; a member keeps its name where members are permuted.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "verify/linear/placed_storage.hpp"

namespace wide::test {

class PlacedRagged {
 public:
  /// `names`: of the members; by default their numbers. Storages begin `misalign` elements behind
  /// an aligned address, with NaN in all gaps.
  PlacedRagged(TestDevice& bench, const RaggedLinearProblem& problem, int64_t misalign = 0,
               std::vector<int64_t> names = {}, bool is_in_place = false)
      : bench_(bench),
        problem_(lay_out_ragged_linear(problem)),
        names_(std::move(names)),
        is_in_place_(is_in_place) {
    if (names_.empty()) {
      names_.resize(problem_.members.size());
      std::iota(names_.begin(), names_.end(), int64_t{0});
    }
    const RaggedLinearExtents extents = ragged_linear_extents(problem_);
    const Dtype dtype = problem_.dtype;
    x_ = PlacedStorage(bench_, dtype, extents.x, misalign);
    weight_ = PlacedStorage(bench_, dtype, extents.weight, misalign);
    bias_ = PlacedStorage(bench_, dtype, extents.bias, misalign);
    scale_ = PlacedStorage(bench_, Dtype::fp32, extents.scale, misalign);
    residual_ = PlacedStorage(bench_, dtype, extents.residual, misalign);
    y_ = PlacedStorage(bench_, dtype, extents.y, misalign);
    for (size_t i = 0; i < problem_.members.size(); ++i) fill(i);
    for (PlacedStorage* one : {&x_, &weight_, &bias_, &scale_, &residual_, &y_})
      one->upload(bench_);
  }

  RaggedLinearArguments arguments() {
    const Epilogue& epilogue = problem_.epilogue;
    RaggedLinearArguments arguments;
    arguments.x = x_.view();
    arguments.weight = weight_.view();
    if (epilogue.has_bias) arguments.bias = bias_.view();
    if (epilogue.scale != OutputScale::none) arguments.scale = scale_.view();
    if (epilogue.residual != Residual::none)
      arguments.residual = (is_in_place_ ? y_ : residual_).view();
    arguments.y = y_.view();
    return arguments;
  }

  /// Every output, and that nothing else was written.
  void check() {
    std::vector<std::byte> expected = y_.contents();
    for (size_t i = 0; i < problem_.members.size(); ++i) {
      const RaggedLinearMember& member = problem_.members[i];
      for (int64_t b = 0; b < member.batch; ++b) {
        for (int64_t o = 0; o < member.out_features; ++o) {
          y_.put(expected, member.y.offset + b * member.y.row + o, expected_value(i, b, o));
        }
      }
    }
    y_.require(bench_, expected);
    x_.require_unchanged(bench_);
    weight_.require_unchanged(bench_);
  }

  const RaggedLinearProblem& problem() const { return problem_; }
  /// As y's storage lies, gaps included.
  std::vector<std::byte> outputs() { return y_.download(bench_); }
  /// Fills y with NaN again.
  void poison() { y_.upload(bench_); }

 private:
  static double x_value(int64_t name, int64_t b, int64_t k) {
    return static_cast<double>((b * 7 + name * 3 + k * 5) % 5) - 2;
  }
  static double weight_value(int64_t name, int64_t o, int64_t k) {
    return static_cast<double>((name * 11 + o * 3 + k * 7 + o * k) % 3) - 1;
  }
  static double bias_value(int64_t name, int64_t o) {
    return static_cast<double>((name + o * 2) % 4) - 1;
  }
  static double residual_value(int64_t name, int64_t b, int64_t o) {
    return static_cast<double>((name * 5 + b * 3 + o) % 7) - 3;
  }
  double scale_value(int64_t name, int64_t o) const {
    const bool is_per_output = problem_.epilogue.scale == OutputScale::per_output;
    return (name + (is_per_output ? o : 0)) % 2 == 0 ? 0.5 : 2;
  }

  double expected_value(size_t index, int64_t b, int64_t o) const {
    const Epilogue& epilogue = problem_.epilogue;
    const int64_t name = names_[index];
    double sum = 0;
    for (int64_t k = 0; k < problem_.members[index].in_features; ++k) {
      sum += x_value(name, b, k) * weight_value(name, o, k);
    }
    if (epilogue.scale != OutputScale::none) sum *= scale_value(name, o);
    sum *= static_cast<double>(epilogue.alpha);
    if (epilogue.has_bias) sum += bias_value(name, o);
    const double residual = epilogue.residual == Residual::none ? 0 : residual_value(name, b, o);
    if (epilogue.residual == Residual::before_activation) sum += residual;
    if (epilogue.activation == Activation::relu && sum < 0) sum = 0;
    if (epilogue.residual == Residual::after_activation) sum += residual;
    return sum;
  }

  void fill(size_t index) {
    const RaggedLinearMember& m = problem_.members[index];
    const Epilogue& epilogue = problem_.epilogue;
    const int64_t name = names_[index];
    for (int64_t b = 0; b < m.batch; ++b) {
      for (int64_t k = 0; k < m.in_features; ++k) {
        x_.put(m.x.offset + b * m.x.row + k, x_value(name, b, k));
      }
    }
    for (int64_t o = 0; o < m.out_features; ++o) {
      for (int64_t k = 0; k < m.in_features; ++k) {
        weight_.put(m.weight.offset + o * m.weight.row + k, weight_value(name, o, k));
      }
      if (epilogue.has_bias) bias_.put(m.bias_offset + o, bias_value(name, o));
      if (epilogue.scale == OutputScale::per_output) {
        scale_.put(m.bias_offset + o, scale_value(name, o));
      }
      for (int64_t b = 0; b < m.batch && epilogue.residual != Residual::none; ++b) {
        (is_in_place_ ? y_ : residual_)
            .put(m.y.offset + b * m.y.row + o, residual_value(name, b, o));
      }
    }
    if (epilogue.scale == OutputScale::per_member) {
      scale_.put(static_cast<int64_t>(index), scale_value(name, 0));
    }
  }

  TestDevice& bench_;
  RaggedLinearProblem problem_;
  std::vector<int64_t> names_;
  bool is_in_place_;
  PlacedStorage x_, weight_, bias_, scale_, residual_, y_;
};

/// Places, runs and checks.
inline void check_ragged(TestDevice& bench, const RaggedLinearProblem& problem,
                         const std::string& strategy, int64_t misalign = 0,
                         bool is_in_place = false) {
  const RaggedLinearPlan plan =
      make_ragged_linear_plan(bench.context(), problem, {.strategy = strategy});
  PlacedRagged placed(bench, problem, misalign, {}, is_in_place);
  plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
  placed.check();
}

inline RaggedLinearMember ragged_member(int64_t batch, int64_t in, int64_t out) {
  RaggedLinearMember member;
  member.batch = batch, member.in_features = in, member.out_features = out;
  return member;
}

/// Small odd shapes, among them one empty in each way.
inline RaggedLinearProblem small_ragged_problem(Dtype dtype = Dtype::fp32) {
  RaggedLinearProblem problem;
  problem.members = {ragged_member(5, 19, 7), ragged_member(0, 8, 9),  ragged_member(1, 40, 3),
                     ragged_member(17, 0, 6), ragged_member(3, 11, 0), ragged_member(20, 33, 65)};
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  return problem;
}

}  // namespace wide::test
