// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What implicit_gemm takes, and with which tiles, on devices that are not at hand.
#include "host/conv/conv_implicit_gemm.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_strategy.hpp"
#include "verify/support/known_devices.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using enum kernels::ConvGemmTile;

ConvProblem problem_of(int64_t num_members, int64_t channels, int64_t size, Dtype dtype) {
  ConvProblem p{.num_members = num_members,
                .batch = 8,
                .in_channels = channels,
                .out_channels = channels,
                .input = {size, size},
                .kernel = {3, 3},
                .padding = {1, 1},
                .layout = ChannelLayout::channels_last,
                .dtype = dtype};
  return p;
}

std::string reason(const ConvProblem& problem, const DeviceInfo& device = kH200) {
  return conv_implicit_gemm_unsupported_reason(complete_conv_problem(problem), device);
}

TEST_CASE("implicit_gemm says what it cannot run") {
  ConvProblem p = problem_of(4, 64, 32, Dtype::bf16);
  CHECK(reason(p) == "");
  CHECK(reason(p, kA100) == "");
  CHECK_THAT(reason(p, kT4), ContainsSubstring("compute capability 80, the device has 75"));
  p.groups = 16;
  p.kernel = {1, 1}, p.padding = {0, 0};
  CHECK_THAT(reason(p), ContainsSubstring("sums of 8 terms, these have 4"));
  p.groups = 64, p.kernel = {3, 3};
  CHECK_THAT(reason(p), ContainsSubstring("8 channels a group, these have 1 and 1"));
  p = problem_of(4, 64, 32, Dtype::bf16);
  p.in_channels = 3;
  CHECK(reason(p) == "");
  p = problem_of(4, 64, 32, Dtype::fp32);
  CHECK_THAT(reason(p), ContainsSubstring("tf32"));
  p.allow_tf32 = true;
  CHECK(reason(p) == "");
  p.layout = ChannelLayout::channels_first;
  p.input = {1, int64_t{1} << 26};
  p.kernel = {1, 3};
  p.padding = {0, 0};
  CHECK_THAT(reason(p), ContainsSubstring("2^30 elements"));
  p = problem_of(1 << 16, 16, 256, Dtype::bf16);  // 128 pixels a tile at the most
  p.batch = 64;
  CHECK(reason(p) == "the output has more than 2^31 - 1 tiles");
  p.num_members = 1 << 8;
  CHECK(reason(p) == "");
}

TEST_CASE("implicit_gemm's tiles fill the device, and no more channels than there are") {
  const auto tiles = [](int64_t num_members, int64_t channels, int64_t size,
                        Dtype dtype = Dtype::fp16) {
    return choose_conv_gemm_tiles(
        complete_conv_problem(problem_of(num_members, channels, size, dtype)), kH200);
  };
  CHECK(tiles(32, 32, 32).vector == p128c32);
  CHECK(tiles(32, 32, 32).gather == p128c32);
  CHECK(tiles(32, 64, 32).vector == p64c64);
  CHECK(tiles(32, 64, 32).gather == p64c64);
  CHECK(tiles(32, 256, 32).vector == p128c128);
  CHECK(tiles(32, 256, 32).gather == p64c128);
  // A few small tiles are done sooner than fewer large ones.
  CHECK(tiles(1, 128, 16).vector == p64c64);
  // Its sums leave no registers for 32-bit operands.
  CHECK(tiles(32, 256, 32, Dtype::fp32).vector == p64c64);
}

TEST_CASE("auto takes implicit_gemm where it is proved, for signals and images, and fills tiles") {
  const std::array proved{VerifiedStrategy{"conv1d", "implicit_gemm", 90},
                          VerifiedStrategy{"conv2d", "implicit_gemm", 90}};
  const auto takes_it = [](const ConvProblem& problem, std::span<const VerifiedStrategy> verified,
                           const DeviceInfo& device = kH200) {
    const ConvProblem p = complete_conv_problem(problem);
    return choose_conv_strategy(p, device, "auto", verified,
                                [](const ConvStrategy&, std::string_view) { return "no"; })
               .strategy->name == "implicit_gemm";
  };
  ConvProblem p = problem_of(4, 64, 32, Dtype::bf16);
  CHECK(takes_it(p, proved));
  CHECK_FALSE(takes_it(p, std::span(proved).first(1)));
  CHECK_FALSE(takes_it(p, std::span(proved).last(1)));
  CHECK_FALSE(takes_it(p, proved, kA100));
  p.in_channels = 3;  // of an image's first layer: few channels, many terms
  CHECK(takes_it(p, proved));
  p.kernel = {1, 3}, p.padding = {0, 1};
  CHECK_FALSE(takes_it(p, proved));
  p = problem_of(4, 64, 32, Dtype::bf16);
  p.out_channels = 16;  // half a tile, but x by vectors
  CHECK(takes_it(p, proved));
  p.groups = 4;
  p.out_channels = 64;
  CHECK(takes_it(p, proved));
  p.layout = ChannelLayout::channels_first;
  CHECK_FALSE(takes_it(p, proved));
  p.layout = ChannelLayout::channels_last;
  p.in_channels = 4 * 12;  // not whole vectors
  CHECK_FALSE(takes_it(p, proved));
  p.in_channels = 64, p.out_channels = 4 * 15;
  CHECK_FALSE(takes_it(p, proved));
  p = problem_of(4, 64, 32, Dtype::fp32);
  p.groups = 16, p.allow_tf32 = true;  // vectors of four channels
  p.out_channels = 256;
  CHECK_FALSE(takes_it(p, proved));
  CHECK_FALSE(takes_it(problem_of(4, 64, 32, Dtype::fp32), proved));
}

TEST_CASE("auto takes wgmma for single taps, too, where it is proved") {
  const auto taken = [](const ConvProblem& problem, bool has_wgmma) {
    constexpr std::array kProved{
        VerifiedStrategy{"conv1d", "pointwise", 90}, VerifiedStrategy{"conv2d", "pointwise", 90},
        VerifiedStrategy{"conv1d", "wgmma", 90}, VerifiedStrategy{"conv2d", "wgmma", 90}};
    return std::string(
        choose_conv_strategy(complete_conv_problem(problem), kH200, "auto",
                             std::span(kProved).first(has_wgmma ? 4 : 2),
                             [](const ConvStrategy&, std::string_view) { return "no"; })
            .strategy->name);
  };
  ConvProblem p = problem_of(4, 64, 32, Dtype::bf16);
  p.kernel = {1, 1}, p.padding = {0, 0};
  CHECK(taken(p, true) == "wgmma");
  CHECK(taken(p, false) == "pointwise");
  p.in_channels = 16;  // of 128 bytes of channels too few are of use
  CHECK(taken(p, true) == "pointwise");
}

}  // namespace
}  // namespace wide::test
