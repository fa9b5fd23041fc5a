// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Routed rows on the fp32 units: linear_simt.cuh's tiles of 16 and of 64 rows in one kernel, as
// ragged_linear_simt.cu has them.
#include <algorithm>

#include "kernels/common/dispatch.hpp"
#include "kernels/linear/linear_simt.cuh"
#include "kernels/linear/routed_linear_launch.cuh"

namespace wide::kernels {

namespace {

constexpr LinearSimtTile kShort = LinearSimtTile::m16n64, kTall = LinearSimtTile::m64n64;
// As ragged_linear_simt's, whose sums and places a thread has, too.
constexpr int kBlocksPerMultiprocessor = 3;
constexpr int kThreads = policy_of(kTall).threads();
constexpr int kTileBytes =
    std::max(policy_of(kShort).shared_bytes(), policy_of(kTall).shared_bytes());
static_assert(policy_of(kShort).threads() == kThreads && tile_m(kShort) == kRoutedShortTile &&
              tile_m(kTall) == kRoutedTile && tile_n(kShort) == kRoutedTileN &&
              tile_n(kTall) == kRoutedTileN);

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    routed_linear_simt(const __grid_constant__ RoutedLinearParams params, uint32_t num_slots,
                       uint32_t tiles_n) {
  extern __shared__ __align__(128) char shared[];
  arch::follow_grid();
  compute_routed_tile<T, kThreads>(
      params, num_slots, tiles_n, *reinterpret_cast<RoutedTable*>(shared + kTileBytes),
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_simt_tile<T, T, kShort>(params.linear, member, 0, first_n, shared, rows);
      },
      [&](int64_t member, int64_t first_n, const RoutedRows& rows) {
        compute_simt_tile<T, T, kTall>(params.linear, member, 0, first_n, shared, rows);
      });
}

}  // namespace

cudaError_t launch_routed_linear_simt(const RoutedLinearParams& params, Dtype dtype,
                                      cudaStream_t stream) {
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return launch_routed(routed_linear_simt<T>, params, sizeof(T), kThreads, kTileBytes, stream);
  });
}

}  // namespace wide::kernels
