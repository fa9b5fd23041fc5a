// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A step of recurrent layers whose products are linear's: a warp takes a sequence's units, lane by
// lane. Its inputs were written by the preceding kernels and are in the L2 cache; a step's cost is
// its launches.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/recurrent/recurrent.hpp"
#include "kernels/recurrent/recurrent_cell.cuh"

namespace wide::kernels {

namespace {

constexpr int kWarps = 4;  // per block

template <class T, RecurrentCell cell>
__global__ void __launch_bounds__(32 * kWarps)
    recurrent_cell(const __grid_constant__ RecurrentCellParams p) {
  constexpr int kGates = recurrent_gates(cell);
  arch::follow_grid();
  const int64_t sequence = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (sequence >= p.batch * p.num_members) return;
  const int64_t row = sequence / p.num_members, member = sequence % p.num_members;
  const auto at = [&](const RowStrides& strides) {
    return row * strides.row + member * strides.member;
  };
  const T* inputs = static_cast<const T*>(p.input_gates) + at(p.input_strides);
  const T* hiddens = static_cast<const T*>(p.hidden_gates) + at(p.hidden_strides);
  for (int64_t unit = threadIdx.x % 32; unit < p.hidden; unit += 32) {
    float u[kGates], v[kGates], before = 0.0f, state = 0.0f;
#pragma unroll
    for (int g = 0; g < kGates; ++g) {
      u[g] = to_float(inputs[g * p.hidden + unit]);
      v[g] = to_float(hiddens[g * p.hidden + unit]);
    }
    if (cell == RecurrentCell::gru && p.before != nullptr) {
      before = to_float(static_cast<const T*>(p.before)[at(p.before_strides) + unit]);
    }
    if (cell == RecurrentCell::lstm && p.cell_before != nullptr) {
      state = p.cell_before[at(p.cell_before_strides) + unit];
    }
    static_cast<T*>(p.y)[at(p.y_strides) + unit] =
        from_float<T>(recurrent_unit<cell>(u, v, before, state));
    if (cell == RecurrentCell::lstm) p.cell_after[at(p.cell_after_strides) + unit] = state;
  }
}

}  // namespace

cudaError_t launch_recurrent_cell(const RecurrentCellParams& params, cudaStream_t stream) {
  const int64_t blocks = (params.batch * params.num_members + kWarps - 1) / kWarps;
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  return dispatch_float(params.dtype, [&]<class T>(std::type_identity<T>) {
    return with_recurrent_cell(params.cell, [&]<RecurrentCell cell>() {
      return launch_kernel(recurrent_cell<T, cell>, static_cast<unsigned>(blocks), 32 * kWarps, 0,
                           stream, params);
    });
  });
}

}  // namespace wide::kernels
