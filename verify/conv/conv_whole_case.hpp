// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of whole numbers for tests of single kernels: operands on the host, y as the
// reference has it, exactly, and places for them on a device.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"

namespace wide::test {

using Reals = std::vector<double>;

/// So few of them are not 0 that sums stay below 2^8: exact in bf16.
inline Reals small_integers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Reals values(static_cast<size_t>(count));
  for (double& value : values)
    value = random() % 3 == 0 ? static_cast<double>(random() % 5) - 2 : 0;
  return values;
}

/// The elements of member n, dense: of a tensor whose members are joined along channels.
inline Reals of_member(const Reals& all, const Shape& shape, ChannelLayout layout, int64_t n,
                       int64_t num_members) {
  const bool is_last = layout == ChannelLayout::channels_last;
  const int64_t run =
      is_last ? shape.back() / num_members : num_elements(shape) / shape[0] / num_members;
  Reals own;
  for (int64_t i = n * run; i < num_elements(shape); i += num_members * run)
    own.insert(own.end(), all.begin() + i, all.begin() + i + run);
  return own;
}

/// One problem with its operands on the host, and y as the reference has it.
struct WholeConv {
  explicit WholeConv(const ConvProblem& like) : problem(complete_conv_problem(like)) {
    const ConvProblem& p = problem;
    const int64_t n = p.num_members;
    const int rank = is_volume(p) ? 5 : 4;
    x_shape = conv_shape(x_layout_of(p), rank, p.batch, n * p.in_channels, p.depth.input, p.input);
    weight_shape = conv_shape(p.layout, rank, n * p.out_channels, p.in_channels / p.groups,
                              p.depth.kernel, p.kernel);
    y_shape = conv_shape(p.layout, rank, p.batch, n * p.out_channels, conv_output_depth(p),
                         conv_output_size(p));
    x = small_integers(num_elements(x_shape), 1);
    weight = small_integers(num_elements(weight_shape), 2);
    bias = small_integers(n * p.out_channels, 3);
    residual = small_integers(num_elements(y_shape), 4);
  }

  /// y of member n, dense, in the problem's layout.
  Reals expected(int64_t n) const {
    const ConvProblem& p = problem;
    const PerAxis output = conv_output_size(p);
    const Reals own_x = of_member(x, x_shape, x_layout_of(p), n, p.num_members);
    const Reals own_residual = of_member(residual, y_shape, p.layout, n, p.num_members);
    const auto part = [&](const Reals& all) {
      const size_t length = all.size() / static_cast<size_t>(p.num_members);
      return std::span(all).subspan(static_cast<size_t>(n) * length, length);
    };
    catalog::ConvReferenceOperands operands{own_x, part(weight), {}, {}};
    if (p.epilogue.has_bias) operands.bias = part(bias);
    if (p.epilogue.residual != Residual::none) operands.residual = own_residual;
    Reals y;
    double most = 0;
    const bool is_last = p.layout == ChannelLayout::channels_last;
    for (int64_t i = 0; i < num_elements(y_shape) / p.num_members; ++i) {
      int64_t rest = i;
      const auto next = [&](int64_t extent) { return std::exchange(rest, rest / extent) % extent; };
      catalog::ConvOutput at;
      if (is_last) at.channel = next(p.out_channels);
      at.column = next(output.width), at.row = next(output.height);
      at.depth = next(conv_output_depth(p));
      if (!is_last) at.channel = next(p.out_channels);
      at.batch = rest;
      const catalog::ConvSum sum = conv_reference_sum(p, operands, at);
      most = std::max(most, sum.magnitude);
      const double value =
          p.epilogue.activation == Activation::relu ? std::max(sum.value, 0.0) : sum.value;
      y.push_back(value + (p.epilogue.residual == Residual::after_activation ? sum.residual : 0));
    }
    REQUIRE(most <= 256);
    return y;
  }

  /// All that member n has is NaN.
  void poison(int64_t n) {
    const int64_t members = problem.num_members;
    const bool is_last = x_layout_of(problem) == ChannelLayout::channels_last;
    const int64_t channels = is_last ? x_shape.back() : x_shape[1];
    const int64_t run = is_last ? 1 : num_elements(x_shape) / x_shape[0] / x_shape[1];
    for (int64_t i = 0; i < num_elements(x_shape); ++i)
      if (i / run % channels / problem.in_channels == n) x[static_cast<size_t>(i)] = std::nan("");
    for (Reals* all : {&weight, &bias}) {
      const auto length = static_cast<int64_t>(all->size()) / members;
      std::fill_n(all->begin() + n * length, length, std::nan(""));
    }
  }

  ConvProblem problem;
  Shape x_shape, weight_shape, y_shape;
  Reals x, weight, bias, residual;
};

/// Every member is what was expected of it; the poisoned one, where there is one, NaN.
inline void check_members(const Reals& y, const WholeConv& made, const ConvProblem& like,
                          const std::vector<Reals>& expected, int64_t poisoned) {
  for (int64_t n = 0; n < like.num_members; ++n) {
    INFO("member " << n);
    const Reals own = of_member(y, made.y_shape, like.layout, n, like.num_members);
    if (n != poisoned) {
      CHECK(own == expected[static_cast<size_t>(n)]);
    } else {
      CHECK(std::all_of(own.begin(), own.end(), [](double v) { return std::isnan(v); }));
    }
  }
}

/// Elements before the first of an operand, and NaN behind each of its rows.
struct Placement {
  int64_t offset = 0, padding = 0;
  int64_t y_padding = 0;  ///< more of it, behind rows of y
};
constexpr Placement kPacked{0, 0}, kMisaligned{1, 0}, kPadded{0, 8};

/// An operand in such a place.
class PlacedImages {
 public:
  PlacedImages(const Context& context, Dtype dtype, const Shape& shape, const Reals& values,
               const Placement& at)
      : context_(context), row_(shape.back()), pitch_(row_ + at.padding), offset_(at.offset) {
    const int64_t rows = num_elements(shape) / row_;
    Reals stored(static_cast<size_t>(offset_ + rows * pitch_), std::nan(""));
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(values.begin() + r * row_, row_, stored.begin() + offset_ + r * pitch_);
    tensor_ = upload(context, dtype, {static_cast<int64_t>(stored.size())}, stored);
    view = TensorView(static_cast<char*>(tensor_.data()) + offset_ * dtype_bytes(dtype), dtype,
                      shape, context.device());
    view.strides[shape.rank() - 2] = pitch_;
    for (int axis = shape.rank() - 3; axis >= 0; --axis)
      view.strides[axis] = view.strides[axis + 1] * shape[axis + 1];
  }

  /// All of them; what lies between must still be NaN.
  Reals read() const {
    const Reals stored = download(context_, tensor_);
    Reals values;
    for (int64_t i = 0; i < static_cast<int64_t>(stored.size()); ++i) {
      const double value = stored[static_cast<size_t>(i)];
      if (i >= offset_ && (i - offset_) % pitch_ < row_) {
        values.push_back(value);
      } else if (!std::isnan(value)) {
        FAIL_CHECK("element " << i << " of the buffer was written to");
      }
    }
    return values;
  }

  TensorView view;

 private:
  Context context_;
  int64_t row_, pitch_, offset_;
  Tensor tensor_;
};

/// y, from x and y in such places, by launch(problem, arguments, stream).
template <class Launch>
Reals run_whole_conv(const Context& context, const WholeConv& made, Dtype dtype,
                     const Placement& at, const Launch& launch) {
  ConvProblem like = made.problem;
  like.dtype = dtype;
  like.allow_tf32 = dtype == Dtype::fp32;
  like.x = like.y = like.residual = {};
  const PlacedImages x(context, dtype, made.x_shape, made.x, at);
  const Tensor weight = upload(context, dtype, made.weight_shape, made.weight);
  const Tensor bias = upload(context, dtype, {like.num_members * like.out_channels}, made.bias);
  const Tensor residual = upload(context, dtype, made.y_shape, made.residual);
  const Reals nothing(static_cast<size_t>(num_elements(made.y_shape)), std::nan(""));
  const PlacedImages y(context, dtype, made.y_shape, nothing, {0, at.padding + at.y_padding});
  ConvArguments arguments{x.view, weight, {}, y.view, {}};
  if (like.epilogue.has_bias) arguments.bias = bias;
  if (like.epilogue.residual != Residual::none) arguments.residual = residual;
  const OwnedStream stream(context);
  launch(describe_conv(arguments, like), arguments,
         static_cast<cudaStream_t>(stream.get().native()));
  context.synchronize(stream.get());
  return y.read();
}

}  // namespace wide::test
