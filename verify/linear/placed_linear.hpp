// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of linear with known small integers at any strides, whose results are exact in every
// dtype. The expected values come from a formula over (member, row, feature), so a wrong index
// shows as a wrong number.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "verify/support/whole_numbers.hpp"
#include "wide/convert.hpp"
#include "wide/wide.hpp"

namespace wide::test {

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

/// Operands of a problem at its strides, `misalign` elements behind an aligned address, with NaN
/// in all gaps.
class PlacedLinear {
 public:
  PlacedLinear(TestDevice& bench, const LinearProblem& problem, int64_t misalign = 0,
               bool is_in_place = false)
      : bench_(bench), problem_(problem), misalign_(misalign), is_in_place_(is_in_place) {
    const LinearProblem& p = problem_;
    x_ = place({p.batch, p.num_members, p.in_features}, {p.x.row, p.x.member, 1}, p.dtype,
               [&](int64_t b, int64_t n, int64_t i) { return x_value(b, n, i); });
    weight_ = p.weight_format == WeightFormat::packed
                  ? place({p.num_members, p.out_features, p.in_features},
                          {p.weight.member, p.weight.row, 1}, p.dtype,
                          [&](int64_t n, int64_t o, int64_t i) { return weight_value(n, o, i); })
                  : place_blobs();
    bias_ = place({1, p.num_members, p.out_features}, {0, p.bias_member_stride, 1}, *p.y_dtype,
                  [](int64_t, int64_t n, int64_t o) { return bias_value(n, o); });
    const Shape outputs{p.batch, p.num_members, p.out_features};
    const Strides y_strides{p.y.row, p.y.member, 1};
    y_ = is_in_place ? place(outputs, y_strides, *p.y_dtype, residual_value)
                     : place(outputs, y_strides, *p.y_dtype, nullptr);
    if (p.epilogue.residual != Residual::none && !is_in_place) {
      residual_ =
          place(outputs, {p.residual.row, p.residual.member, 1}, *p.y_dtype, residual_value);
    }
    if (p.epilogue.scale != OutputScale::none) {
      const bool is_per_member = p.epilogue.scale == OutputScale::per_member;
      scale_ = place({1, p.num_members, is_per_member ? 1 : p.out_features},
                     {0, p.scale_member_stride, 1}, Dtype::fp32,
                     [this](int64_t, int64_t n, int64_t o) { return scale_value(n, o); });
    }
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
      arguments.bias = ConstTensorView(bias_.view.data, *p.y_dtype, {p.num_members, p.out_features},
                                       Strides{p.bias_member_stride, 1}, bias_.view.device);
    }
    arguments.y = y_.view;
    if (p.epilogue.scale != OutputScale::none) {
      arguments.scale =
          ConstTensorView(scale_.view.data, Dtype::fp32, {p.num_members, scale_.view.shape[2]},
                          Strides{p.scale_member_stride, 1}, scale_.view.device);
    }
    if (p.epilogue.residual != Residual::none) {
      arguments.residual = is_in_place_ ? y_.view : residual_.view;
    }
    // [B, N, 0] reads as B * N packed rows of nothing.
    if (p.in_features == 0) {
      arguments.x = ConstTensorView(x_.view.data, p.dtype, {p.batch, 0}, x_.view.device);
    }
    if (p.out_features == 0) {
      arguments.y = TensorView(y_.view.data, *p.y_dtype, {p.batch, 0}, y_.view.device);
      if (!arguments.residual.is_absent()) arguments.residual = arguments.y;
    }
    return arguments;
  }

  /// Fills y with NaN again.
  void poison() {
    copy(ConstTensorView(y_.contents.data(), y_.buffer.dtype(), y_.buffer.shape(), Device{}),
         y_.buffer, bench_.stream());
  }

  /// Every output, and that nothing else was written.
  void check() {
    const LinearProblem& p = problem_;
    const Dtype dtype = *p.y_dtype;
    std::vector<std::byte> expected = y_.contents;
    for (int64_t n = 0; n < p.num_members; ++n) {
      const Rows weight =
          rows_of(p.out_features, [&](int64_t o, int64_t i) { return weight_value(n, o, i); });
      const Rows x = rows_of(p.batch, [&](int64_t b, int64_t i) { return x_value(b, n, i); });
      for (int64_t b = 0; b < p.batch; ++b) {
        for (int64_t o = 0; o < p.out_features; ++o) {
          const int64_t at = misalign_ + b * p.y.row + n * p.y.member + o;
          store_element(expected.data(), dtype, at,
                        expected_value(b, n, o, product(x, b, weight, o)));
        }
      }
    }
    const std::vector<std::byte> got = download(y_.buffer);
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()) / dtype_bytes(dtype); ++i) {
      const auto bytes = static_cast<size_t>(dtype_bytes(dtype));
      const size_t at = static_cast<size_t>(i) * bytes;
      if (std::memcmp(got.data() + at, expected.data() + at, bytes) == 0) continue;
      INFO("element " << i << " of y's buffer: got " << load_element(got.data(), dtype, i)
                      << ", expected " << load_element(expected.data(), dtype, i));
      REQUIRE(false);
    }
    REQUIRE(download(x_.buffer) == x_.contents);
    REQUIRE(download(weight_.buffer) == weight_.contents);
    if (residual_.buffer.bytes() > 0) REQUIRE(download(residual_.buffer) == residual_.contents);
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
  /// Of two sizes, so that groups of quantised weights have two scales.
  double weight_value(int64_t n, int64_t o, int64_t i) const {
    if (problem_.weight_format == WeightFormat::packed && problem_.weight.member == 0) n = 0;
    const double size = (o / 5 + i / 64) % 2 == 0 ? 1 : 2;
    return size * (static_cast<double>((n * 11 + o * 3 + i * 7 + o * i) % 3) - 1);
  }
  static double bias_value(int64_t n, int64_t o) {
    return static_cast<double>((n + o * 2) % 4) - 1;
  }
  /// Powers of two: products stay exact.
  double scale_value(int64_t n, int64_t o) const {
    const bool is_per_member = problem_.epilogue.scale == OutputScale::per_member;
    return std::ldexp(o % 2 == 0 ? 1 : -1, static_cast<int>((n + (is_per_member ? 0 : o)) % 3) - 1);
  }
  static double residual_value(int64_t b, int64_t n, int64_t o) {
    return static_cast<double>((b * 5 + n * 3 + o) % 7) - 3;
  }
  /// A member's rows of in_features whole numbers, whose products most of a test's time would go to
  /// one by one.
  using Rows = std::vector<int16_t>;
  template <class F>
  Rows rows_of(int64_t num_rows, const F& value) const {
    Rows rows;
    rows.reserve(static_cast<size_t>(num_rows * problem_.in_features));
    for (int64_t row = 0; row < num_rows; ++row) {
      for (int64_t i = 0; i < problem_.in_features; ++i) {
        rows.push_back(static_cast<int16_t>(value(row, i)));
      }
    }
    return rows;
  }
  double product(const Rows& x, int64_t b, const Rows& weight, int64_t o) const {
    const auto in = static_cast<size_t>(problem_.in_features);
    return whole_product(std::span(x).subspan(static_cast<size_t>(b) * in, in),
                         std::span(weight).subspan(static_cast<size_t>(o) * in, in));
  }
  double expected_value(int64_t b, int64_t n, int64_t o, double sum) const {
    const Epilogue& epilogue = problem_.epilogue;
    sum *= static_cast<double>(epilogue.alpha);
    const bool is_per_member = epilogue.scale == OutputScale::per_member;
    if (epilogue.scale != OutputScale::none) sum *= scale_value(n, is_per_member ? 0 : o);
    if (epilogue.has_bias) sum += bias_value(n, o);
    if (epilogue.residual == Residual::before_activation) sum += residual_value(b, n, o);
    if (epilogue.activation == Activation::relu && sum <= 0) sum = 0;  // +0, also of -0
    if (epilogue.residual == Residual::after_activation) sum += residual_value(b, n, o);
    return sum;
  }

  /// The same weights, of which a power of two is the scale, as blobs.
  Placed place_blobs() {
    const LinearProblem& p = problem_;
    const int64_t bytes = linear_member_bytes(p), in = p.in_features;
    std::vector<float> dense(static_cast<size_t>(p.out_features * in));
    std::vector<uint8_t> blob(static_cast<size_t>(bytes));
    const ConstTensorView member(dense.data(), Dtype::fp32, {p.out_features, in}, Device{});
    int64_t filled = -1;
    const auto byte_of = [&](int64_t n, int64_t, int64_t i) {
      for (int64_t at = 0; filled != n && at < p.out_features * in; ++at) {
        dense[static_cast<size_t>(at)] = static_cast<float>(weight_value(n, at / in, at % in));
      }
      if (filled != n) {
        quantize_weights(Context::cpu({.num_threads = 1, .allocator = {}}),
                         linear_quantized_weight(p), std::span(&member, 1),
                         TensorView(blob.data(), Dtype::uint8, {1, bytes}, Device{}),
                         Stream::cpu());
      }
      filled = n;
      return static_cast<double>(blob[static_cast<size_t>(i)]);
    };
    const int64_t misalign = std::exchange(misalign_, 0);  // blobs stay where they may be
    Placed placed =
        place({p.num_members, 1, bytes}, {p.weight.member, bytes, 1}, Dtype::uint8, byte_of);
    misalign_ = misalign;
    placed.view = TensorView(placed.view.data, Dtype::uint8, {p.num_members, bytes},
                             Strides{p.weight.member, 1}, placed.view.device);
    return placed;
  }
  template <class F>
  Placed place(const Shape& shape, const Strides& strides, Dtype dtype, const F& value) {
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
  bool is_in_place_;
  Placed x_, weight_, bias_, y_, scale_, residual_;
};

/// Places, runs and checks; `is_in_place`: the residual is what y holds before.
inline void check_placed(TestDevice& bench, const LinearProblem& like, const std::string& strategy,
                         int64_t misalign = 0, bool is_in_place = false) {
  const LinearPlan plan = make_linear_plan(bench.context(), like, {.strategy = strategy});
  PlacedLinear placed(bench, plan.problem(), misalign, is_in_place);
  plan.run(placed.arguments(), bench.execution(plan.workspace_bytes()));
  placed.check();
}

}  // namespace wide::test
