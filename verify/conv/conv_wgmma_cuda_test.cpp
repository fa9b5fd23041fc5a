// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv's wgmma, every tile: rings that come round, rectangles of every kind, and everything that
// moves a tap's box. The kernel is told of two multiprocessors, whatever there are, so that a few
// tiles give each block several. Operands are whole numbers: results must be exact.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <tuple>

#include "host/conv/conv_params.hpp"
#include "host/conv/conv_strategy.hpp"
#include "host/conv/conv_wgmma.hpp"
#include "host/conv/conv_wgmma_cuda.hpp"
#include "kernels/conv/conv_implicit_gemm.hpp"
#include "kernels/conv/conv_wgmma.hpp"
#include "verify/conv/conv_whole_case.hpp"

namespace wide::test {
namespace {

using enum kernels::ConvWgmmaTile;
using kernels::ConvWgmmaTile;

/// Channels last, of stride 1, unpadded.
ConvProblem images(int64_t num_members, int64_t batch, int64_t in, int64_t out, PerAxis input,
                   PerAxis kernel) {
  ConvProblem p{.num_members = num_members, .batch = batch, .in_channels = in, .out_channels = out};
  p.input = input, p.kernel = kernel;
  p.layout = ChannelLayout::channels_last;
  return p;
}

Context require_wgmma() {
  const Context context = require_cuda();
  if (context.info().compute_capability != 90) SKIP("wgmma needs compute capability 9.0");
  return context;
}

Reals run(const Context& context, const WholeConv& made, Dtype dtype, ConvWgmmaTile tile,
          const Placement& at = kPacked) {
  return run_whole_conv(context, made, dtype, at,
                        [&](const auto& problem, const auto& arguments, cudaStream_t stream) {
                          DeviceInfo device = context.info();
                          device.num_multiprocessors = 2;
                          REQUIRE(conv_wgmma_unsupported_reason(problem, device) == "");
                          REQUIRE(has_conv_maps(arguments));
                          run_conv_wgmma(device, tile, problem, arguments, stream);
                        });
}

/// Member `poisoned`, where there is one, is NaN and has to stay so.
void check(const ConvProblem& like, Dtype dtype, ConvWgmmaTile tile, const Placement& at = kPacked,
           int64_t poisoned = -1) {
  const Context context = require_wgmma();
  INFO(tile_name(tile) << " of " << dtype_name(dtype) << ", padding " << at.padding);
  WholeConv made(like);
  std::vector<Reals> expected;
  for (int64_t n = 0; n < like.num_members; ++n) expected.push_back(made.expected(n));
  if (poisoned >= 0) made.poison(poisoned);
  const Reals y = run(context, made, dtype, tile, at);
  check_members(y, made, like, expected, poisoned);
}

TEST_CASE("conv by wgmma: rings that come round, blocks of several tiles, ragged edges") {
  // 18 stages a tile, of rings of 8, 4 and 6, and two boxes of two; the last channels are 8 of 64.
  const auto [tile, batch, out] = GENERATE(
      std::tuple{p128c64, 5, 72}, std::tuple{p256c64, 8, 136}, std::tuple{p128c128, 5, 100},
      std::tuple{p256c128, 6, 130}, std::tuple{h256c64, 9, 72}, std::tuple{h256c128, 9, 130});
  ConvProblem p = images(2, batch, 72, out, {5, 9}, {3, 3});
  p.padding = {1, 1};
  p.epilogue.has_bias = true;
  check(p, Dtype::bf16, tile, kPadded);
}

TEST_CASE("conv by wgmma: strides, dilations, paddings and kernels of two lengths") {
  const ConvWgmmaTile tile = GENERATE(p128c64, p256c64);
  ConvProblem p = images(2, 2, 40, 24, {19, 23}, {3, 2});
  SECTION("both axes differ") {
    p.stride = {2, 1}, p.padding = {2, 1}, p.dilation = {1, 3};
  }
  SECTION("padding as wide as the kernel reaches") {
    p.padding = {3, 3}, p.stride = {1, 3}, p.dilation = {2, 2};
  }
  SECTION("the longest strides") {
    p.stride = {8, 7};
  }
  SECTION("a single column, a stride that nobody takes") {
    p.input = {19, 6}, p.kernel = {3, 6}, p.stride = {1, 30};
  }
  check(p, Dtype::fp16, tile);
}

TEST_CASE("conv by wgmma: signals, single taps, rectangles over batch rows") {
  SECTION("a signal") {
    ConvProblem p = images(3, 1, 136, 24, {1, 300}, {1, 5});
    p.padding = {0, 2}, p.stride = {1, 2};
    check(p, Dtype::bf16, p128c64);
  }
  SECTION("a signal that is longer than a tile, with strides that a box is too short for") {
    ConvProblem p = images(1, 1, 16, 64, {1, 700}, {1, 3});
    p.stride = {1, 5};
    check(p, Dtype::bf16, p256c64);
  }
  SECTION("taps that are groups of a box, of one row and of two") {
    ConvProblem p = images(2, 9, 136, 24, {1, 70}, {1, 5});
    p.padding = {0, 4}, p.dilation = {1, 2};
    check(p, Dtype::bf16, h256c64);
    p = images(1, 9, 16, 136, {3, 34}, {2, 3});
    CHECK(conv_wgmma_rectangle(complete_conv_problem(p), h256c128).rows == 2);
    check(p, Dtype::fp16, h256c128);
  }
  SECTION("images smaller than a tile") {
    check(images(2, 40, 64, 130, {2, 3}, {1, 1}), Dtype::fp16, p256c128);
  }
}

TEST_CASE("conv by wgmma: fp32 as tf32") {
  const auto [tile, out] =
      GENERATE(std::tuple{p128c64, 40}, std::tuple{p256c128, 130}, std::tuple{h256c64, 40});
  ConvProblem p = images(2, 3, 36, out, {6, 7}, {3, 3});
  p.padding = {1, 1};
  p.epilogue = {.has_bias = true, .activation = Activation::relu};
  check(p, Dtype::fp32, tile, kPadded);
}

TEST_CASE("conv by wgmma: both ways to store, every epilogue") {
  const int64_t out = GENERATE(136, 99);
  const Activation activation = GENERATE(Activation::none, Activation::relu, Activation::gelu);
  const Residual residual = GENERATE(Residual::before_activation, Residual::after_activation);
  if (activation == Activation::gelu && residual == Residual::before_activation) return;
  ConvProblem p = images(2, 3, 24, out, {4, 7}, {2, 2});
  p.epilogue = {.has_bias = true, .activation = activation, .residual = residual};
  if (activation != Activation::gelu) return check(p, Dtype::bf16, p128c128, kPadded);
  // Of equal sums implicit_gemm makes equal outputs.
  const Context context = require_wgmma();
  const WholeConv made(p);
  const Reals expected = run_whole_conv(
      context, made, Dtype::bf16, kPadded,
      [&](const auto& problem, const auto& arguments, cudaStream_t stream) {
        using kernels::ConvGemmTile;
        REQUIRE(kernels::launch_conv_implicit_gemm(conv_params(problem, arguments), Dtype::bf16,
                                                   {ConvGemmTile::p64c64, ConvGemmTile::p64c64},
                                                   stream) == cudaSuccess);
      });
  CHECK(run(context, made, Dtype::bf16, p128c128, kPadded) == expected);
}

TEST_CASE("conv by wgmma: what lies behind a pixel's channels is left alone") {
  // Without a bias or residual, parts of boxes are stored as boxes, too.
  check(images(1, 3, 24, 100, {4, 7}, {2, 2}), Dtype::bf16, p128c128, {0, 0, 4});
  check(images(2, 3, 24, 104, {4, 7}, {2, 2}), Dtype::bf16, p128c128, kPadded);
}

TEST_CASE("conv by wgmma: volumes, whose members are channels of tensor maps") {
  // Of 96 channels half of the last box is a neighbour's.
  const auto [tile, batch, out] = GENERATE(
      std::tuple{p128c64, 5, 72}, std::tuple{p256c64, 8, 64}, std::tuple{p128c128, 5, 100},
      std::tuple{p256c128, 6, 128}, std::tuple{h256c64, 9, 64}, std::tuple{h256c128, 9, 130});
  ConvProblem p = images(3, batch, 96, out, {4, 9}, {1, 3});
  p.padding = {0, 1};
  p.depth = {.input = 3, .kernel = 2, .padding = 1};
  p.epilogue = {.has_bias = true, .activation = Activation::relu};
  p.epilogue.residual = Residual::before_activation;
  check(p, Dtype::bf16, tile, kPadded, 1);
}

TEST_CASE("conv by wgmma: volumes in steps, a single member's of any channels, in fp32") {
  ConvProblem p = images(2, 2, 32, 40, {7, 6}, {2, 3});
  p.padding = {1, 1}, p.stride = {2, 1};
  p.depth = {.input = 6, .kernel = 2, .stride = 2, .padding = 2, .dilation = 3};
  SECTION("steps") {
    check(p, Dtype::fp16, p128c64);
  }
  SECTION("tf32") {
    p.in_channels = 48;
    check(p, Dtype::fp32, p256c64);
  }
  SECTION("one member") {
    p.num_members = 1, p.in_channels = 40, p.out_channels = 72;
    check(p, Dtype::bf16, p128c64, kPadded);
  }
}

TEST_CASE("conv by wgmma: a member that is NaN reaches no other") {
  ConvProblem p = images(3, 2, 8, 9, {4, 5}, {3, 3});
  p.padding = {1, 1};
  p.epilogue.has_bias = true;
  check(p, Dtype::bf16, p128c64, kPacked, 1);
}

TEST_CASE("conv by wgmma: neither tile nor strides nor other members change a bit") {
  const Context context = require_wgmma();
  ConvProblem p = images(2, 3, 72, 16, {5, 6}, {3, 3});
  if (GENERATE(false, true)) p.in_channels = 96, p.depth = {.input = 3, .kernel = 2};
  WholeConv made(p);
  made.x = uniform(num_elements(made.x_shape), -1, 1, 1);
  made.weight = uniform(num_elements(made.weight_shape), -1, 1, 2);
  const Reals first = run(context, made, Dtype::fp16, p128c64);
  for (const ConvWgmmaTile tile : kernels::kConvWgmmaTiles)
    CHECK(run(context, made, Dtype::fp16, tile, kPadded) == first);
  p.num_members = 1;
  WholeConv alone(p);
  alone.x = of_member(made.x, made.x_shape, p.layout, 1, 2);
  alone.weight.assign(made.weight.begin() + num_elements(alone.weight_shape), made.weight.end());
  CHECK(run(context, alone, Dtype::fp16, p128c128) ==
        of_member(first, made.y_shape, p.layout, 1, 2));
}

TEST_CASE("conv by wgmma: where an address has no tensor map, implicit_gemm stands in") {
  const Context context = require_wgmma();
  ConvProblem p = images(2, 2, 24, 40, {4, 7}, {2, 2});
  const WholeConv made(p);
  const Reals y =
      run_whole_conv(context, made, Dtype::bf16, kMisaligned,
                     [&](const auto& problem, const auto& arguments, cudaStream_t stream) {
                       CHECK_FALSE(has_conv_maps(arguments));
                       make_conv_wgmma(context, problem).run(arguments, {.stream = Stream(stream)});
                     });
  CHECK(of_member(y, made.y_shape, p.layout, 1, 2) == made.expected(1));
}

TEST_CASE("conv by wgmma: refuses what no grid can hold, and rectangles of other tiles") {
  kernels::ConvWgmmaParams params{};
  params.conv = conv_params(complete_conv_problem(images(1, 1, 8, 8, {1, 1}, {1, 1})));
  params.rectangle = {1, 16, 8};
  params.num_multiprocessors = 2;
  const auto launch = [&](ConvWgmmaTile tile, Dtype dtype) {
    return kernels::launch_conv_wgmma(params, dtype, tile, nullptr);
  };
  CHECK(launch(p256c64, Dtype::fp16) == cudaErrorInvalidConfiguration);
  CHECK(launch(p128c64, Dtype::fp8_e4m3) == cudaErrorInvalidValue);
  params.rectangle = {8, 8, 4}, params.box = {7, 10};  // more than its shared memory holds
  CHECK(launch(h256c64, Dtype::fp16) == cudaErrorInvalidConfiguration);
  params.rectangle = {16, 8, 2}, params.box = {4, 10};  // no groups of eight batch rows
  CHECK(launch(h256c64, Dtype::fp16) == cudaErrorInvalidConfiguration);
  params.rectangle = {1, 16, 8};
  params.conv.num_members = int64_t{1} << 31;
  CHECK(launch(p128c64, Dtype::bf16) == cudaErrorInvalidConfiguration);
  params.conv.batch = 0;
  CHECK(launch(p128c64, Dtype::fp32) == cudaSuccess);
}

}  // namespace
}  // namespace wide::test
