// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv's implicit_gemm, every tile in both forms: rings that come round, ragged edges, and
// everything that shifts where a term lies. Operands are whole numbers, so that results must be
// exact whatever the order of a sum. Skipped without a device; sizes suit a simulated one.
#include <cuda_runtime_api.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <random>

#include "host/conv/conv_params.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_reference.hpp"
#include "kernels/conv/conv_implicit_gemm.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"
#include "wide/convert.hpp"

namespace wide::test {
namespace {

using kernels::ConvGemmTile;
using Reals = std::vector<double>;

/// So few of them are not 0 that sums stay below 2^8: exact in bf16.
Reals small_integers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Reals values(static_cast<size_t>(count));
  for (double& value : values)
    value = random() % 3 == 0 ? static_cast<double>(random() % 5) - 2 : 0;
  return values;
}

Shape shape_of(ConvLayout layout, int64_t outer, int64_t channels, const PerAxis& size) {
  return layout == ConvLayout::channels_last ? Shape{outer, size.height, size.width, channels}
                                             : Shape{outer, channels, size.height, size.width};
}

/// The elements of member n, dense: of a tensor whose members are joined along channels.
Reals of_member(const Reals& all, const Shape& shape, ConvLayout layout, int64_t n,
                int64_t num_members) {
  const bool is_last = layout == ConvLayout::channels_last;
  const int64_t run =
      is_last ? shape[3] / num_members : num_elements(shape) / shape[0] / num_members;
  Reals own;
  for (int64_t i = n * run; i < num_elements(shape); i += num_members * run)
    own.insert(own.end(), all.begin() + i, all.begin() + i + run);
  return own;
}

/// One problem with its operands on the host, and y as the reference has it.
struct ConvCase {
  explicit ConvCase(const ConvProblem& like) : problem(complete_conv_problem(like)) {
    const ConvProblem& p = problem;
    const int64_t n = p.num_members;
    x_shape = shape_of(p.layout, p.batch, n * p.in_channels, p.input);
    weight_shape = shape_of(p.layout, n * p.out_channels, p.in_channels / p.groups, p.kernel);
    y_shape = shape_of(p.layout, p.batch, n * p.out_channels, conv_output_size(p));
    x = small_integers(num_elements(x_shape), 1);
    weight = small_integers(num_elements(weight_shape), 2);
    bias = small_integers(n * p.out_channels, 3);
    residual = small_integers(num_elements(y_shape), 4);
  }

  /// y of member n, dense, in the problem's layout.
  Reals expected(int64_t n) const {
    const ConvProblem& p = problem;
    const PerAxis output = conv_output_size(p);
    const Reals own_x = of_member(x, x_shape, p.layout, n, p.num_members);
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
    const Shape own = shape_of(p.layout, p.batch, p.out_channels, output);
    const bool is_last = p.layout == ConvLayout::channels_last;
    for (int64_t i = 0; i < num_elements(own); ++i) {
      const int64_t last = i % own[3], third = i / own[3] % own[2],
                    second = i / own[3] / own[2] % own[1];
      const catalog::ConvOutput at =
          is_last ? catalog::ConvOutput{i / own[3] / own[2] / own[1], last, second, third}
                  : catalog::ConvOutput{i / own[3] / own[2] / own[1], second, third, last};
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
    const bool is_last = problem.layout == ConvLayout::channels_last;
    const int64_t channels = is_last ? x_shape[3] : x_shape[1];
    const int64_t run = is_last ? 1 : x_shape[2] * x_shape[3];
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

/// Elements before the first of an operand, and NaN behind each of its rows.
struct Placement {
  int64_t offset = 0, padding = 0;
};

/// An operand in such a place.
class Placed {
 public:
  Placed(const Context& context, Dtype dtype, const Shape& shape, const Reals& values,
         const Placement& at)
      : context_(context), row_(shape[3]), pitch_(row_ + at.padding), offset_(at.offset) {
    const int64_t rows = num_elements(shape) / row_;
    Reals stored(static_cast<size_t>(offset_ + rows * pitch_), std::nan(""));
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(values.begin() + r * row_, row_, stored.begin() + offset_ + r * pitch_);
    tensor_ = upload(context, dtype, {static_cast<int64_t>(stored.size())}, stored);
    view = TensorView(static_cast<char*>(tensor_.data()) + offset_ * dtype_bytes(dtype), dtype,
                      shape, context.device());
    view.strides[2] = pitch_;
    for (int axis = 1; axis >= 0; --axis)
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

/// y, from x and y in such places.
Reals run(const Context& context, const ConvCase& made, Dtype dtype,
          const kernels::ConvGemmTiles& tiles, const Placement& at) {
  ConvProblem like = made.problem;
  like.dtype = dtype;
  like.allow_tf32 = dtype == Dtype::fp32;
  like.x = like.y = like.residual = {};
  const Placed x(context, dtype, made.x_shape, made.x, at);
  const Tensor weight = upload(context, dtype, made.weight_shape, made.weight);
  const Tensor bias = upload(context, dtype, {like.num_members * like.out_channels}, made.bias);
  const Tensor residual = upload(context, dtype, made.y_shape, made.residual);
  const Reals nothing(static_cast<size_t>(num_elements(made.y_shape)), std::nan(""));
  const Placed y(context, dtype, made.y_shape, nothing, {0, at.padding});
  ConvArguments arguments{x.view, weight, {}, y.view, {}};
  if (like.epilogue.has_bias) arguments.bias = bias;
  if (like.epilogue.residual != Residual::none) arguments.residual = residual;
  const ConvProblem problem = describe_conv(arguments, like);
  const OwnedStream stream(context);
  REQUIRE(kernels::launch_conv_implicit_gemm(conv_params(problem, arguments), dtype, tiles,
                                             static_cast<cudaStream_t>(stream.get().native())) ==
          cudaSuccess);
  context.synchronize(stream.get());
  return y.read();
}

constexpr Placement kPacked{0, 0}, kMisaligned{1, 0}, kPadded{0, 8};

/// By every tile, in every dtype, and once where channels last can only be gathered. Member
/// `poisoned`, where there is one, is NaN and has to stay so.
void check_all(const ConvProblem& like, int64_t poisoned = -1) {
  const Context context = require_cuda();
  ConvCase made(like);
  std::vector<Reals> expected;
  for (int64_t i = 0; i < like.num_members; ++i) expected.push_back(made.expected(i));
  if (poisoned >= 0) made.poison(poisoned);
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    std::vector<Placement> places{kPacked};
    if (dtype == Dtype::fp16) places = {kPacked, kPadded, kMisaligned};
    for (size_t i = 0; i < 3 * places.size(); ++i) {
      kernels::ConvGemmTiles tiles{kernels::kConvVectorTiles[i % 3],
                                   kernels::kConvGatherTiles[i % 3]};
      const Placement& at = places[i / 3];
      if (dtype == Dtype::fp32 && tiles.vector == ConvGemmTile::p128c128) continue;
      INFO(dtype_name(dtype) << ", " << tile_name(tiles.vector) << " or " << tile_name(tiles.gather)
                             << ", offset " << at.offset << ", padding " << at.padding);
      const Reals y = run(context, made, dtype, tiles, at);
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
  }
}

ConvLayout any_layout() {
  return GENERATE(ConvLayout::channels_first, ConvLayout::channels_last);
}

TEST_CASE("conv by implicit_gemm: rings that come round, ragged pixels and channels") {
  ConvProblem p{.num_members = 2, .batch = 2, .in_channels = 32, .out_channels = 40};
  p.input = {5, 9}, p.kernel = {3, 3}, p.padding = {1, 1};
  p.layout = any_layout();
  check_all(p);
}

TEST_CASE("conv by implicit_gemm: strides, dilations, groups and every part of the epilogue") {
  ConvProblem p{.num_members = 2, .batch = 2, .in_channels = 16, .out_channels = 24, .groups = 2};
  p.input = {9, 12}, p.kernel = {3, 2}, p.stride = {2, 1}, p.padding = {2, 1}, p.dilation = {1, 3};
  p.epilogue = {.has_bias = true, .activation = Activation::relu};
  p.epilogue.residual = GENERATE(Residual::before_activation, Residual::after_activation);
  p.layout = any_layout();
  check_all(p);
}

TEST_CASE("conv by implicit_gemm: channels that are no vectors, signals, single taps") {
  ConvProblem p{.num_members = 3, .batch = 1, .in_channels = 21, .out_channels = 10};
  p.epilogue.has_bias = true;
  p.layout = any_layout();
  SECTION("a signal") {
    p.input = {1, 70}, p.kernel = {1, 5}, p.padding = {0, 2};
  }
  SECTION("one tap, every other position") {
    p.input = {6, 7}, p.stride = {2, 2};
  }
  check_all(p);
}

TEST_CASE("conv by implicit_gemm: a member that is NaN reaches no other") {
  ConvProblem p{.num_members = 3, .batch = 1, .in_channels = 8, .out_channels = 9};
  p.input = {4, 5}, p.kernel = {3, 3}, p.padding = {1, 1};
  p.epilogue.has_bias = true;
  p.layout = any_layout();
  check_all(p, 1);
}

TEST_CASE("conv by implicit_gemm: neither tile nor form nor strides change a bit") {
  const Context context = require_cuda();
  ConvProblem p{.num_members = 2, .batch = 1, .in_channels = 40, .out_channels = 16};
  p.input = {5, 6}, p.kernel = {3, 3};
  p.layout = ConvLayout::channels_last;
  ConvCase made(p);
  made.x = uniform(num_elements(made.x_shape), -1, 1, 1);
  made.weight = uniform(num_elements(made.weight_shape), -1, 1, 2);
  const Reals first =
      run(context, made, Dtype::fp16, {ConvGemmTile::p64c64, ConvGemmTile::p64c64}, kPacked);
  for (size_t i = 0; i < 9; ++i) {
    const kernels::ConvGemmTiles tiles{kernels::kConvVectorTiles[i % 3],
                                       kernels::kConvGatherTiles[i % 3]};
    INFO(tile_name(tiles.vector) << " or " << tile_name(tiles.gather) << ", placement " << i / 3);
    const Placement at = i < 3 ? kPacked : i < 6 ? kPadded : kMisaligned;
    CHECK(run(context, made, Dtype::fp16, tiles, at) == first);
  }
}

TEST_CASE("conv by implicit_gemm: refuses what no grid can hold, and tiles of the other form") {
  ConvProblem p{.num_members = int64_t{1} << 31, .batch = 1, .in_channels = 8, .out_channels = 8};
  kernels::ConvParams params = conv_params(complete_conv_problem(p));
  const auto launch = [&](ConvGemmTile tile, Dtype dtype) {
    return kernels::launch_conv_implicit_gemm(params, dtype, {tile, tile}, nullptr);
  };
  CHECK(launch(ConvGemmTile::p64c64, Dtype::fp16) == cudaErrorInvalidConfiguration);
  params.num_members = 1;
  CHECK(launch(ConvGemmTile::p128c128, Dtype::fp16) == cudaErrorInvalidValue);
  params.batch = 0;
  CHECK(launch(ConvGemmTile::p64c64, Dtype::fp16) == cudaSuccess);
}

}  // namespace
}  // namespace wide::test
