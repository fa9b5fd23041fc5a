// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv's implicit_gemm, every tile in both forms: rings that come round, ragged edges, and
// everything that shifts where a term lies. Operands are whole numbers, so that results must be
// exact whatever the order of a sum. Skipped without a device; sizes suit a simulated one.
#include <cuda_runtime_api.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
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

  ConvProblem problem;
  Shape x_shape, weight_shape, y_shape;
  Reals x, weight, bias, residual;
};

/// A tensor whose elements begin so many behind a 256-byte boundary.
struct Misaligned {
  Misaligned(const Context& context, Dtype dtype, const Shape& shape, Reals values, int64_t by)
      : tensor([&] {
          values.insert(values.begin(), static_cast<size_t>(by), 0.0);
          return upload(context, dtype, {static_cast<int64_t>(values.size())}, values);
        }()),
        view(static_cast<char*>(tensor.data()) + by * dtype_bytes(dtype), dtype, shape,
             context.device()) {}
  Tensor tensor;
  TensorView view;
};

void check(const Context& context, const ConvCase& made, const std::vector<Reals>& expected,
           Dtype dtype, const kernels::ConvGemmTiles& tiles, int64_t misaligned_by) {
  INFO(dtype_name(dtype) << ", " << tile_name(tiles.vector) << " or " << tile_name(tiles.gather)
                         << ", misaligned by " << misaligned_by);
  ConvProblem like = made.problem;
  like.dtype = dtype;
  like.allow_tf32 = dtype == Dtype::fp32;
  const int64_t n = like.num_members;
  const Misaligned x(context, dtype, made.x_shape, made.x, misaligned_by);
  const Tensor weight = upload(context, dtype, made.weight_shape, made.weight);
  const Tensor bias = upload(context, dtype, {n * like.out_channels}, made.bias);
  const Tensor residual = upload(context, dtype, made.y_shape, made.residual);
  const Tensor y = upload(context, dtype, made.y_shape,
                          Reals(static_cast<size_t>(num_elements(made.y_shape)), std::nan("")));
  ConvArguments arguments{x.view, weight, {}, y, {}};
  if (like.epilogue.has_bias) arguments.bias = bias;
  if (like.epilogue.residual != Residual::none) arguments.residual = residual;
  const ConvProblem problem = describe_conv(arguments, like);
  const OwnedStream stream(context);
  REQUIRE(kernels::launch_conv_implicit_gemm(conv_params(problem, arguments), dtype, tiles,
                                             static_cast<cudaStream_t>(stream.get().native())) ==
          cudaSuccess);
  context.synchronize(stream.get());
  const Reals got = download(context, y);
  for (int64_t i = 0; i < n; ++i) {
    INFO("member " << i);
    CHECK(of_member(got, made.y_shape, problem.layout, i, n) == expected[static_cast<size_t>(i)]);
  }
}

/// By every tile, in every dtype; channels last also where only gathering is possible.
void check_all(const ConvProblem& like) {
  const Context context = require_cuda();
  const ConvCase made(like);
  std::vector<Reals> expected;
  for (int64_t i = 0; i < like.num_members; ++i) expected.push_back(made.expected(i));
  const bool may_gather = like.layout == ConvLayout::channels_last;
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    for (size_t i = 0; i < kernels::kConvVectorTiles.size(); ++i) {
      kernels::ConvGemmTiles tiles{kernels::kConvVectorTiles[i], kernels::kConvGatherTiles[i]};
      if (dtype == Dtype::fp32 && tiles.vector == ConvGemmTile::p128c128) {
        tiles.vector = ConvGemmTile::p64c64;
      }
      check(context, made, expected, dtype, tiles, 0);
      if (may_gather) check(context, made, expected, dtype, tiles, 1);
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
