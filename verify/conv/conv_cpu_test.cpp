// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv's kernels of the CPU: what is of no instruction set, thread or workspace.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "host/conv/conv_cpu_tile.hpp"
#include "wide/conv.hpp"
#include "wide/convert.hpp"
#include "wide/tensor.hpp"

namespace wide {
namespace {

using namespace cpu;

TEST_CASE("conv: the tile kernels of all instruction sets agree") {
  constexpr int kTileChannels = 23;  // 8 + 8 + 4 + 2 + 1, and 7 * 3 + 2
  const int depth = GENERATE(1, 37, kConvDepth), positions = GENERATE(7, 16, 17, 32, 75);
  const bool is_first = GENERATE(false, true), skips = GENERATE(false, true);
  std::vector<float> inputs(static_cast<size_t>(kConvDepth + kConvSpan));
  std::vector<int64_t> offsets, terms;
  static float weights[kConvChannels][kConvDepth];
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = std::sin(static_cast<float>(i));
  for (int t = 0; t < depth; ++t) {
    offsets.push_back((t * 29) % kConvDepth);
    terms.push_back(skips ? (t * 5) % kConvDepth : t);
    for (int o = 0; o < kTileChannels; ++o) {
      weights[o][terms.back()] = std::cos(static_cast<float>(o * kConvDepth + t));
    }
  }
  using Sums = float[kConvChannels][kConvSpan];
  static Sums portable, avx2, avx512;
  const auto multiply = [&](ConvTileKernel kernel, Sums& sums) {
    for (auto& row : sums) std::fill_n(row, kConvSpan, 0.5f);
    kernel({.weights = weights[0],
            .inputs = inputs.data(),
            .terms = skips ? terms.data() : nullptr,
            .offsets = offsets.data(),
            .channels = kTileChannels,
            .depth = depth,
            .positions = positions,
            .is_first = is_first,
            .sums = sums});
  };
  multiply(conv_tile_portable, portable);
  for (int o = 0; o < kConvChannels; ++o) {
    for (int p = 0; p < kConvSpan; ++p) {
      const bool is_written =
          o < kTileChannels && p < (positions + kConvLanes - 1) / kConvLanes * kConvLanes;
      double expected = is_written && is_first ? 0 : 0.5;
      for (int t = 0; t < depth && is_written; ++t) {
        expected +=
            static_cast<double>(weights[o][terms[static_cast<size_t>(t)]]) *
            static_cast<double>(inputs[static_cast<size_t>(offsets[static_cast<size_t>(t)] + p)]);
      }
      REQUIRE(std::abs(static_cast<double>(portable[o][p]) - expected) < 1e-5);
    }
  }
#if defined(__x86_64__)
  if (conv_tile_avx2 == nullptr || !__builtin_cpu_supports("avx2") ||
      !__builtin_cpu_supports("fma")) {
    SKIP("this processor or compiler has no AVX2");
  }
  multiply(conv_tile_avx2, avx2);
  for (int o = 0; o < kConvChannels; ++o) {
    for (int p = 0; p < kConvSpan; ++p) {
      REQUIRE(std::abs(avx2[o][p] - portable[o][p]) < 1e-5f);
    }
  }
  if (conv_tile_avx512 == nullptr || !__builtin_cpu_supports("avx512f")) {
    SKIP("this processor or compiler has no AVX-512");
  }
  multiply(conv_tile_avx512, avx512);
  CHECK(std::memcmp(avx2, avx512, sizeof(avx2)) == 0);
#else
  SKIP("not an x86-64 processor: there is one version");
#endif
}

Tensor filled(const Context& context, Dtype dtype, const Shape& shape) {
  Tensor tensor(context, dtype, shape);
  for (int64_t i = 0; i < tensor.view().num_elements(); ++i) {
    store_element(tensor.data(), dtype, i, std::sin(static_cast<double>(i * i % 10007)));
  }
  return tensor;
}

/// Batch rows [first, first + count) of a convolution in a workspace of exactly its size that holds
/// NaN.
std::vector<std::byte> convolve(const Context& context, const ConvProblem& like,
                                ConvArguments arguments, std::string_view strategy, int64_t first,
                                int64_t count) {
  const int64_t x_row = arguments.x.strides[0], y_row = arguments.y.strides[0];
  const int64_t bytes = dtype_bytes(arguments.x.dtype);
  arguments.x.data = static_cast<const std::byte*>(arguments.x.data) + first * x_row * bytes;
  arguments.x.shape[0] = arguments.y.shape[0] = count;
  const ConvPlan plan =
      make_conv_plan(context, describe_conv(arguments, like), {.strategy = std::string(strategy)});
  Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
  std::memset(workspace.data(), 0xff, static_cast<size_t>(plan.workspace_bytes()));
  plan.run(arguments, {Stream::cpu(), {workspace.data(), plan.workspace_bytes()}});
  const auto* y = static_cast<const std::byte*>(arguments.y.data);
  return {y, y + count * y_row * bytes};
}

TEST_CASE("conv on the CPU: neither rounds, threads, strategies nor the workspace change a bit") {
  const ChannelLayout layout =
      GENERATE(ChannelLayout::channels_first, ChannelLayout::channels_last);
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  const Context one = Context::cpu({.num_threads = 1}), three = Context::cpu({.num_threads = 3});
  // A batch row takes more than a megabyte, of which a round has four.
  constexpr int64_t kMembers = 2, kBatch = 3, kIn = 20, kOut = 9, kSize = 128;
  const bool is_last = layout == ChannelLayout::channels_last;
  const auto image = [&](int64_t channels) {
    return is_last ? Shape{kBatch, kSize, kSize, channels} : Shape{kBatch, channels, kSize, kSize};
  };
  const Tensor x = filled(one, dtype, image(kMembers * kIn));
  const Tensor weight = filled(
      one, dtype, is_last ? Shape{kMembers * kOut, 3, 3, kIn} : Shape{kMembers * kOut, kIn, 3, 3});
  Tensor y(one, dtype, image(kMembers * kOut));
  const ConvArguments arguments{x.view(), weight.view(), {}, y.view()};
  const ConvProblem like{.num_members = kMembers, .padding = {1, 1}, .layout = layout};
  const std::vector<std::byte> all = convolve(three, like, arguments, "wide", 0, kBatch);
  CHECK((all == convolve(one, like, arguments, "wide", 0, kBatch)));
  CHECK((all == convolve(three, like, arguments, "sequential", 0, kBatch)));
  std::vector<std::byte> rows;
  for (int64_t b = 0; b < kBatch; ++b) {
    const std::vector<std::byte> row = convolve(one, like, arguments, "sequential", b, 1);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  CHECK((all == rows));
}

TEST_CASE("conv on the CPU: memory is for what is read, not for all that taps reach over") {
  const Context context = Context::cpu();
  const auto workspace_bytes = [&](int64_t apart) {
    const ConvProblem problem{.num_members = 1,
                              .batch = 1,
                              .in_channels = 64,
                              .out_channels = 64,
                              .input = {8, 8},
                              .kernel = {3, 3},
                              .padding = {apart, apart},
                              .dilation = {apart, apart}};
    return make_conv_plan(context, problem, {.strategy = "wide"}).workspace_bytes();
  };
  CHECK(workspace_bytes(1) < 64 * 10 * 10 * 4 + 1024);
  for (const int64_t apart : {100, 20000})
    CHECK(workspace_bytes(apart) < 64 * 24 * 24 * 4 + 4 * apart + 1024);
}

}  // namespace
}  // namespace wide
