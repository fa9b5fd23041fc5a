// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stores linear_wgmma's blocks of sums: as boxes of the tensor map y, or as rows.
#pragma once

#include "kernels/linear/linear_wgmma.hpp"
#include "kernels/linear/wgmma_store.cuh"

namespace wide::kernels {

struct TileAt {
  int32_t member, first_m, first_n;
};

template <class Out>
struct LinearRows {
  const Destination<Out>& to;

  __device__ bool has(int row) const { return row < to.num_rows; }
  __device__ int64_t residual(int row) const { return row * to.residual_row_stride; }
};

/// A block outside y is skipped.
template <class Out>
__device__ inline void store_block(const LinearWgmmaParams& params, const TileAt& at,
                                   const Storer& storer, uint32_t& box_index,
                                   float (&sums)[kBlockSums]) {
  const LinearParams& linear = params.linear;
  if (at.first_m >= linear.m || at.first_n >= linear.n) return;  // all of the warpgroup
  const Destination<Out> to =
      tile_destination<Out>(linear, at.member, at.first_m, at.first_n, kBlockM, kBlockN);
  if constexpr (kCanStoreBoxes<Out>) {
    if (params.stores_boxes && is_short(to)) {
      return store_box(to, LinearRows<Out>{to}, storer, box_index++, sums, [&](const char* box) {
        arch::store_tile(params.y, box, at.first_n, at.first_m, at.member);
      });
    }
  }
  store_exchanged<kCanStoreBoxes<Out>>(storer, sums, [&](const auto& place) {
    store_placed_sums<kBlockM, kBlockN, kWarpgroup>(to, storer.thread, place);
  });
}

}  // namespace wide::kernels
