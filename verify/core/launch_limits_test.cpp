// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Problems of more blocks than a grid has: refused, or run member after member, when they are
// planned. Nothing here is as large as what it describes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "host/attention/flash_attention_strategy.hpp"
#include "host/core/wide_plan.hpp"
#include "host/pooling/interpolate_params.hpp"
#include "host/pooling/pooling_params.hpp"
#include "kernels/norm/norm_blocks.hpp"
#include "kernels/pointwise/ensemble_blocks.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/batchnorm.hpp"
#include "wide/context.hpp"
#include "wide/error.hpp"
#include "wide/groupnorm.hpp"
#include "wide/interpolate.hpp"
#include "wide/pooling.hpp"
#include "wide/softmax.hpp"

using namespace wide;
using Catch::Matchers::Message;

namespace {

constexpr int64_t kTooMany = kernels::kMaxGridBlocks + 1;

}  // namespace

TEST_CASE("launch limits: products of blocks do not overflow") {
  constexpr int64_t kHuge = int64_t{1} << 62;
  CHECK(kernels::block_product({}) == 1);
  CHECK(kernels::block_product({3, 5, 7}) == 105);
  CHECK(kernels::block_product({kernels::kMaxGridBlocks, 1}) == kernels::kMaxGridBlocks);
  CHECK(kernels::block_product({1 << 16, 1 << 15}) == kTooMany);
  CHECK(kernels::block_product({kHuge, kHuge, kHuge}) == kTooMany);
  CHECK(kernels::block_product({kHuge, kHuge, 0}) == 0);
}

TEST_CASE("launch limits: what one launch cannot hold runs member after member, or not at all") {
  const LaunchRefusal all = launch_refusal("blocks", 4, [](int64_t members) {
    return members == 4 ? kTooMany : kernels::kMaxGridBlocks;
  });
  const auto choose = [](std::string_view name, bool is_verified, const LaunchRefusal& launches,
                         const VendorRefusal& cudnn = nullptr) {
    return choose_wide_strategy("softmax", test::kH200, name, is_verified, launches, {cudnn});
  };
  CHECK_THROWS_MATCHES(
      choose("wide", true, all), Error,
      Message("softmax: strategy wide cannot run this problem: one launch for all members has more "
              "than 2^31 - 1 blocks"));
  CHECK(choose("sequential", true, all).strategy == WideStrategy::sequential);
  CHECK(choose("auto", true, all).explain ==
        "sequential: a launch per member of wide; wide: one launch for all members has more than "
        "2^31 - 1 blocks");
  CHECK(choose("auto", true, all, [](std::string_view) { return ""; }).explain ==
        "cudnn: one call for all members; wide: one launch for all members has more than 2^31 - 1 "
        "blocks");
  CHECK(choose("auto", true, all, [](std::string_view) { return "no engine"; }).explain ==
        "sequential: member after member; wide: one launch for all members has more than 2^31 - 1 "
        "blocks; cudnn: no engine");

  const LaunchRefusal each = launch_refusal("blocks", 4, [](int64_t) { return kTooMany; });
  CHECK_THROWS_MATCHES(
      choose("sequential", true, each), Error,
      Message(
          "softmax: strategy sequential cannot run this problem: a launch for a member has more "
          "than 2^31 - 1 blocks"));
  CHECK_THROWS_MATCHES(
      choose("auto", true, each), Error,
      Message("softmax: no strategy for \"auto\"; wide: one launch for all members has more than "
              "2^31 - 1 blocks; sequential: a launch for a member has more than 2^31 - 1 blocks"));
  CHECK(choose("cudnn", true, each, [](std::string_view) { return ""; }).strategy ==
        WideStrategy::cudnn);
  const auto on_cpu = [&](const char* name) {
    return choose_wide_strategy("softmax", DeviceInfo{}, name, true, each).strategy;
  };
  CHECK(on_cpu("auto") == WideStrategy::wide);
  CHECK(on_cpu("wide") == WideStrategy::wide);
  CHECK(on_cpu("sequential") == WideStrategy::sequential);
}

TEST_CASE("launch limits: rows") {
  const auto refusal = [](int64_t members, int64_t rows, int64_t features) {
    return row_launches(SoftmaxProblem{.num_members = members, .rows = rows, .features = features});
  };
  const int64_t most = int64_t{16} * kernels::kMaxGridBlocks;  // 16 rows of 129 to 256 features
  CHECK(refusal(1, most, 256).sequential.empty());
  CHECK(refusal(1, most + 1, 256).sequential ==
        "a launch for a member has more than 2^31 - 1 blocks");
  CHECK(refusal(1, kernels::kMaxGridBlocks, 1025).sequential.empty());
  CHECK(!refusal(1, kTooMany, 1025).sequential.empty());
  // 32 rows of up to 64.
  CHECK(refusal(1024, (1 << 26) + 1, 2).sequential.empty());
  CHECK(refusal(1024, (1 << 26) + 1, 2).wide ==
        "one launch for all members has more than 2^31 - 1 blocks");
  CHECK(refusal(1024, (1 << 26) - 1, 2).wide.empty());
  CHECK(refusal(int64_t{1} << 40, int64_t{1} << 40, 0).wide.empty());
}

TEST_CASE("launch limits: few short rows have blocks of one warp") {
  CHECK(kernels::row_blocks(4, 1024, 128) == 1024);
  CHECK(kernels::row_blocks(1, 4097, 128) == 257);
  CHECK(kernels::row_blocks(1, 8, 64) == 1);
  CHECK(kernels::row_blocks(1, 9, 64) == 2);
  CHECK(kernels::row_blocks(3, 1, 512) == 2);
  CHECK(kernels::row_blocks(3, 1, 257) == 3);
  CHECK(kernels::row_blocks(3, 1, 1024) == 3);
  CHECK(kernels::row_blocks(3, 5, 1025) == 15);
  for (const int64_t features : {1, 64, 65, 128, 129, 256, 257, 512, 513, 1024}) {
    const int64_t lanes = kernels::short_row_lanes(features);
    CHECK(lanes * kernels::short_row_floats(features) >= features);
    CHECK(32 % lanes == 0);
  }
}

TEST_CASE("launch limits: groupnorm's groups and batchnorm's channels") {
  GroupnormProblem groups{.num_members = 1024, .batch = 65536, .channels = 64, .groups = 32};
  groups.width = 1;
  groups.height = 1;
  CHECK(kernels::groupnorm_slices(groups, 1024) == kTooMany);
  CHECK(kernels::groupnorm_slices(groups, 1023) == int64_t{65536} * 1023 * 32);
  groups.width = 0;
  CHECK(kernels::groupnorm_slices(groups, 1024) == 0);

  BatchnormProblem channels{.num_members = 1 << 16, .batch = 1, .channels = 1 << 15};
  channels.height = 1;
  channels.width = 8 * 1024;
  CHECK(kernels::batchnorm_slices(channels, channels.num_members) == kTooMany);
  CHECK(kernels::batchnorm_slices(channels, 1) == 1 << 15);
  CHECK(kernels::batchnorm_eval_blocks(channels, 8) == 1);
  CHECK(kernels::batchnorm_eval_blocks(channels, 4) == 2);
  channels.batch = 3;
  channels.width = 8 * 1024 - 7;  // the last chunk of each image is short
  CHECK(kernels::batchnorm_eval_blocks(channels, 8) == 3);
  channels.batch = 0;
  CHECK(kernels::batchnorm_slices(channels, channels.num_members) == 0);
}

TEST_CASE("launch limits: flash_attention's blocks") {
  using enum FlashAttentionStrategy;
  const auto reason = [](FlashAttentionStrategy strategy, const FlashAttentionProblem& p) {
    return flash_attention_unsupported_reason(strategy, p, test::kH200);
  };
  FlashAttentionProblem p{.num_members = 1024, .batch = 65536, .seq = 1, .kv_seq = 1, .heads = 32};
  p.head_dim = 8;
  p.dtype = Dtype::fp16;
  for (const FlashAttentionStrategy strategy : {short_keys, tensor_core, wgmma, decode}) {
    CHECK(reason(strategy, p) == "a launch has more than 2^31 - 1 blocks");
  }
  CHECK(reason(sequential, p).empty());
  const VerifiedStrategy all[] = {{"flash_attention", "short", 90},
                                  {"flash_attention", "tensor_core", 90},
                                  {"flash_attention", "decode", 90}};
  const auto explain = [&](const std::string& refusal) {
    return choose_flash_attention_strategy(p, test::kH200, "auto", all,
                                           [&](std::string_view) { return refusal; })
        .explain;
  };
  CHECK(explain("no engine") ==
        "sequential: member after member; short, decode, tensor_core: a launch has more "
        "than 2^31 - 1 blocks; simt: it takes fp32, not fp16; cudnn: no engine");
  CHECK(explain("") ==
        "cudnn: one call for all members; short, decode, tensor_core: a launch has more "
        "than 2^31 - 1 blocks; simt: it takes fp32, not fp16");

  p.kv_heads = 8;  // four heads share keys: a fourth of the units
  CHECK(reason(decode, p).empty());
  CHECK(reason(short_keys, p).empty());
  CHECK_FALSE(reason(tensor_core, p).empty());
  CHECK(explain("").starts_with("short: "));
  p.seq = 65;  // 20 tiles of the four heads, two blocks: still half of what there may be
  CHECK(reason(short_keys, p).empty());
  p.seq = 128 + 1;  // 36 tiles, three blocks
  p.kv_seq = 256;
  CHECK(reason(short_keys, p).empty());
  p.num_members = 1 << 12;
  CHECK_FALSE(reason(short_keys, p).empty());

  p = {.num_members = 1, .batch = 65536, .seq = 1 << 15, .heads = 128};
  p.head_dim = 8;
  p.dtype = Dtype::fp16;
  CHECK(reason(sequential, p) == "a launch has more than 2^31 - 1 blocks");
  p.batch -= 1;
  CHECK(reason(sequential, p).empty());
  p.dtype = Dtype::fp32;  // twice the blocks
  CHECK_FALSE(reason(sequential, p).empty());
  CHECK_FALSE(reason(simt, p).empty());
  p.seq = 0;
  CHECK(reason(simt, p).empty());
}

TEST_CASE("launch limits: pooling's blocks") {
  PoolingProblem p{.num_members = 1024, .batch = 1024, .channels = 64, .height = 128, .width = 128};
  p.mode = PoolingMode::max;
  p.rows = p.columns = {.kernel = 96, .stride = 1};
  const auto blocks = [](const PoolingProblem& problem, int64_t members) {
    const PoolingPlan plan = make_pooling_plan(Context::cpu(), problem);
    return pooling_launch_blocks(plan.problem(), members);
  };
  CHECK(blocks(p, 1024) == kTooMany);  // a block an output
  CHECK(blocks(p, 1) == int64_t{1024} * 64 * 33 * 33);
  p.rows = p.columns = {.kernel = 2};
  p.height = p.width = 4;
  const int64_t images = int64_t{1024} * 1024 * 64;
  CHECK(blocks(p, 1024) < images / 100);  // which share blocks
  p.batch = 0;
  CHECK(blocks(p, 1024) == 0);

  PoolingProblem last{.num_members = 1024, .batch = 1024, .channels = 64, .height = 128};
  last.width = 128;
  last.layout = ChannelLayout::channels_last;
  last.rows = last.columns = {.kernel = 2};
  CHECK(blocks(last, 1) == int64_t{1024} * 64 * 64 * 64 / 256);
  last.rows = last.columns = {.kernel = 16, .stride = 1};  // 32 threads an output
  CHECK(blocks(last, 1) == int64_t{1024} * 64 * 113 * 113 / 8);
  CHECK(blocks(last, 1024) > kernels::kMaxGridBlocks);
  last.channels = 0;
  CHECK(blocks(last, 1024) == 0);
}

TEST_CASE("launch limits: interpolate's blocks") {
  InterpolateProblem p{.num_members = 1024, .batch = 1024, .channels = 64};
  p.height = p.width = 64;
  p.out_height = p.out_width = 256;
  const auto blocks = [](const InterpolateProblem& problem, int64_t members) {
    const InterpolatePlan plan = make_interpolate_plan(Context::cpu(), problem);
    return interpolate_launch_blocks(plan.problem(), members);
  };
  CHECK(blocks(p, 1024) == int64_t{1024} * 1024 * 64 * 2);  // a band has 32768 outputs
  InterpolateProblem last = p;
  last.layout = ChannelLayout::channels_last;
  // A thread has 16 rows, at worst of single channels.
  CHECK(blocks(last, 1024) == int64_t{1024} * 1024 * 64 * 256 * (256 / 16) / 256);
  last.out_height = last.out_width = 2048;
  CHECK(blocks(last, 1024) > kernels::kMaxGridBlocks);
  p.out_height = p.out_width = 2048;
  CHECK(blocks(p, 1024) == kTooMany);
  p.channels = last.channels = 0;
  CHECK(blocks(last, 1024) == 0);
  CHECK(blocks(p, 1024) == 0);
}

TEST_CASE("launch limits: ensemble's blocks") {
  constexpr int64_t kRows = int64_t{1} << 35;
  CHECK(kernels::ensemble_blocks(kRows, 1, 8) == kTooMany);  // 16 rows of 8 threads
  CHECK(kernels::ensemble_blocks(kRows - 1, 1, 8) == kTooMany);
  CHECK(kernels::ensemble_blocks(kRows - 16, 64, 8) == kernels::kMaxGridBlocks);
  CHECK(kernels::ensemble_blocks(8, 65, 8) == 1);         // 16 threads a row
  CHECK(kernels::ensemble_blocks(8, 129, 8) == 2);        // a warp
  CHECK(kernels::ensemble_blocks(8, 257, 8) == 8);        // two
  CHECK(kernels::ensemble_blocks(8, 2 * 2048, 8) == 16);  // two pieces of 256 threads
  CHECK(kernels::vote_blocks(1, kRows, 10, 8) == kTooMany);
  CHECK(kernels::vote_blocks(4, 32, 10, 8) == 2);     // 16 rows of four members
  CHECK(kernels::vote_blocks(64, 32, 10, 8) == 32);   // one of 64
  CHECK(kernels::vote_blocks(1, 32, 1024, 8) == 16);  // counts of two rows
  CHECK(kernels::vote_blocks(1, 32, 2049, 8) == 32);
}
