// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Assigns slices to blocks: one each, or four to a block's warps where a slice is one warp's work.
// Where slices are staged and contiguous, a block takes enough of them that the ends of their run
// hardly matter.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>

#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/norm/norm_held.cuh"
#include "kernels/norm/norm_moments.cuh"

namespace wide::kernels {

/// The slices of a problem: their number, runs per slice, and the distance between runs.
struct SliceRuns {
  int64_t slices, runs, x_stride, y_stride;
};

/// A norm's kernels; by_quarters, by_halves, held: normalize_held_slices() with teams of such parts
/// of a warp, or of warps, if it has them.
template <class Params>
struct SliceKernels {
  using Kernel = void (*)(Params, SliceAccess);
  Kernel kept, unkept, by_quarters = nullptr, by_halves = nullptr, held = nullptr;
};

/// Threads for `chunks` chunks, kAtOnce of them each: whole warps, a power of two.
inline unsigned slice_threads(int64_t chunks, uint32_t most) {
  const auto wanted = static_cast<uint64_t>((chunks + kAtOnce - 1) / kAtOnce);
  return static_cast<unsigned>(std::clamp<uint64_t>(std::bit_ceil(wanted), kWarp, most));
}

/// Concurrent teams of a block: blocks of several teams are small enough for two to be resident.
inline int64_t teams_at_once(const SliceAccess& access) {
  return std::max<int64_t>(1, kSliceThreads / 2 / access.threads_per_slice);
}

/// The number of contiguous images.
inline int64_t images_in_a_row(const ChannelNormParams& p, const ChannelStrides& s) {
  const int64_t axes[][2] = {
      {p.channels, s.channel}, {p.num_members, s.member}, {p.batch, s.batch}};
  int64_t images = 1;
  for (const auto& [size, stride] : axes) {
    if (size > 1 && stride != images * p.height * p.width) break;
    images *= size;
  }
  return images;
}

/// `access` with blocks of `group` slices, staged in shared memory.
template <class T>
SliceAccess staged_access(const ChannelNormParams& p, const SliceRuns& slice, SliceAccess access,
                          int64_t group) {
  constexpr int64_t kSize = Vec16<T>::kSize;
  constexpr int64_t kBanks = 8;  // of sixteen bytes
  const int64_t length = p.height * p.width;
  // Successive accesses of the lanes are to hit successive banks, also from one run to the
  // next.
  const auto in_step = [&](int64_t vectors, int64_t step) {
    return vectors + ((step - vectors) % kBanks + kBanks) % kBanks;
  };
  const auto side_of = [&](int64_t stride) {
    const bool is_joined = slice.runs == 1 || stride == length;
    const int64_t vectors =
        staged_pitch(group * length * (is_joined ? slice.runs : 1), kSize) / kSize;
    const int64_t pitch = is_joined ? vectors : in_step(vectors, chunks_of<T>(p, 1));
    return StagedSide{is_joined, staged_runs(kSize * pitch, kSize)};
  };
  access.x = side_of(slice.x_stride);
  access.y = side_of(slice.y_stride);
  access.slices_per_block = static_cast<uint32_t>(group);
  access.num_brought =
      static_cast<uint32_t>(access.x.cut.pitch / kSize * (access.x.is_joined ? 1 : slice.runs));
  if (!access.y.is_joined)
    access.slice_pitch = static_cast<uint32_t>(in_step(access.slice_pitch, length / kSize));
  return access;
}

/// For blocks with at most `most_bytes` of shared memory.
template <class T>
SliceAccess slice_access(const ChannelNormParams& p, const SliceRuns& slice, int64_t most_bytes) {
  constexpr int64_t kRunBytes = 640;  // the sectors at its ends are a tenth of it
  constexpr int64_t kMaxRounds = 8;
  const int64_t chunks = chunks_of<T>(p, slice.runs);
  SliceAccess access;
  access.is_aligned = is_aligned16<T>(p);
  access.by_run = divisor_of_runs<T>(p);
  access.threads_per_slice = slice_threads(chunks, kSliceThreads);
  access.slices_per_row = static_cast<uint32_t>(slice.slices);
  access.slices_per_block = access.threads_per_slice == kWarp ? 4 : 1;
  if (chunks * 16 > most_bytes) return access;
  access.slice_pitch = static_cast<uint32_t>(chunks);
  const bool has_gaps = p.height > 1 && (p.x_strides.row != p.width || p.y_strides.row != p.width);
  if (access.is_aligned || has_gaps) return access;

  SliceAccess one = staged_access<T>(p, slice, access, 1);
  if (one.shared_bytes() > most_bytes) return access;
  const auto neighbours = [&](const StagedSide& side, const ChannelStrides& strides) {
    return images_in_a_row(p, strides) / (side.is_joined ? slice.runs : 1);
  };
  const int64_t row = std::clamp<int64_t>(
      std::min(neighbours(one.x, p.x_strides), neighbours(one.y, p.y_strides)), 1, slice.slices);
  access.slices_per_row = static_cast<uint32_t>(row);
  const int64_t bytes =
      p.height * p.width * (one.x.is_joined ? slice.runs : 1) * int64_t{sizeof(T)};
  const int64_t most = std::min(row, kMaxRounds * teams_at_once(access));
  const int64_t wanted = std::clamp<int64_t>(
      (kRunBytes + bytes - 1) / bytes, std::min<int64_t>(access.slices_per_block, most), most);
  const int64_t blocks = row / wanted;  // each of at least `wanted` slices, except the last
  int64_t group = std::min((row + blocks - 1) / blocks, most);
  const auto staged = [&] { return staged_access<T>(p, slice, access, group); };
  while (group > 1 && staged().shared_bytes() > most_bytes / 2) --group;
  return staged();
}

/// Launches the kernel that holds slices in registers where chunks are single accesses and few
/// enough, or keeps them in shared memory, of which a device has `shared_bytes_per_block` for a
/// block, or reads them repeatedly.
template <class T, class Params>
cudaError_t launch_slices(const SliceKernels<Params>& kernels, const Params& p,
                          const SliceRuns& slice, int64_t shared_bytes_per_block,
                          cudaStream_t stream) {
  constexpr int kBytesOfSums = 1024;  // and a little more
  if (slice.slices > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  SliceAccess access = slice_access<T>(p, slice, shared_bytes_per_block - kBytesOfSums);
  const int64_t chunks = chunks_of<T>(p, slice.runs);
  const bool is_held = kernels.held != nullptr && access.is_aligned &&
                       chunks <= int64_t{kAtOnce} * access.threads_per_slice;
  if (is_held && chunks <= 2 * kWarp) {
    const bool are_quarters = chunks <= kWarp;
    access.slices_per_block = kShortHeldThreads / kWarp * (are_quarters ? 4 : 2);
    return launch_kernel(are_quarters ? kernels.by_quarters : kernels.by_halves,
                         access.blocks_per_row(), kShortHeldThreads, 0, stream, p, access);
  }
  const int64_t blocks = slice.slices / access.slices_per_row * access.blocks_per_row();
  const int64_t rounds = (access.slices_per_block - 1) / teams_at_once(access) + 1;
  const int64_t teams = (access.slices_per_block - 1) / rounds + 1;
  const unsigned threads = static_cast<unsigned>(teams) * access.threads_per_slice;
  if (is_held) {
    return launch_kernel(kernels.held, static_cast<unsigned>(blocks), threads, 0, stream, p,
                         access);
  }
  const bool is_kept = access.slice_pitch > 0;
  const auto bytes = static_cast<int>(access.shared_bytes());
  if (is_kept) {
    const cudaError_t status = allow_shared_bytes(kernels.kept, bytes, kBytesOfSums);
    if (status != cudaSuccess) return status;
  }
  return launch_kernel(is_kept ? kernels.kept : kernels.unkept, static_cast<unsigned>(blocks),
                       threads, static_cast<size_t>(bytes), stream, p, access);
}

}  // namespace wide::kernels
