// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of linear share: a workload of the catalogue run and judged, and operands with
// known small integers at any strides, whose results are exact in every dtype. The expected values
// come from a formula over (member, row, feature), so a wrong index shows as a wrong number.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "host/compare.hpp"
#include "wide/catalog.hpp"
#include "wide/convert.hpp"
#include "wide/wide.hpp"

namespace wide::catalog {
const PrimitiveSpec& linear_spec();
}  // namespace wide::catalog

namespace wide::test {

using Values = std::vector<std::pair<std::string, catalog::AxisValue>>;

/// A device and what an execution on it needs.
class TestDevice {
 public:
  explicit TestDevice(const Context& context)
      : context_(context), stream_(context), handles_(context) {}

  const Context& context() const { return context_; }
  Stream stream() const { return stream_.get(); }
  const VendorHandles& handles() const { return handles_; }
  Execution execution(int64_t workspace_bytes) {
    if (workspace_bytes > workspace_.bytes()) {
      workspace_ = Tensor(context_, Dtype::fp8_e4m3, {workspace_bytes});
    }
    return {stream_.get(), {workspace_.data(), workspace_.bytes()}, &handles_};
  }

 private:
  Context context_;
  OwnedStream stream_;
  VendorHandles handles_;
  Tensor workspace_;
};

/// Runs the case of the catalogue and compares every output with the reference.
inline catalog::MemberOutputs check_case(TestDevice& bench, const std::string& strategy,
                                         const Values& values,
                                         const catalog::WorkloadOptions& options = {}) {
  const catalog::PrimitiveSpec& spec = catalog::linear_spec();
  const catalog::Case point = catalog::make_case(spec, values);
  INFO("linear " << point.to_string() << " strategy " << strategy);
  const auto workload = spec.make_workload(bench.context(), point, options);
  REQUIRE(workload->unsupported_reason(strategy) == "");
  const catalog::Prepared prepared = workload->prepare(strategy);
  workload->poison_outputs(catalog::OutputOf::strategy, bench.stream());
  prepared.run(bench.execution(prepared.workspace_bytes));
  const auto outputs = workload->read_outputs(catalog::OutputOf::strategy, bench.stream());
  const catalog::ReferenceSample reference(*workload, 1e15);
  REQUIRE(reference.elements() == reference.elements_in_all());
  const catalog::Verdict verdict = catalog::compare(reference, outputs);
  INFO(verdict.message);
  REQUIRE(verdict.passed);
  REQUIRE(workload->damage(bench.stream()) == "");
  return outputs;
}

/// Operands of a problem at its strides, `misalign` elements behind an aligned address, with NaN
/// in all gaps.
class PlacedLinear {
 public:
  PlacedLinear(TestDevice& bench, const LinearProblem& problem, int64_t misalign = 0)
      : bench_(bench), problem_(problem), misalign_(misalign) {
    const LinearProblem& p = problem_;
    x_ = place({p.batch, p.num_members, p.in_features}, {p.x.row, p.x.member, 1},
               [&](int64_t b, int64_t n, int64_t i) { return x_value(b, n, i); });
    weight_ = place({p.num_members, p.out_features, p.in_features},
                    {p.weight.member, p.weight.row, 1}, weight_value);
    bias_ = place({1, p.num_members, p.out_features}, {0, p.bias_member_stride, 1},
                  [](int64_t, int64_t n, int64_t o) { return bias_value(n, o); });
    y_ = place({p.batch, p.num_members, p.out_features}, {p.y.row, p.y.member, 1}, nullptr);
  }

  /// x and y member-explicit.
  LinearArguments arguments() const {
    const LinearProblem& p = problem_;
    LinearArguments arguments;
    arguments.x = x_.view;
    if (p.shared_input) {
      arguments.x = ConstTensorView(x_.view.data, p.dtype, {p.batch, p.in_features},
                                    Strides{p.x.row, 1}, x_.view.device);
    }
    arguments.weight = weight_.view;
    if (p.epilogue.has_bias) {
      arguments.bias = ConstTensorView(bias_.view.data, p.dtype, {p.num_members, p.out_features},
                                       Strides{p.bias_member_stride, 1}, bias_.view.device);
    }
    arguments.y = y_.view;
    // [B, N, 0] reads as B * N packed rows of nothing.
    if (p.in_features == 0) {
      arguments.x = ConstTensorView(x_.view.data, p.dtype, {p.batch, 0}, x_.view.device);
    }
    if (p.out_features == 0) {
      arguments.y = TensorView(y_.view.data, p.dtype, {p.batch, 0}, y_.view.device);
    }
    return arguments;
  }

  /// Every output, and that nothing else was written.
  void check() {
    const LinearProblem& p = problem_;
    std::vector<std::byte> expected = y_.contents;
    for (int64_t b = 0; b < p.batch; ++b) {
      for (int64_t n = 0; n < p.num_members; ++n) {
        for (int64_t o = 0; o < p.out_features; ++o) {
          const int64_t at = misalign_ + b * p.y.row + n * p.y.member + o;
          store_element(expected.data(), p.dtype, at, expected_value(b, n, o));
        }
      }
    }
    const std::vector<std::byte> got = download(y_.buffer);
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()) / dtype_bytes(p.dtype); ++i) {
      const auto bytes = static_cast<size_t>(dtype_bytes(p.dtype));
      const size_t at = static_cast<size_t>(i) * bytes;
      if (std::memcmp(got.data() + at, expected.data() + at, bytes) == 0) continue;
      INFO("element " << i << " of y's buffer: got " << load_element(got.data(), p.dtype, i)
                      << ", expected " << load_element(expected.data(), p.dtype, i));
      REQUIRE(false);
    }
    REQUIRE(download(x_.buffer) == x_.contents);
    REQUIRE(download(weight_.buffer) == weight_.contents);
  }

 private:
  struct Placed {
    Tensor buffer;
    std::vector<std::byte> contents;
    TensorView view;
  };

  double x_value(int64_t b, int64_t n, int64_t i) const {
    const bool is_one_for_all = problem_.shared_input || problem_.x.member == 0;
    return static_cast<double>((b * 7 + (is_one_for_all ? 0 : n) * 3 + i * 5) % 5) - 2;
  }
  static double weight_value(int64_t n, int64_t o, int64_t i) {
    return static_cast<double>((n * 11 + o * 3 + i * 7 + o * i) % 3) - 1;
  }
  static double bias_value(int64_t n, int64_t o) {
    return static_cast<double>((n + o * 2) % 4) - 1;
  }
  double expected_value(int64_t b, int64_t n, int64_t o) const {
    double sum = problem_.epilogue.has_bias ? bias_value(n, o) : 0;
    for (int64_t i = 0; i < problem_.in_features; ++i)
      sum += x_value(b, n, i) * weight_value(n, o, i);
    return problem_.epilogue.activation == Activation::relu && sum < 0 ? 0.0 : sum;
  }

  template <class F>
  Placed place(const Shape& shape, const Strides& strides, const F& value) {
    const Dtype dtype = problem_.dtype;
    int64_t last = 0;
    for (int axis = 0; axis < 3; ++axis)
      last += std::max<int64_t>(shape[axis] - 1, 0) * strides[axis];
    const int64_t elements = misalign_ + last + 1 + 32;
    Placed placed{Tensor(bench_.context(), dtype, {elements}), {}, {}};
    placed.contents.assign(static_cast<size_t>(elements * dtype_bytes(dtype)), std::byte{0xff});
    if constexpr (!std::is_same_v<F, std::nullptr_t>) {
      for (int64_t a = 0; a < shape[0]; ++a) {
        for (int64_t b = 0; b < shape[1]; ++b) {
          for (int64_t c = 0; c < shape[2]; ++c) {
            const int64_t at = misalign_ + a * strides[0] + b * strides[1] + c;
            store_element(placed.contents.data(), dtype, at, value(a, b, c));
          }
        }
      }
    }
    copy(ConstTensorView(placed.contents.data(), dtype, {elements}, Device{}), placed.buffer,
         bench_.stream());
    bench_.context().synchronize(bench_.stream());
    void* first = static_cast<std::byte*>(placed.buffer.data()) + misalign_ * dtype_bytes(dtype);
    placed.view = TensorView(first, dtype, shape, strides, bench_.context().device());
    return placed;
  }

  std::vector<std::byte> download(const Tensor& tensor) {
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
    copy(tensor, TensorView(bytes.data(), tensor.dtype(), tensor.shape(), Device{}),
         bench_.stream());
    bench_.context().synchronize(bench_.stream());
    return bytes;
  }

  TestDevice& bench_;
  LinearProblem problem_;
  int64_t misalign_;
  Placed x_, weight_, bias_, y_;
};

/// Places, runs and checks.
inline void check_placed(TestDevice& bench, const LinearProblem& like, const std::string& strategy,
                         int64_t misalign = 0) {
  const LinearPlan plan = make_linear_plan(bench.context(), like, {.strategy = strategy});
  PlacedLinear placed(bench, plan.problem(), misalign);
  plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
  placed.check();
}

/// A problem of small odd sizes.
inline LinearProblem small_problem(Dtype dtype = Dtype::fp32) {
  LinearProblem problem;
  problem.num_members = 3;
  problem.batch = 5;
  problem.in_features = 19;
  problem.out_features = 7;
  problem.dtype = dtype;
  problem.epilogue.has_bias = true;
  return problem;
}

/// The layouts that every strategy must take, by name.
inline std::vector<std::pair<std::string, LinearProblem>> layouts(const LinearProblem& base) {
  std::vector<std::pair<std::string, LinearProblem>> list{{"packed", base}};
  const int64_t n = base.num_members, in = base.in_features, out = base.out_features;
  LinearProblem problem = base;
  problem.x = {in, base.batch * in};
  problem.y = {out, base.batch * out};
  list.emplace_back("member-major", problem);
  problem = base;
  problem.x = {n * (in + 5) + 2, in + 5};
  problem.weight = {in + 1, out * (in + 1) + 3};
  problem.bias_member_stride = out + 2;
  problem.y = {n * (out + 3) + 1, out + 3};
  list.emplace_back("padded everywhere", problem);
  problem = base;
  problem.x = {in + 8 - in % 8 + 8, 0};
  list.emplace_back("x member stride 0", problem);
  problem = base;
  problem.shared_input = true;
  list.emplace_back("shared input", problem);
  problem = base;
  problem.epilogue = {.has_bias = false, .activation = Activation::relu};
  list.emplace_back("relu, no bias", problem);
  return list;
}

}  // namespace wide::test
