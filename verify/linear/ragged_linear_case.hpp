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

#include "verify/linear/placed_linear.hpp"

namespace wide::test {

class PlacedRagged {
 public:
  /// `names`: of the members; by default their numbers. Storages begin `misalign` elements behind
  /// an aligned address, with NaN in all gaps.
  PlacedRagged(TestDevice& bench, const RaggedLinearProblem& problem, int64_t misalign = 0,
               std::vector<int64_t> names = {}, bool is_in_place = false)
      : bench_(bench),
        problem_(lay_out_ragged_linear(problem)),
        misalign_(misalign),
        names_(std::move(names)),
        is_in_place_(is_in_place) {
    if (names_.empty()) {
      names_.resize(problem_.members.size());
      std::iota(names_.begin(), names_.end(), int64_t{0});
    }
    const RaggedLinearExtents extents = ragged_linear_extents(problem_);
    const Dtype dtype = problem_.dtype;
    x_ = storage(dtype, extents.x);
    weight_ = storage(dtype, extents.weight);
    bias_ = storage(dtype, extents.bias);
    scale_ = storage(Dtype::fp32, extents.scale);
    residual_ = storage(dtype, extents.residual);
    y_ = storage(dtype, extents.y);
    for (size_t i = 0; i < problem_.members.size(); ++i) fill(i);
    for (Storage* one : {&x_, &weight_, &bias_, &scale_, &residual_, &y_}) upload(*one);
  }

  RaggedLinearArguments arguments() {
    const Epilogue& epilogue = problem_.epilogue;
    RaggedLinearArguments arguments;
    arguments.x = view(x_);
    arguments.weight = view(weight_);
    if (epilogue.has_bias) arguments.bias = view(bias_);
    if (epilogue.scale != OutputScale::none) arguments.scale = view(scale_);
    if (epilogue.residual != Residual::none)
      arguments.residual = view(is_in_place_ ? y_ : residual_);
    arguments.y = view(y_);
    return arguments;
  }

  /// Every output, and that nothing else was written.
  void check() {
    std::vector<std::byte> expected = y_.contents;
    for (size_t i = 0; i < problem_.members.size(); ++i) {
      const RaggedLinearMember& member = problem_.members[i];
      for (int64_t b = 0; b < member.batch; ++b) {
        for (int64_t o = 0; o < member.out_features; ++o) {
          const int64_t at = misalign_ + member.y.offset + b * member.y.row + o;
          store_element(expected.data(), y_.dtype, at, expected_value(i, b, o));
        }
      }
    }
    const std::vector<std::byte> got = outputs();
    const int64_t size = dtype_bytes(y_.dtype);
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()) / size; ++i) {
      const auto at = static_cast<size_t>(i * size), bytes = static_cast<size_t>(size);
      if (std::memcmp(got.data() + at, expected.data() + at, bytes) == 0) continue;
      INFO("element " << i - misalign_ << " of y: got " << load_element(got.data(), y_.dtype, i)
                      << ", expected " << load_element(expected.data(), y_.dtype, i));
      REQUIRE(false);
    }
    REQUIRE(download(x_) == x_.contents);
    REQUIRE(download(weight_) == weight_.contents);
  }

  const RaggedLinearProblem& problem() const { return problem_; }
  /// As y's storage lies, gaps included.
  std::vector<std::byte> outputs() { return download(y_); }
  /// Fills y with NaN again.
  void poison() { upload(y_); }

 private:
  struct Storage {
    Dtype dtype = Dtype::fp32;
    int64_t elements = 0;
    std::vector<std::byte> contents;
    Tensor buffer;
  };

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

  Storage storage(Dtype dtype, int64_t elements) const {
    Storage made{dtype, elements, {}, {}};
    const int64_t all = misalign_ + elements + 32;
    made.contents.assign(static_cast<size_t>(all * dtype_bytes(dtype)), std::byte{0xff});
    made.buffer = Tensor(bench_.context(), dtype, {all});
    return made;
  }

  void put(Storage& storage, int64_t element, double value) const {
    store_element(storage.contents.data(), storage.dtype, misalign_ + element, value);
  }

  void fill(size_t index) {
    const RaggedLinearMember& m = problem_.members[index];
    const Epilogue& epilogue = problem_.epilogue;
    const int64_t name = names_[index];
    for (int64_t b = 0; b < m.batch; ++b) {
      for (int64_t k = 0; k < m.in_features; ++k) {
        put(x_, m.x.offset + b * m.x.row + k, x_value(name, b, k));
      }
    }
    for (int64_t o = 0; o < m.out_features; ++o) {
      for (int64_t k = 0; k < m.in_features; ++k) {
        put(weight_, m.weight.offset + o * m.weight.row + k, weight_value(name, o, k));
      }
      if (epilogue.has_bias) put(bias_, m.bias_offset + o, bias_value(name, o));
      if (epilogue.scale == OutputScale::per_output) {
        put(scale_, m.bias_offset + o, scale_value(name, o));
      }
      for (int64_t b = 0; b < m.batch && epilogue.residual != Residual::none; ++b) {
        put(is_in_place_ ? y_ : residual_, m.y.offset + b * m.y.row + o,
            residual_value(name, b, o));
      }
    }
    if (epilogue.scale == OutputScale::per_member) {
      put(scale_, static_cast<int64_t>(index), scale_value(name, 0));
    }
  }

  TensorView view(Storage& storage) {
    void* first =
        static_cast<std::byte*>(storage.buffer.data()) + misalign_ * dtype_bytes(storage.dtype);
    return TensorView(first, storage.dtype, {storage.elements}, bench_.context().device());
  }

  void upload(Storage& storage) {
    copy(ConstTensorView(storage.contents.data(), storage.dtype, storage.buffer.shape(), Device{}),
         storage.buffer, bench_.stream());
    bench_.context().synchronize(bench_.stream());
  }

  std::vector<std::byte> download(const Storage& storage) {
    std::vector<std::byte> bytes(static_cast<size_t>(storage.buffer.bytes()));
    copy(storage.buffer, TensorView(bytes.data(), storage.dtype, storage.buffer.shape(), Device{}),
         bench_.stream());
    bench_.context().synchronize(bench_.stream());
    return bytes;
  }

  TestDevice& bench_;
  RaggedLinearProblem problem_;
  int64_t misalign_;
  std::vector<int64_t> names_;
  bool is_in_place_;
  Storage x_, weight_, bias_, scale_, residual_, y_;
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
