// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// groupnorm with channels last: as groupnorm_wide.cu, of positions that have the channels of all
// members next to one another.
//
// Plan: a block has some positions of a few neighbouring groups, 16 KB in registers, whose
// rows of channels are whole sectors; a thread's vectors have the same channels, whichever groups
// these are of. Mean and square are those of two passes over the registers. Where that is all of
// the groups the block writes y from there: x is read once. Else it leaves moments of its chunk,
// and a second kernel, cut alike, adds up those of all chunks (Chan, Golub, LeVeque, "Updating
// Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979) and reads x again, from
// the L2 cache where it fits: there are as many blocks as there is data, however few groups.
// Elements are moved one by one where vectors of channels are not 16 bytes at multiples of 16.
// Limits: 2^31 - 1 values a group, and as many blocks.
#include <algorithm>

#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/norm/groupnorm_last_cut.hpp"
#include "kernels/norm/groupnorm_wide.hpp"
#include "kernels/norm/groups_tile.cuh"

namespace wide::kernels {

namespace {

/// All of it, of images that a chunk has whole; else the first kernel, and the second.
enum class Phase { whole, moments, apply };

template <class T, Phase kPhase>
__global__ void __launch_bounds__(kLastThreads, 3)
    groupnorm_last_kernel(const __grid_constant__ GroupnormParams p,
                          const __grid_constant__ GroupsCut cut, GroupPartial* partials) {
  __shared__ GroupsShared shared;
  const GroupsTile<T> tile(p, cut, shared);
  arch::follow_grid();
  Vec16<T> vectors[GroupsTile<T>::kVectors];
  tile.load(vectors);
  if constexpr (kPhase == Phase::apply) {
    tile.collect(partials);
  } else {
    tile.find_moments(vectors);
    if constexpr (kPhase == Phase::moments) return tile.leave(partials);
    tile.find_scales();
  }
  tile.store(vectors);
}

/// Whether each vector of a tile is one access of sixteen bytes.
template <class T>
bool has_vectors(const GroupnormParams& p, int64_t tile_channels) {
  constexpr int64_t size = Vec16<T>::kSize;
  const auto is_fit = [&](const void* address, const ChannelStrides& s) {
    return is_aligned(address, s.row, s.column, size, sizeof(T)) && s.batch % size == 0;
  };
  const int64_t all = p.num_members * p.channels;
  return tile_channels % size == 0 && all % size == 0 && is_fit(p.x, p.x_strides) &&
         is_fit(p.y, p.y_strides);
}

template <class T>
cudaError_t launch(const GroupnormParams& p, void* workspace, cudaStream_t stream) {
  constexpr int64_t size = Vec16<T>::kSize;
  const LastCut of = groupnorm_last_cut(p, p.num_members, size);
  if (of.blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  const int64_t channels = p.channels / p.groups;
  const bool is_narrow = of.lanes <= of.threads;
  GroupsCut cut;
  const auto set = [](uint32_t& to, int64_t value) { to = static_cast<uint32_t>(value); };
  set(cut.channels, channels);
  set(cut.groups, of.groups), set(cut.lanes, of.lanes), set(cut.threads, of.threads);
  set(cut.tiles, of.tiles), set(cut.chunks, of.chunks);
  set(cut.all_groups, p.num_members * p.groups);
  set(cut.positions, p.height * p.width);
  const int64_t columns = (is_narrow ? of.lanes : of.threads) * size;
  set(cut.rows, of.threads * size / columns);
  set(cut.columns, columns);
  set(cut.segments, std::max<int64_t>(1, std::min(kLastThreads / columns, int64_t{cut.rows})));
  set(cut.width, is_narrow ? channels : columns);
  cut.is_aligned = has_vectors<T>(p, of.groups * channels);
  const auto divisor = [](int64_t value) { return Divisor32(static_cast<int32_t>(value)); };
  cut.by_lanes = divisor(of.lanes);
  const auto has_gaps = [&](const ChannelStrides& s) { return s.row != p.width * s.column; };
  cut.has_gaps = p.height > 1 && (has_gaps(p.x_strides) || has_gaps(p.y_strides));
  cut.by_row = divisor(p.width);
  cut.by_columns = divisor(columns);
  cut.by_width = divisor(cut.width);
  cut.by_channels = divisor(p.channels);
  const auto blocks = static_cast<unsigned>(of.blocks);
  constexpr auto threads = static_cast<unsigned>(kLastThreads);
  auto* partials = static_cast<GroupPartial*>(workspace);
  const auto run = [&](auto* kernel) {
    return launch_kernel(kernel, blocks, threads, 0, stream, p, cut, partials);
  };
  if (of.partials == 0) return run(groupnorm_last_kernel<T, Phase::whole>);
  const cudaError_t status = run(groupnorm_last_kernel<T, Phase::moments>);
  return status != cudaSuccess ? status : run(groupnorm_last_kernel<T, Phase::apply>);
}

}  // namespace

cudaError_t launch_groupnorm_last(Dtype dtype, const GroupnormParams& p, void* workspace,
                                  cudaStream_t stream) {
  if (is_empty_norm(p)) return cudaSuccess;
  return dispatch_float(
      dtype, [&]<class T>(std::type_identity<T>) { return launch<T>(p, workspace, stream); });
}

}  // namespace wide::kernels
