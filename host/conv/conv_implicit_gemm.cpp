// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/conv/conv_implicit_gemm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "host/conv/conv_problem.hpp"
#include "kernels/common/grid_blocks.hpp"

namespace wide {

namespace {

using kernels::ConvGemmTile;

constexpr int kLeastCapability = 80;
/// Fewer do not fill an instruction: terms of 16 bits, and channels on one side of a group.
constexpr int64_t kLeastTerms = 8, kLeastChannels = 8;

/// Elements from the first to the last that one output is summed over.
double span_of(const ConvProblem& p, int64_t channel, int64_t depth, int64_t row, int64_t column) {
  const auto part = [](int64_t count, int64_t stride) {
    return static_cast<double>(count - 1) * static_cast<double>(stride);
  };
  return part(p.in_channels / p.groups, channel) + part(p.depth.kernel, depth) +
         part(p.kernel.height, row) + part(p.kernel.width, column);
}

/// Whether x comes by vectors, if its address is aligned, of enough channels to be worth one.
bool reads_vectors(const ConvProblem& p) {
  const int64_t vector = 16 / dtype_bytes(p.dtype), channels = p.in_channels / p.groups;
  const auto is_whole = [&](int64_t elements) { return elements % vector == 0; };
  return channels >= kLeastChannels && is_whole(channels) && p.x.channel == 1 &&
         p.weight.in_channel == 1 && is_whole(p.x.column) && is_whole(p.x.row) &&
         is_whole(p.depth.x_stride) && is_whole(p.x.batch) && is_whole(p.x.member);
}

/// One of a form's tiles: blocks that a multiprocessor holds, and how close its products come
/// to the device's rate.
struct Candidate {
  ConvGemmTile tile;
  int64_t blocks_per_multiprocessor;
  double efficiency;
};

ConvGemmTile choose(const ConvProblem& p, const DeviceInfo& device,
                    std::span<const Candidate> candidates) {
  const auto pixels = static_cast<double>(conv_positions(p));
  const auto channels = static_cast<double>(p.out_channels / p.groups);
  const auto shares = static_cast<double>(p.num_members) * static_cast<double>(p.groups);
  const auto multiprocessors = static_cast<double>(std::max(device.num_multiprocessors, 1));
  ConvGemmTile best = candidates.front().tile;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& one : candidates) {
    if (one.tile == ConvGemmTile::p128c128 && p.dtype == Dtype::fp32) continue;
    // The first is the narrowest; half of a wide one's products would be useless.
    if (&one != &candidates.front() && 2 * p.out_channels / p.groups <= tile_channels(one.tile)) {
      continue;
    }
    const auto of_pixels = static_cast<double>(tile_pixels(one.tile));
    const auto of_channels = static_cast<double>(tile_channels(one.tile));
    const auto blocks = static_cast<double>(one.blocks_per_multiprocessor);
    const double tiles = std::ceil(pixels / of_pixels) * std::ceil(channels / of_channels) * shares;
    const double time = std::ceil(tiles / (multiprocessors * blocks)) * blocks * of_pixels *
                        of_channels / one.efficiency;
    if (time < least) least = time, best = one.tile;
  }
  return best;
}

/// Blocks of a launch for all members.
int64_t blocks_of(const ConvProblem& p, ConvGemmTile tile) {
  const auto tiles = [](int64_t extent, int64_t tile_extent) {
    return (extent + tile_extent - 1) / tile_extent;
  };
  return kernels::block_product({tiles(conv_positions(p), tile_pixels(tile)),
                                 tiles(p.out_channels / p.groups, tile_channels(tile)), p.groups,
                                 p.num_members});
}

}  // namespace

ConvProblem as_conv_gemm(const ConvProblem& problem) {
  const ConvProblem p = with_patches_as_channels(problem);
  return reads_vectors(p) ? p : problem;
}

std::string conv_implicit_gemm_unsupported_reason(const ConvProblem& problem,
                                                  const DeviceInfo& device) {
  const ConvProblem p = as_conv_gemm(problem);
  if (device.compute_capability < kLeastCapability) {
    return "it needs compute capability " + std::to_string(kLeastCapability) + ", the device has " +
           std::to_string(device.compute_capability);
  }
  if (p.dtype == Dtype::fp32 && !p.allow_tf32) {
    return "it multiplies fp32 as tf32, which the problem does not allow";
  }
  if (conv_terms(p) < kLeastTerms) {
    return "it needs sums of " + std::to_string(kLeastTerms) + " terms, these have " +
           std::to_string(conv_terms(p));
  }
  if (std::max(p.in_channels, p.out_channels) / p.groups < kLeastChannels) {
    return "it needs " + std::to_string(kLeastChannels) + " channels a group, these have " +
           std::to_string(p.in_channels / p.groups) + " and " +
           std::to_string(p.out_channels / p.groups);
  }
  constexpr int64_t kMost = int64_t{1} << 30;  // and sums of two are below 2^31
  const double span = std::max(
      span_of(p, p.x.channel, p.depth.dilation * p.depth.x_stride, p.dilation.height * p.x.row,
              p.dilation.width * p.x.column),
      span_of(p, p.weight.in_channel, p.depth.weight_stride, p.weight.row, p.weight.column));
  if (span >= static_cast<double>(kMost)) {
    return "an output is summed over more than 2^30 elements of memory";
  }
  if (std::max({p.depth.input + 2 * p.depth.padding, p.input.height + 2 * p.padding.height,
                p.input.width + 2 * p.padding.width}) >= kMost) {
    return "it needs padded extents below 2^30";
  }
  // Addresses choose between the two.
  const kernels::ConvGemmTiles tiles = choose_conv_gemm_tiles(p, device);
  return std::max(blocks_of(p, tiles.vector), blocks_of(p, tiles.gather)) > kernels::kMaxGridBlocks
             ? "the output has more than 2^31 - 1 tiles"
             : "";
}

bool conv_implicit_gemm_is_expected_to_win(const ConvProblem& problem, const DeviceInfo&) {
  const ConvProblem p = as_conv_gemm(problem);
  constexpr int64_t kTile = 32;      // outputs
  constexpr int64_t kFewTerms = 24;  // too few products share a stage's other costs
  // Vectors cost so little that half a tile spends a third of direct's instructions.
  const int64_t least = reads_vectors(p) ? kTile / 2 : kTile;
  return p.out_channels / p.groups >= least && conv_terms(p) >= kFewTerms;
}

kernels::ConvGemmTiles choose_conv_gemm_tiles(const ConvProblem& p, const DeviceInfo& device) {
  using enum ConvGemmTile;
  constexpr Candidate kVector[] = {{p128c32, 3, 0.6}, {p64c64, 3, 0.7}, {p128c128, 2, 1.0}};
  // Gathering a pixel's terms takes as long as multiplying them by 64 channels.
  constexpr Candidate kGather[] = {{p128c32, 3, 0.35}, {p64c64, 3, 0.5}, {p64c128, 2, 0.7}};
  return {choose(p, device, kVector), choose(p, device, kGather)};
}

}  // namespace wide
