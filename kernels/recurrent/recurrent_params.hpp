// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of recurrent's kernels, and the fused one's division of shared memory: plain numbers,
// which the host chooses without a GPU.
#pragma once

#include <cstdint>

#include "wide/dtype.hpp"
#include "wide/recurrent_cell.hpp"
#include "wide/strides.hpp"

namespace wide::kernels {

/// One step of all sequences of some members, after its products.
struct RecurrentCellParams {
  RecurrentCell cell;
  Dtype dtype;
  const void* input_gates;   ///< u_t [batch, num_members, G*H]
  const void* hidden_gates;  ///< v_t likewise
  const void* before;        ///< h_{t-1} [batch, num_members, H]; null: zeros. gru only
  const float* cell_before;  ///< c_{t-1} likewise. lstm only
  float* cell_after;         ///< c_t; may be where c_{t-1} is. lstm only
  void* y;                   ///< h_t
  RowStrides input_strides, hidden_strides, before_strides, cell_before_strides, cell_after_strides,
      y_strides;
  int64_t batch, num_members, hidden;
};

/// The type that is multiplied, sums always in fp32.
enum class RecurrentMath : uint8_t { fp16, bf16, fp32 };

/// A warp has 8 units of the hidden state, all gates of them, and this many rows. A few more warps
/// would fit in shared memory with a gru of 16 bits, but leave a thread fewer than 96 registers.
constexpr int kRecurrentUnits = 8, kMaxRecurrentWarps = 20;
constexpr int recurrent_rows(RecurrentMath math) {
  return math == RecurrentMath::fp32 ? 8 : 16;
}
constexpr int recurrent_element_bytes(RecurrentMath math) {
  return math == RecurrentMath::fp32 ? 4 : 2;
}

/// Shared memory: hidden weights, each warp's rows contiguous, ordered by gate | h_{t-1} and h_t,
/// double-buffered | u_t and u_{t+1}, double-buffered.
struct RecurrentFusedShape {
  int32_t warps;
  int32_t pitch;                     ///< bytes between rows of weights and hidden states
  int32_t input_pitch;               ///< of u
  int32_t state_bytes, input_bytes;  ///< of one of two buffers
  int32_t weight_bytes;
  int32_t shared_bytes;
};

/// For hidden in [1, kRecurrentUnits * kMaxRecurrentWarps]. Rows of weights and states are
/// zero-padded to 64 bytes, a step of the products. Beyond that, for 16 bits rows are an odd number
/// of 16-byte chunks, so that the eight that ldmatrix reads at a time are in different banks; for
/// fp32 an odd number of 64 bytes, since eight lanes read those of two rows, and rows of u 32 bytes
/// apart, since lanes have 32 bytes of four.
constexpr RecurrentFusedShape recurrent_fused_shape(RecurrentCell cell, RecurrentMath math,
                                                    int hidden) {
  const int bytes = recurrent_element_bytes(math), gates = recurrent_gates(cell);
  const bool is_single = math == RecurrentMath::fp32;
  const int filled = (hidden * bytes + 63) / 64 * 64;
  const int input = (gates * hidden * bytes + 15) / 16 * 16;
  RecurrentFusedShape shape{};
  shape.warps = (hidden + kRecurrentUnits - 1) / kRecurrentUnits;
  shape.pitch = is_single ? filled + (filled / 64 % 2 == 0 ? 64 : 0) : filled + 16;
  shape.input_pitch =
      is_single ? (input + 127 - 32) / 128 * 128 + 32 : input + (input / 16 % 2 == 0 ? 16 : 0);
  shape.state_bytes = recurrent_rows(math) * shape.pitch;
  shape.input_bytes = recurrent_rows(math) * shape.input_pitch;
  shape.weight_bytes = gates * kRecurrentUnits * shape.warps * shape.pitch;
  shape.shared_bytes = shape.weight_bytes + 2 * (shape.state_bytes + shape.input_bytes);
  return shape;
}

/// All steps of all sequences.
struct RecurrentFusedParams {
  RecurrentCell cell;
  bool is_reversed;
  const void* input_gates;   ///< u [batch, steps, num_members, G*H]
  const void* weight;        ///< [num_members, G*H, H]
  const void* bias;          ///< [num_members, G*H]; null: none
  const void* first_hidden;  ///< [batch, num_members, H]; null: zeros
  const float* first_cell;   ///< likewise. lstm only
  float* last_cell;          ///< null: not wanted. lstm only
  void* y;                   ///< [batch, steps, num_members, H]
  RecurrentStrides input_strides, y_strides;
  RowStrides weight_strides, first_hidden_strides, first_cell_strides, last_cell_strides;
  int64_t bias_member_stride;
  int64_t num_members, batch, steps;
  int32_t hidden;
  RecurrentFusedShape shape;
  // Alignment to 16 bytes. Set by the launcher.
  bool inputs_are_aligned, weight_is_aligned, first_is_aligned, y_is_aligned;
};

}  // namespace wide::kernels
