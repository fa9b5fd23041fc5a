// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What conv's wgmma takes, and with which tiles, on devices that are not at hand.
#include "host/conv/conv_wgmma.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_strategy.hpp"
#include "verify/support/known_devices.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using kernels::ConvRectangle;
using enum kernels::ConvWgmmaTile;

ConvProblem problem_of(int64_t num_members, int64_t channels, int64_t size, int64_t batch = 8) {
  return {.num_members = num_members,
          .batch = batch,
          .in_channels = channels,
          .out_channels = channels,
          .input = {size, size},
          .kernel = {3, 3},
          .padding = {1, 1},
          .layout = ChannelLayout::channels_last,
          .dtype = Dtype::bf16};
}

std::string reason(const ConvProblem& problem, const DeviceInfo& device = kH200) {
  return conv_wgmma_unsupported_reason(complete_conv_problem(problem), device);
}

TEST_CASE("conv's wgmma takes volumes whose members end with half a box") {
  ConvProblem like = problem_of(4, 96, 8);
  like.depth = {.input = 4, .kernel = 3, .padding = 1};
  CHECK(reason(like) == "");
  ConvProblem p = like;
  p.in_channels = 72;
  CHECK_THAT(reason(p), ContainsSubstring("of volumes it takes members side by side, of a multiple "
                                          "of 32 channels each, x's have 72 and lie 72 apart"));
  p.num_members = 1;
  CHECK(reason(p) == "");
  p = complete_conv_problem(like);
  p.x.member = 0;  // one x for all
  CHECK(reason(p) == "");
  p.x.member = 104, p.x.column = 4 * 104, p.x.row = 8 * p.x.column;
  CHECK_THAT(reason(p), ContainsSubstring("x's have 96 and lie 104 apart"));
  p = complete_conv_problem(like);
  p.weight.member += 8;
  CHECK_THAT(reason(p), ContainsSubstring("members' weights one after another"));
  p = complete_conv_problem(like);
  p.depth.x_stride += 4;
  CHECK_THAT(reason(p), ContainsSubstring("x has a plane stride of"));
  // Boxes of y are cut off at the end of all channels, not of a member's.
  CHECK_FALSE(conv_wgmma_stores_boxes(complete_conv_problem(like)));
  like.out_channels = 128;
  CHECK(conv_wgmma_stores_boxes(complete_conv_problem(like)));
  like.out_channels = 96, like.num_members = 1;
  CHECK(conv_wgmma_stores_boxes(complete_conv_problem(like)));
  // A box of x for each plane of the kernel: the tile is chosen as an image's.
  like = problem_of(32, 64, 32);
  const auto tile = choose_conv_wgmma_tile(complete_conv_problem(like), kH200);
  like.depth = {.input = 8, .kernel = 3, .padding = 1};
  CHECK(choose_conv_wgmma_tile(complete_conv_problem(like), kH200) == tile);
}

TEST_CASE("conv's wgmma says what it cannot run") {
  const ConvProblem like = problem_of(4, 64, 32);
  ConvProblem p = like;
  CHECK(reason(p) == "");
  CHECK_THAT(reason(p, kA100), ContainsSubstring("9.0 alone, NVIDIA A100 has 8.0"));
  p.layout = ChannelLayout::channels_first;
  CHECK_THAT(reason(p), ContainsSubstring("takes channels_last, the problem has channels_first"));
  p = like, p.x_layout = ChannelLayout::channels_first;
  CHECK_THAT(reason(p), ContainsSubstring("takes channels_last, x has channels_first"));
  p = like, p.groups = 2;
  CHECK_THAT(reason(p), ContainsSubstring("one group of channels, the problem has 2"));
  p = like, p.dtype = Dtype::fp32;
  CHECK_THAT(reason(p), ContainsSubstring("tf32"));
  p.allow_tf32 = true;
  CHECK(reason(p) == "");
  p = like, p.in_channels = 20;
  CHECK_THAT(reason(p), ContainsSubstring("x has a member stride of 20, tensor maps need multiples "
                                          "of 8 elements"));
  // What nobody steps along needs no stride: one member, one tap, rows that are padded.
  p.num_members = 1, p.kernel = {1, 1}, p.out_channels = 1;
  CHECK_THAT(reason(p), ContainsSubstring("x has a column stride of 20"));
  p.x = {32 * 32 * 24, 20, 1, 32 * 24, 24};
  CHECK(reason(p) == "");
  p = like, p.x = complete_conv_problem(p).x;
  p.x.batch = 0;
  CHECK_THAT(reason(p), ContainsSubstring("x has a batch stride of 0"));
  p.x.batch = int64_t{1} << 39;
  CHECK_THAT(reason(p), ContainsSubstring("below 2^40 bytes"));
  p.x.batch -= 8, p.x.member = 0;  // shared
  CHECK(reason(p) == "");
  p = like, p.weight = complete_conv_problem(p).weight;
  p.weight.column = 68;
  CHECK_THAT(reason(p), ContainsSubstring("weight has a column stride of 68"));
  p = like, p.stride = {1, 9};
  CHECK_THAT(reason(p), ContainsSubstring("at most 8 positions, stride is {height 1, width 9}"));
  p.input.width = 3, p.padding.width = 0;  // one column of outputs: nothing is stepped over
  CHECK(reason(p) == "");
  p = problem_of(int64_t{1} << 31, 8, 4);
  p.kernel = {1, 1}, p.padding = {0, 0};
  CHECK_THAT(reason(p), ContainsSubstring("2^31 - 1 tiles"));    // implicit_gemm's, which stands in
  p = problem_of(1, 8, 1, std::numeric_limits<int32_t>::max());  // a rectangle's batch goes past it
  p.input = {1, 1}, p.kernel = {1, 1}, p.padding = {0, 0};
  CHECK_THAT(reason(p), ContainsSubstring("with 32 bits"));
}

TEST_CASE("conv's wgmma covers y with the fewest rectangles, of the fewest positions of x") {
  const auto rectangle = [](PerAxis size, int64_t batch, kernels::ConvWgmmaTile tile) {
    ConvProblem p = problem_of(1, 64, 1, batch);
    p.input = size;
    return conv_wgmma_rectangle(complete_conv_problem(p), tile);
  };
  CHECK(rectangle({32, 32}, 8, p128c64) == ConvRectangle{1, 16, 8});
  CHECK(rectangle({32, 32}, 8, p256c64) == ConvRectangle{1, 16, 16});
  CHECK(rectangle({56, 56}, 8, p128c64) == ConvRectangle{2, 8, 8});
  CHECK(rectangle({28, 28}, 16, p256c64) == ConvRectangle{16, 4, 4});
  CHECK(rectangle({14, 14}, 64, p128c64) == ConvRectangle{32, 2, 2});
  CHECK(rectangle({1, 1}, 300, p128c64) == ConvRectangle{128, 1, 1});
  CHECK(rectangle({5, 9}, 1, p128c64) == ConvRectangle{1, 16, 8});
  // A box is at most 256 positions wide.
  ConvProblem p = problem_of(1, 64, 1, 1);
  p.input = {1, 4096}, p.kernel = {1, 3}, p.padding = {0, 0};
  CHECK(conv_wgmma_rectangle(complete_conv_problem(p), p128c64) == ConvRectangle{1, 128, 1});
  p.stride = {1, 2};
  CHECK(conv_wgmma_rectangle(complete_conv_problem(p), p128c64) == ConvRectangle{1, 128, 1});
  p.stride = {1, 3};
  CHECK(conv_wgmma_rectangle(complete_conv_problem(p), p128c64).columns == 64);
}

TEST_CASE("conv's wgmma keeps x for all taps where their box fits, in whole groups of batch rows") {
  ConvProblem p = problem_of(4, 64, 32);
  const auto rectangle = [&] { return conv_wgmma_rectangle(complete_conv_problem(p), h256c64); };
  CHECK(rectangle() == ConvRectangle{8, 8, 4});  // 10 x 6 positions
  p.dilation = {2, 1}, p.padding = {2, 1};       // 10 x 8
  CHECK(rectangle() == ConvRectangle{});
  p.kernel = {1, 5}, p.padding = {0, 2};
  CHECK(rectangle() == ConvRectangle{8, 32, 1});
  p.kernel = {2, 2}, p.padding = {0, 0}, p.dilation = {1, 1}, p.input = {3, 33};
  CHECK(rectangle() == ConvRectangle{8, 16, 2});
  p.input = {1, 32};
  p.kernel = {1, 30}, p.padding = {0, 15};  // 61 positions
  CHECK(rectangle() == ConvRectangle{});
  p.kernel = {1, 3}, p.padding = {0, 1}, p.stride = {2, 1};  // one row: nobody steps along
  CHECK(rectangle() == ConvRectangle{8, 32, 1});
  p.kernel = {1, 1}, p.padding = {0, 0}, p.stride = {1, 2}, p.input = {4, 31};  // 15 x 4
  CHECK(rectangle() == ConvRectangle{});
}

TEST_CASE("conv's wgmma chooses tiles by waves of blocks, and by what they read") {
  const auto tile = [](const ConvProblem& p) {
    return choose_conv_wgmma_tile(complete_conv_problem(p), kH200);
  };
  CHECK(tile(problem_of(32, 64, 32)) == h256c64);
  CHECK(tile(problem_of(32, 128, 32)) == h256c128);
  // Of four batch rows half a group would be products of nothing.
  CHECK(tile(problem_of(32, 64, 32, 4)) == p256c64);
  CHECK(tile(problem_of(32, 128, 32, 4)) == p256c128);
  CHECK(tile(problem_of(1, 128, 32, 4)) == p128c64);  // 64 tiles, of 132 that run at a time
  CHECK(tile(problem_of(4, 128, 32, 4)) == p128c128);
  ConvProblem p = problem_of(32, 64, 32);
  p.kernel = {1, 1}, p.padding = {0, 0};  // hardly any products to hide stores behind
  CHECK(tile(p) == p128c64);
}

TEST_CASE("conv's wgmma stores boxes where y's strides are a tensor map's") {
  ConvProblem p = complete_conv_problem(problem_of(2, 64, 8));
  CHECK(conv_wgmma_stores_boxes(p));
  p.y.member = 60;
  CHECK_FALSE(conv_wgmma_stores_boxes(p));
  p.num_members = 1;
  CHECK(conv_wgmma_stores_boxes(p));
  p.y.row += 4;
  CHECK_FALSE(conv_wgmma_stores_boxes(p));
  p = complete_conv_problem(problem_of(2, 64, 8));
  p.out_channels = 60;  // in places for 64
  CHECK_FALSE(conv_wgmma_stores_boxes(p));
  p.out_channels = 56;
  CHECK(conv_wgmma_stores_boxes(p));
  p = complete_conv_problem(problem_of(2, 64, 8));
  p.dtype = Dtype::fp32;
  CHECK_FALSE(conv_wgmma_stores_boxes(p));
}

TEST_CASE("auto takes conv's wgmma where it is proved, for signals and images, and fills stages") {
  const std::array proved{VerifiedStrategy{"conv1d", "wgmma", 90},
                          VerifiedStrategy{"conv2d", "wgmma", 90}};
  const auto takes_it = [](const ConvProblem& problem, std::span<const VerifiedStrategy> verified) {
    return choose_conv_strategy(complete_conv_problem(problem), kH200, "auto", verified,
                                [](const ConvStrategy&, std::string_view) { return "no"; })
               .strategy->name == "wgmma";
  };
  ConvProblem p = problem_of(4, 64, 32);
  CHECK(takes_it(p, proved));
  CHECK_FALSE(takes_it(p, std::span(proved).first(1)));
  p.in_channels = 24;  // of 32 that are multiplied
  CHECK(takes_it(p, proved));
  p.in_channels = 16;
  CHECK_FALSE(takes_it(p, proved));
  p = problem_of(4, 64, 32), p.out_channels = 40;
  CHECK_FALSE(takes_it(p, proved));
}

}  // namespace
}  // namespace wide::test
