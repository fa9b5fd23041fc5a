// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv of patches, whose rows and columns become planes and channels, on every device at hand.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "verify/conv/conv_case.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/refusals.hpp"

namespace wide::test {
namespace {

/// Of two rows and three columns, and some positions that are left over.
ConvProblem patches(int64_t edge, int64_t apart, int64_t padding) {
  return {.num_members = 2,
          .batch = 1,
          .in_channels = 3,
          .out_channels = 10,
          .input = {2 * edge + 3, 3 * edge + 2},
          .kernel = {edge, edge},
          .stride = {edge + apart, edge + apart},
          .padding = {padding, 0}};
}

TEST_CASE("conv: patches, row by row of the kernel or by as many positions as it has taps") {
  const int64_t edge = GENERATE(2, 8, 14, 16), apart = GENERATE(0, 1), padding = GENERATE(0, 1);
  INFO("patches of " << edge << ", " << apart << " apart, padding " << padding);
  ConvProblem p = patches(edge, apart, padding);
  for (const Context& context : devices_at_hand()) {
    for (const ChannelLayout layout :
         {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        p.layout = layout;
        p.dtype = dtype;
        const bool is_cuda = context.device().type == DeviceType::cuda;
        const bool has_room = context.info().shared_bytes_per_block >= kA100.shared_bytes_per_block;
        const auto direct = [&] { make_conv_plan(context, p, {.strategy = "direct"}); };
        // Padding comes between rows, and of 99 KiB all of them together take more.
        if (is_cuda && edge > 8 && padding > 0 && !has_room) {
          CHECK_THAT(message_of(ErrorCode::unsupported, direct),
                     Catch::Matchers::ContainsSubstring("shared memory"));
          continue;
        }
        if (is_cuda) direct();  // does not refuse them
        CHECK(check_conv(context, p) >= 2);
      }
    }
  }
}

TEST_CASE("conv: patches of images in either layout, of one member and of two") {
  ConvProblem p = patches(8, 0, 0);
  p.num_members = GENERATE(1, 2);
  p.batch = 2;
  p.dtype = GENERATE(Dtype::fp32, Dtype::fp16);
  p.layout = GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  // On a line of its own: of one line Catch2 has one generator, and both layouts would be alike.
  p.x_layout = GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  for (const Context& context : devices_at_hand()) CHECK(check_conv(context, p) >= 2);
}

}  // namespace
}  // namespace wide::test
