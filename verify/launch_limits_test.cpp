// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Problems of more blocks than a grid has: refused, or run member after member, when they are
// planned. Nothing here is as large as what it describes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "host/core/wide_plan.hpp"
#include "kernels/norm/norm_blocks.hpp"
#include "wide/batchnorm.hpp"
#include "wide/error.hpp"
#include "wide/groupnorm.hpp"
#include "wide/softmax.hpp"

using namespace wide;
using Catch::Matchers::Message;

namespace {

constexpr int64_t kTooMany = kernels::kMostBlocks + 1;

DeviceInfo hopper() {
  DeviceInfo gpu;
  gpu.device = {DeviceType::cuda, 0};
  gpu.compute_capability = 90;
  return gpu;
}

}  // namespace

TEST_CASE("launch limits: products of blocks do not overflow") {
  constexpr int64_t kHuge = int64_t{1} << 62;
  CHECK(kernels::block_product({}) == 1);
  CHECK(kernels::block_product({3, 5, 7}) == 105);
  CHECK(kernels::block_product({kernels::kMostBlocks, 1}) == kernels::kMostBlocks);
  CHECK(kernels::block_product({1 << 16, 1 << 15}) == kTooMany);
  CHECK(kernels::block_product({kHuge, kHuge, kHuge}) == kTooMany);
  CHECK(kernels::block_product({kHuge, kHuge, 0}) == 0);
}

TEST_CASE("launch limits: what one launch cannot hold runs member after member, or not at all") {
  const LaunchRefusal all = launch_refusal(
      "blocks", 4, [](int64_t members) { return members == 4 ? kTooMany : kernels::kMostBlocks; });
  const auto choose = [](std::string_view name, bool is_verified, const LaunchRefusal& launches,
                         const VendorRefusal& cudnn = nullptr) {
    return choose_wide_strategy("softmax", hopper(), name, is_verified, launches, cudnn);
  };
  CHECK_THROWS_MATCHES(
      choose("wide", true, all), Error,
      Message("softmax: wide: one launch for all members has more than 2^31 - 1 blocks"));
  CHECK(choose("sequential", true, all).strategy == WideStrategy::sequential);
  CHECK(choose("auto", true, all).explain ==
        "sequential: one launch for all members has more than 2^31 - 1 blocks");
  CHECK(choose("auto", true, all, [] { return ""; }).explain ==
        "cudnn: one call for all members, one launch for all members has more than 2^31 - 1 "
        "blocks");
  CHECK(choose("auto", true, all, [] { return "no engine"; }).explain ==
        "sequential: one launch for all members has more than 2^31 - 1 blocks; no engine");

  const LaunchRefusal each = launch_refusal("blocks", 4, [](int64_t) { return kTooMany; });
  for (const char* name : {"sequential", "auto"}) {
    CHECK_THROWS_MATCHES(
        choose(name, true, each), Error,
        Message("softmax: sequential: a launch for a member has more than 2^31 - 1 blocks"));
  }
  CHECK(choose("cudnn", true, each, [] { return ""; }).strategy == WideStrategy::cudnn);
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
  const int64_t most = int64_t{4} * kernels::kMostBlocks;  // four rows of up to 256 features
  CHECK(refusal(1, most, 256).sequential.empty());
  CHECK(refusal(1, most + 1, 256).sequential ==
        "a launch for a member has more than 2^31 - 1 blocks");
  CHECK(refusal(1, kernels::kMostBlocks, 257).sequential.empty());
  CHECK(!refusal(1, kTooMany, 257).sequential.empty());
  CHECK(refusal(1024, (1 << 23) + 1, 2).sequential.empty());
  CHECK(refusal(1024, (1 << 23) + 1, 2).wide ==
        "one launch for all members has more than 2^31 - 1 blocks");
  CHECK(refusal(1024, (1 << 23) - 1, 2).wide.empty());
  CHECK(refusal(int64_t{1} << 40, int64_t{1} << 40, 0).wide.empty());
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
