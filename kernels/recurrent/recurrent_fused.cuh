// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers of all members over all steps in one launch.
//
// Plan: members are independent, so a block can take some sequences of one member through all steps
// without waiting for other blocks. Its hidden weights are loaded into shared memory once. A warp
// has eight units of the hidden state with all of their gates, so that a unit's gates are combined
// in one lane's registers, where its cell state stays, too; other warps only need h_t, for the next
// step's products, through shared memory.
//
//   step t    start loading u_{t+1}; store y_{t-1}; sums = bias + W_hidden h_{t-1}; the unit's
//             u_t and sums become h_t, c_t; wait for u_{t+1}; barrier
//
// u and h are double-buffered: what a step writes was last read in the step before, on the other
// side of the barrier.
//
// Every sum is in order of k by one lane, or by four that are always added in the same order: its
// bits depend neither on the shape of blocks nor on N.
// Source: Diamos et al., "Persistent RNNs: Stashing Recurrent Weights On-Chip".
#pragma once

#include "kernels/arch/grid.cuh"
#include "kernels/arch/prefetch.cuh"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/row_tile.cuh"
#include "kernels/recurrent/recurrent.hpp"
#include "kernels/recurrent/recurrent_cell.cuh"

namespace wide::kernels {

/// A block's sequences, and their parts of its member's operands.
template <class T>
struct RecurrentBlock {
  const RecurrentFusedParams& p;
  int64_t member, first_row;
  int count;  ///< number of rows

  /// u_t's rows.
  __device__ TileRows<const T> inputs(int64_t step, int gates) const {
    const RecurrentStrides& s = p.input_strides;
    const T* first = static_cast<const T*>(p.input_gates) + member * s.member + step * s.step +
                     first_row * s.batch;
    return {first, s.batch, count, gates * p.hidden, p.inputs_are_aligned};
  }
  __device__ TileRows<T> outputs(int64_t step) const {
    const RecurrentStrides& s = p.y_strides;
    T* first = static_cast<T*>(p.y) + member * s.member + step * s.step + first_row * s.batch;
    return {first, s.batch, count, p.hidden, p.y_is_aligned};
  }
  /// h_0's rows; for zeros no rows, at any valid address.
  __device__ TileRows<const T> first_hidden() const {
    if (p.first_hidden == nullptr) {
      return {static_cast<const T*>(p.weight), 0, 0, p.hidden, p.weight_is_aligned};
    }
    const RowStrides& s = p.first_hidden_strides;
    const T* first = static_cast<const T*>(p.first_hidden) + member * s.member + first_row * s.row;
    return {first, s.row, count, p.hidden, p.first_is_aligned};
  }
  /// The rows of a warp's units for one gate.
  __device__ TileRows<const T> weights(int gate, int unit, int units) const {
    const RowStrides& s = p.weight_strides;
    const T* first = static_cast<const T*>(p.weight) + member * s.member +
                     (int64_t{gate} * p.hidden + unit) * s.row;
    return {first, s.row, units, p.hidden, p.weight_is_aligned};
  }
  __device__ float bias(int gate, int unit) const {
    if (p.bias == nullptr) return 0.0f;
    return to_float(static_cast<const T*>(
        p.bias)[member * p.bias_member_stride + int64_t{gate} * p.hidden + unit]);
  }
};

/// A lane's units, for the elements that Product assigns to it: biases and cell states.
template <class Product, RecurrentCell cell>
class RecurrentUnits {
 public:
  using T = typename Product::Element;
  static constexpr int kGates = recurrent_gates(cell), kElements = Product::kElements;
  /// Elements cycle through this many units.
  static constexpr int kColumns = Product::kColumns;

  __device__ RecurrentUnits(const RecurrentBlock<T>& block, int unit, int units)
      : block_(block), unit_(unit), units_(units) {
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (!exists(e)) continue;
#pragma unroll
      for (int g = 0; g < kGates && e < kColumns; ++g) {
        bias_[g][e] = block.bias(g, unit + Product::column(e));
      }
      if (cell == RecurrentCell::lstm && block.p.first_cell != nullptr && is_row(e)) {
        states_[e] = block.p.first_cell[place(block.p.first_cell_strides, e)];
      }
    }
  }

  /// One step: `now` has h_{t-1}, `next` gets h_t.
  __device__ void step(const char* weights, const char* now, const char* inputs, char* next) {
    const RecurrentFusedParams& p = block_.p;
    float sums[kGates][kElements];
#pragma unroll
    for (int g = 0; g < kGates; ++g) {
#pragma unroll
      for (int e = 0; e < kElements; ++e) sums[g][e] = bias_[g][e % kColumns];
    }
    Product::template multiply<kGates>(sums, weights, now, p.shape, p.hidden, block_.count);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (!exists(e) || !is_row(e)) continue;  // the states of missing rows stay 0
      const int unit = unit_ + Product::column(e);
      const auto row_of = [&](const char* tile, int pitch) {
        return reinterpret_cast<const T*>(tile + Product::row(e) * pitch);
      };
      float u[kGates], v[kGates];
#pragma unroll
      for (int g = 0; g < kGates; ++g) {
        u[g] = to_float(row_of(inputs, p.shape.input_pitch)[g * p.hidden + unit]);
        v[g] = sums[g][e];
      }
      const float before =
          cell == RecurrentCell::gru ? to_float(row_of(now, p.shape.pitch)[unit]) : 0.0f;
      T* to = reinterpret_cast<T*>(next + Product::row(e) * p.shape.pitch) + unit;
      *to = from_float<T>(recurrent_unit<cell>(u, v, before, states_[e]));
    }
  }

  __device__ void store_last_cell() const {
    if constexpr (cell == RecurrentCell::lstm) {
      if (block_.p.last_cell == nullptr) return;
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        if (exists(e) && is_row(e)) {
          block_.p.last_cell[place(block_.p.last_cell_strides, e)] = states_[e];
        }
      }
    }
  }

 private:
  __device__ bool exists(int e) const {
    return Product::column(e) < units_;
  }
  __device__ bool is_row(int e) const {
    return Product::row(e) < block_.count;
  }
  __device__ int64_t place(const RowStrides& s, int e) const {
    return block_.member * s.member + (block_.first_row + Product::row(e)) * s.row + unit_ +
           Product::column(e);
  }

  const RecurrentBlock<T>& block_;
  int unit_, units_;
  float bias_[kGates][kColumns] = {}, states_[kElements] = {};
};

/// Before wait_for_grid(): prefetches the rows of a warp's units, a lane for each of each gate.
template <class T>
__device__ inline void prefetch_weights(const RecurrentBlock<T>& block, int gates, int unit,
                                        int units) {
  const int lane = static_cast<int>(threadIdx.x % 32), row = lane % kRecurrentUnits;
  if (!block.p.weight_is_aligned || lane >= gates * kRecurrentUnits || row >= units) return;
  const TileRows<const T> rows = block.weights(lane / kRecurrentUnits, unit, units);
  arch::prefetch_bulk(rows.first + row * rows.stride,
                      static_cast<uint32_t>(block.p.hidden * sizeof(T)));
}

template <class Product, RecurrentCell cell>
__global__ void __launch_bounds__(32 * kMaxRecurrentWarps, 1)
    recurrent_fused(const __grid_constant__ RecurrentFusedParams p) {
  using T = typename Product::Element;
  constexpr int kGates = recurrent_gates(cell), kRows = Product::kRows;
  constexpr int kFilled = 4;  // chunks per step of the products
  extern __shared__ __align__(128) char shared[];
  const RecurrentFusedShape& s = p.shape;
  const auto tiles = static_cast<uint32_t>((p.batch + kRows - 1) / kRows);
  const int64_t first_row = int64_t{blockIdx.x % tiles} * kRows;
  const RecurrentBlock<T> block{p, blockIdx.x / tiles, first_row,
                                static_cast<int>(min(p.batch - first_row, int64_t{kRows}))};
  const int unit = static_cast<int>(threadIdx.x / 32) * kRecurrentUnits;
  const int units = min(p.hidden - unit, kRecurrentUnits);
  char* const weights = shared + kGates * unit * s.pitch;
  char* const states = shared + s.weight_bytes;
  char* const inputs = states + 2 * s.state_bytes;
  const auto all = TileThreads::of_block();
  const auto step_of = [&](int64_t i) { return p.is_reversed ? p.steps - 1 - i : i; };

  if (first_row == 0) prefetch_weights(block, kGates, unit, units);
  arch::follow_grid();
#pragma unroll
  for (int g = 0; g < kGates; ++g) {
    load_tile_rows<T, kRecurrentUnits, kFilled>(weights + g * kRecurrentUnits * s.pitch, s.pitch,
                                                block.weights(g, unit, units),
                                                TileThreads::of_warp());
  }
  const TileRows<const T> begin = block.first_hidden();
  load_tile_rows<T, kRows, kFilled>(states, s.pitch, begin, all);
  // The padding of the other buffer.
  load_tile_rows<T, kRows, kFilled>(states + s.state_bytes, s.pitch,
                                    {begin.first, 0, 0, p.hidden, begin.is_aligned}, all);
  load_tile_rows<T, kRows, 1>(inputs, s.input_pitch, block.inputs(step_of(0), kGates), all);
  arch::cp_async_commit();
  RecurrentUnits<Product, cell> own(block, unit, units);
  arch::cp_async_wait<0>();
  __syncthreads();

#pragma unroll 1
  for (int64_t i = 0; i < p.steps; ++i) {
    const int even = static_cast<int>(i % 2), odd = 1 - even;
    const char* now = states + even * s.state_bytes;
    if (i + 1 < p.steps) {
      load_tile_rows<T, kRows, 1>(inputs + odd * s.input_bytes, s.input_pitch,
                                  block.inputs(step_of(i + 1), kGates), all);
    }
    arch::cp_async_commit();
    if (i > 0) store_tile_rows<T>(now, s.pitch, block.outputs(step_of(i - 1)), all);
    own.step(weights, now, inputs + even * s.input_bytes, states + odd * s.state_bytes);
    arch::cp_async_wait<0>();
    __syncthreads();
  }
  store_tile_rows<T>(states + static_cast<int>(p.steps % 2) * s.state_bytes, s.pitch,
                     block.outputs(step_of(p.steps - 1)), all);
  own.store_last_cell();
}

template <class Product>
cudaError_t launch_recurrent(RecurrentFusedParams p, cudaStream_t stream) {
  constexpr int64_t kBytes = sizeof(typename Product::Element), kVector = 16 / kBytes;
  const auto rows_are_aligned = [](const void* data, const RowStrides& strides) {
    return is_aligned(data, strides.row, strides.member, kVector, kBytes);
  };
  const auto steps_are_aligned = [](const void* data, const RecurrentStrides& strides) {
    return is_aligned(data, strides.batch, strides.member, kVector, kBytes) &&
           strides.step % kVector == 0;
  };
  p.inputs_are_aligned = steps_are_aligned(p.input_gates, p.input_strides);
  p.y_is_aligned = steps_are_aligned(p.y, p.y_strides);
  // A gate's rows begin a multiple of the rows' stride after the first one.
  p.weight_is_aligned = rows_are_aligned(p.weight, p.weight_strides);
  p.first_is_aligned = rows_are_aligned(p.first_hidden, p.first_hidden_strides);
  const int64_t tiles = (p.batch + Product::kRows - 1) / Product::kRows;
  if (tiles > kMaxGridBlocks / p.num_members) return cudaErrorInvalidConfiguration;
  return with_recurrent_cell(p.cell, [&]<RecurrentCell cell>() {
    const auto kernel = recurrent_fused<Product, cell>;
    const cudaError_t status = allow_shared_bytes(kernel, p.shape.shared_bytes);
    if (status != cudaSuccess) return status;
    return launch_kernel(kernel, static_cast<unsigned>(tiles * p.num_members),
                         static_cast<unsigned>(32 * p.shape.warps),
                         static_cast<size_t>(p.shape.shared_bytes), stream, p);
  });
}

}  // namespace wide::kernels
