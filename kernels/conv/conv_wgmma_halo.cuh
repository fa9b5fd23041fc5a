// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv_wgmma's tiles whose x stays in shared memory for all taps: instead of one box per tap,
// one box of all positions that the taps need, loaded once per 128 bytes of channels. For stride
// 1.
//
// For volumes a box is one plane's: taps of each kernel plane are a round of their own.
//
// The order of pixels makes it possible. A swizzled operand may begin at any group of eight rows,
// and nowhere in between; a tap shifts by positions. So a group is one position of eight batch
// rows, and a tap is the same rows, that many groups further on:
//
//   shared memory   (column 0: batch rows 0 to 7) (column 1: ..) .. of the box, row by row of it
//   64 pixels       eight groups, neighbouring columns: the operand of an instruction
//   tap (r, s)      .. from (row + r dilation) columns of the box + (column + s dilation) on
//
// Two warpgroups multiply together, half of the pixels each. x has two boxes, weights a ring of
// stages, one for each tap and 128 bytes of channels:
//
//   producer    x of chunk 0 | weights of taps 0, 1, 2, .. of chunk 0 | x of chunk 1 | ..
#pragma once

#include "kernels/conv/conv_wgmma_work.cuh"

namespace wide::kernels {

constexpr int kGroupBytes = kConvHaloBatch * kRowBytes;
constexpr int kHaloStages = 2;
constexpr int kHaloColumns = kBlockM / kConvHaloBatch;  // of an instruction's pixels

template <WgmmaPolicy policy>
struct alignas(1024) ConvHaloStorage {
  char x[kHaloStages][kConvHaloPositions * kGroupBytes];
  char weight[policy.stages][policy.weight_bytes()];
  char outputs[kConsumers][kStoreBytes];
  arch::Mbarrier x_full[kHaloStages], x_empty[kHaloStages];
  arch::Mbarrier full[policy.stages], empty[policy.stages];
};

/// By one thread.
template <class T, WgmmaPolicy policy>
__device__ void produce_halos(ConvHaloStorage<policy>& s, const ConvWork<T, policy>& work) {
  const ConvParams& conv = work.params.conv;
  const ConvAxes& box = work.params.box;
  const auto x_bytes = static_cast<uint32_t>(box.height * box.width * kGroupBytes);
  prefetch_weights<policy>(work);
  arch::wait_for_grid();
  Ring<policy.stages> ring(0);
  Ring<kHaloStages> x_ring(0);
  for (uint32_t index = blockIdx.x; index < work.grid.count; index += gridDim.x) {
    ConvStages<T> stages = work.stages(index);
    for (int32_t step = 0; step < work.grid.num_steps; ++step) {
      if (stages.is_first_of_plane()) {
        // In the first round the stages are empty from the start.
        arch::mbarrier_wait(&s.x_empty[x_ring.stage], x_ring.parity ^ 1);
        arch::Mbarrier* x_full = &s.x_full[x_ring.stage];
        arch::mbarrier_arrive_expect_bytes(x_full, x_bytes);
        stages.load_x(s.x[x_ring.stage], x_full);
        x_ring.advance();
      }
      arch::mbarrier_wait(&s.empty[ring.stage], ring.parity ^ 1);
      arch::Mbarrier* full = &s.full[ring.stage];
      arch::mbarrier_arrive_expect_bytes(full, policy.weight_bytes());
      stages.load_weight(s.weight[ring.stage], full);
      stages.advance();
      ring.advance();
    }
  }
  arch::launch_dependents();
}

/// Where a tap's rows begin in a box of x, in bytes, for the taps of a plane in order.
struct ConvHaloTap {
  int32_t column_step, row_step;  ///< between taps
  int32_t at = 0, row = 0;
  int32_t column = 0, columns, taps_left, taps;

  __device__ explicit ConvHaloTap(const ConvParams& conv, const ConvAxes& box)
      : column_step(conv.dilation.width * kGroupBytes),
        row_step(conv.dilation.height * box.width * kGroupBytes),
        columns(conv.kernel.width),
        taps_left(conv.kernel.width * conv.kernel.height),
        taps(taps_left) {}

  __device__ bool is_first() const { return taps_left == taps; }
  __device__ void advance() {
    at += column_step;
    if (++column == columns) column = 0, at = row += row_step;
    if (--taps_left == 0) taps_left = taps, at = row = 0;
  }
};

/// `tile` counts the block's tiles.
template <class T, WgmmaPolicy policy>
__device__ inline void multiply_halos(ConvHaloStorage<policy>& s, const ConvWork<T, policy>& work,
                                      const Part<policy>& part, uint32_t tile,
                                      float (&sums)[policy.blocks_m()][policy.sums()]) {
  const int columns = work.params.rectangle.columns, box_columns = work.params.box.width;
  const int position = part.first_m / kConvHaloBatch;
  const int first_byte = (position / columns * box_columns + position % columns) * kGroupBytes;
  const int block_bytes = (columns == kHaloColumns ? box_columns : kHaloColumns) * kGroupBytes;
  Ring<policy.stages> ring(tile * static_cast<uint32_t>(work.grid.num_steps));
  Ring<kHaloStages> x_ring(tile * work.places.num_boxes);
  const bool is_first_lane = threadIdx.x % 32 == 0;
  ConvHaloTap tap(work.params.conv, work.params.box);
  uint32_t previous = 0, previous_x = x_ring.stage;
  const auto multiply = [&]<int kBytes>(int32_t step, int32_t end) {
    for (; step < end; ++step) {
      const bool is_first_tap = tap.is_first();
      if (is_first_tap) arch::mbarrier_wait(&s.x_full[x_ring.stage], x_ring.parity);
      arch::mbarrier_wait(&s.full[ring.stage], ring.parity);
      begin_stage<T, policy, kBytes>(s.x[x_ring.stage] + first_byte + tap.at, s.weight[ring.stage],
                                     step > 0, sums, block_bytes);
      arch::wgmma_wait<1>();
      // The previous step is complete for this warp: each warp releases its stages itself.
      if (step > 0 && is_first_lane) {
        arch::mbarrier_arrive(&s.empty[previous]);
        if (is_first_tap) arch::mbarrier_arrive(&s.x_empty[previous_x]);
      }
      previous = ring.stage, previous_x = x_ring.stage;
      tap.advance();
      ring.advance();
      if (tap.is_first()) x_ring.advance();
    }
  };
  multiply.template operator()<kRowBytes>(0, work.grid.full_steps);
  multiply.template operator()<kRowBytes / 2>(work.grid.full_steps, work.grid.num_steps);
  arch::wgmma_wait<0>();
  pin(sums);
  if (is_first_lane) {
    arch::mbarrier_arrive(&s.empty[previous]);
    arch::mbarrier_arrive(&s.x_empty[previous_x]);
  }
}

template <class T, WgmmaPolicy policy>
__device__ inline void consume_halos(ConvHaloStorage<policy>& s, const ConvWork<T, policy>& work,
                                     int consumer) {
  static_assert(policy.halves_rows());
  const Part<policy> part(consumer);
  const Storer storer{s.outputs[consumer], 1 + consumer,
                      static_cast<int>(threadIdx.x) % kWarpgroup};
  uint32_t box_index = 0, tile = 0;
  arch::wait_for_grid();  // before bias and residual are read, and y is written
  for (uint32_t index = blockIdx.x; index < work.grid.count; index += gridDim.x) {
    float sums[policy.blocks_m()][policy.sums()];
    multiply_halos<T, policy>(s, work, part, tile++, sums);
    work.store(index, part.first_m, part.first_n, storer, box_index, sums);
  }
  if constexpr (ConvWork<T, policy>::kStoresBoxes) {
    if (storer.thread == 0) arch::wait_stores_read<0>();
  }
}

/// A whole kernel of kWgmmaThreads threads, whose dynamic shared memory is a ConvHaloStorage.
template <class T, WgmmaPolicy policy>
__device__ inline void run_halo_block(char* shared, const ConvWork<T, policy>& work) {
  constexpr int kGivers = kWarpgroup / 32 * kConsumers;
  auto& s = *reinterpret_cast<ConvHaloStorage<policy>*>(shared);
  if (threadIdx.x == 0) {
    work.prefetch_maps();
    for (int stage = 0; stage < kHaloStages; ++stage) {
      arch::mbarrier_init(&s.x_full[stage], 1);
      arch::mbarrier_init(&s.x_empty[stage], kGivers);
    }
    for (int stage = 0; stage < policy.stages; ++stage) {
      arch::mbarrier_init(&s.full[stage], 1);
      arch::mbarrier_init(&s.empty[stage], kGivers);
    }
    arch::fence_mbarrier_init();
  }
  __syncthreads();
  const int warpgroup = arch::same_in_warp(static_cast<int>(threadIdx.x) / kWarpgroup);
  if (warpgroup == 0) {
    arch::shrink_registers<kProducerRegisters>();
    if (threadIdx.x < 32 && arch::elect_one()) produce_halos<T, policy>(s, work);
  } else {
    arch::grow_registers<kConsumerRegisters>();
    consume_halos<T, policy>(s, work, warpgroup - 1);
  }
}

}  // namespace wide::kernels
