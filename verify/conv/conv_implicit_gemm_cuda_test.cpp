// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv's implicit_gemm, every tile in both forms: rings that come round, ragged edges, and
// everything that shifts where a term lies. Operands are whole numbers, so that results must be
// exact whatever the order of a sum. Skipped without a device; sizes suit a simulated one.
#include <cuda_runtime_api.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>

#include "host/conv/conv_implicit_gemm.hpp"
#include "host/conv/conv_params.hpp"
#include "kernels/conv/conv_implicit_gemm.hpp"
#include "verify/conv/conv_whole_case.hpp"
#include "wide/convert.hpp"

namespace wide::test {
namespace {

using kernels::ConvGemmTile;

Reals run(const Context& context, const WholeConv& made, Dtype dtype,
          const kernels::ConvGemmTiles& tiles, const Placement& at) {
  return run_whole_conv(
      context, made, dtype, at,
      [&](const auto& problem, const auto& arguments, cudaStream_t stream) {
        REQUIRE(kernels::launch_conv_implicit_gemm(conv_params(as_conv_gemm(problem), arguments),
                                                   dtype, tiles, stream) == cudaSuccess);
      });
}

/// By every tile, in every dtype, and once where channels last can only be gathered. Member
/// `poisoned`, where there is one, is NaN and has to stay so.
void check_all(const ConvProblem& like, int64_t poisoned = -1) {
  const Context context = require_cuda();
  WholeConv made(like);
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
      check_members(y, made, like, expected, poisoned);
    }
  }
}

ChannelLayout any_layout() {
  return GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
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

TEST_CASE("conv by implicit_gemm: a first layer, of images that lie otherwise than y") {
  ConvProblem p{.num_members = 2, .batch = 2, .in_channels = 3};
  p.out_channels = GENERATE(36, 10);  // four channels at a time, or one
  p.input = {9, 13}, p.kernel = {5, 5}, p.stride = {2, 2}, p.padding = {2, 2};
  p.epilogue = {.has_bias = true, .activation = Activation::relu};
  p.epilogue.residual = Residual::before_activation;
  p.layout = any_layout();
  // On a line of its own: of one line Catch2 has one generator, and both layouts would be alike.
  p.x_layout = GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  check_all(p);
}

TEST_CASE("conv by implicit_gemm: taps in one line, of channels that lie together in x alone") {
  ConvProblem p{.num_members = 2, .batch = 2, .in_channels = 16, .out_channels = 24};
  p.input = {9, 7};
  p.layout = any_layout();
  // On a line of its own: of one line Catch2 has one generator, and both layouts would be alike.
  p.x_layout = GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  SECTION("of a column") {
    p.kernel = {3, 1}, p.padding = {1, 0};
  }
  SECTION("of a row") {
    p.kernel = {1, 3}, p.padding = {0, 1};
  }
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

TEST_CASE("conv by implicit_gemm: volumes, whose terms have an axis more") {
  ConvProblem p{.num_members = 2, .batch = 2, .in_channels = 16, .out_channels = 40};
  p.input = {4, 5}, p.kernel = {2, 3}, p.padding = {0, 1};
  p.epilogue = {.has_bias = true, .activation = Activation::relu};
  p.epilogue.residual = Residual::before_activation;
  p.layout = any_layout();
  SECTION("planes of padding, planes that are left out") {
    p.depth = {.input = 5, .kernel = 3, .stride = 2, .padding = 2, .dilation = 2};
  }
  SECTION("channels that are no vectors, in groups") {
    p.in_channels = 10, p.out_channels = 20, p.groups = 2;
    p.depth = {.input = 3, .kernel = 2};
  }
  SECTION("from the other layout") {
    const bool is_first = p.layout == ChannelLayout::channels_first;
    p.x_layout = is_first ? ChannelLayout::channels_last : ChannelLayout::channels_first;
    p.depth = {.input = 3, .kernel = 3, .padding = 1};
  }
  check_all(p);
}

TEST_CASE("conv by implicit_gemm: patches, whose columns are channels") {
  ConvProblem p{.num_members = GENERATE(1, 2), .batch = 2, .in_channels = 3, .out_channels = 40};
  p.input = {7, 33}, p.kernel = {3, 8}, p.stride = {2, 8}, p.padding = {1, 0};
  p.epilogue = {.has_bias = true, .activation = Activation::relu};
  p.epilogue.residual = Residual::before_activation;
  p.layout = any_layout();
  // On a line of its own: of one line Catch2 has one generator, and both layouts would be alike.
  p.x_layout = GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  SECTION("side by side") {}
  SECTION("with columns in between") {
    p.stride.width = 16;
  }
  check_all(p);
}

TEST_CASE("conv by implicit_gemm: a member that is NaN reaches no other") {
  ConvProblem p{.num_members = 3, .batch = 1, .in_channels = 8, .out_channels = 9};
  p.input = {4, 5}, p.kernel = {3, 3}, p.padding = {1, 1};
  if (GENERATE(false, true)) p.depth = {.input = 2, .kernel = 3, .padding = 1};
  p.epilogue.has_bias = true;
  p.layout = any_layout();
  check_all(p, 1);
}

TEST_CASE("conv by implicit_gemm: neither tile nor form nor strides change a bit") {
  const Context context = require_cuda();
  ConvProblem p{.num_members = 2, .batch = 1, .in_channels = 40, .out_channels = 16};
  p.input = {5, 6}, p.kernel = {3, 3};
  p.layout = ChannelLayout::channels_last;
  SECTION("images") {}
  SECTION("volumes") {
    p.depth = {.input = 4, .kernel = 2};
  }
  SECTION("patches") {
    p.layout = ChannelLayout::channels_first;
    p.input = {5, 32}, p.kernel = {3, 8}, p.stride = {1, 8};
  }
  WholeConv made(p);
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
