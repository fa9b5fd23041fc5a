// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of the kernels of whole multilayer perceptrons, and their division of shared memory:
// plain numbers, which the host chooses without a GPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wide/epilogue.hpp"
#include "wide/strides.hpp"

namespace wide::kernels {

/// The type that is multiplied, sums always in fp32; fp32 on its own units.
enum class MlpMath : uint8_t { fp16, bf16, tf32, fp32 };

constexpr int kMaxMlpLayers = 16, kMaxMlpWidth = 256;
/// Outputs that are computed together: this many rows of a weight are a strip, copied in one piece.
constexpr int kMlpStrip = 64;
constexpr int kMaxMlpWarps = 8, kMaxMlpSlots = 4;

/// Rows of x that a warp takes through all layers at a time.
constexpr int mlp_warp_rows(MlpMath math) {
  return math == MlpMath::fp32 ? 8 : 16;
}
constexpr int mlp_element_bytes(MlpMath math) {
  return math == MlpMath::fp16 || math == MlpMath::bf16 ? 2 : 4;
}
/// Buffers of a warp's rows: 16-bit activations stay in registers, and x and y share one.
constexpr int mlp_buffers(MlpMath math) {
  return mlp_element_bytes(math) == 2 ? 1 : 2;
}

/// Bytes from the beginning of a member's weights: wide/mlp.hpp, MlpLayerPlace.
struct MlpFusedLayer {
  int32_t in, out;
  int32_t bias, weight;
  int32_t row_bytes;
};

struct MlpFusedNet {
  MlpFusedLayer layers[kMaxMlpLayers];
  int32_t num_layers, num_strips;
  int32_t bias_bytes;    ///< of all layers; 0: no biases
  int32_t weight_bytes;  ///< following the biases
};

/// A block's division of shared memory: biases, the warps' rows, strips of weights, the warps' row
/// tables where rows are routed. Strips are either all resident as long as the block runs, or
/// stream through a ring of slots.
struct MlpFusedShape {
  int32_t warps;
  int32_t pitch;  ///< bytes between rows of a warp's buffer
  int32_t buffer_bytes;
  int32_t slot_bytes;
  int32_t slots;  ///< 0: all weights stay
  int32_t shared_bytes;
  int32_t blocks_per_member;
};

/// Which rows are whose, where the device alone knows; first_rows is null where all members have
/// as many.
struct MlpRouting {
  const int32_t* first_rows;  ///< [num_members + 1]
  const int32_t* order;       ///< [rows]
  const float* gates;         ///< [rows], or null
  int32_t choices;            ///< rows of `order` that read one row of x
  int32_t tile;               ///< rows of a block at most: a multiple of its warps'
  bool gathers, scatters;
};

/// Where a warp's rows of x and y are, or kNone, and their gates: in shared memory.
struct MlpRowTable {
  static constexpr int32_t kNone = -1;
  int32_t x[16], y[16];
  float gates[16];
};

struct MlpFusedParams {
  const void* x;        ///< [rows, num_members, in]; member stride 0: shared. Routed: [rows, in]
  const void* weights;  ///< [num_members, bytes]
  void* y;              ///< [rows, num_members, out]. Routed: [rows, out]
  int64_t num_members;
  int64_t rows;                     ///< per member. Routed: of all members
  RowStrides x_strides, y_strides;  ///< Routed: member strides are 0
  MlpRouting routing;
  int64_t weights_member_bytes;
  MlpFusedNet net;
  MlpFusedShape shape;
  Activation activation, last_activation;
  bool x_is_aligned, y_is_aligned;  ///< to 16 bytes. Set by the launcher
};

/// Bytes of a padded row of `features` features, as in weights.
constexpr int mlp_row_bytes(int features, int element_bytes) {
  return (features * element_bytes + 31) / 32 * 32 + 16;
}

constexpr int mlp_max_width(const MlpFusedNet& net) {
  int width = 0;
  for (int l = 0; l < net.num_layers; ++l) {
    width = std::max(width, std::max(net.layers[l].in, net.layers[l].out));
  }
  return width;
}

/// The widest activations that the kernel for 16 bits has registers for.
constexpr int mlp_register_width(const MlpFusedNet& net) {
  const int width = mlp_max_width(net);
  return width <= 64 ? 64 : width <= 128 ? 128 : 256;
}

/// For a block of `warps` warps; `slots`: of the ring, 0 where all weights stay. The number of
/// blocks per member is left open.
constexpr MlpFusedShape mlp_fused_shape(const MlpFusedNet& net, MlpMath math, int warps, int slots,
                                        bool is_routed = false) {
  const int ends = std::max(net.layers[0].in, net.layers[net.num_layers - 1].out);
  MlpFusedShape shape{};
  shape.warps = warps;
  shape.slots = slots;
  shape.pitch =
      mlp_row_bytes(mlp_buffers(math) == 1 ? ends : mlp_max_width(net), mlp_element_bytes(math));
  shape.buffer_bytes = mlp_warp_rows(math) * shape.pitch;
  for (int l = 0; l < net.num_layers; ++l) {
    const MlpFusedLayer& layer = net.layers[l];
    shape.slot_bytes = std::max(shape.slot_bytes, std::min(layer.out, kMlpStrip) * layer.row_bytes);
  }
  shape.shared_bytes = net.bias_bytes + warps * mlp_buffers(math) * shape.buffer_bytes +
                       (slots == 0 ? net.weight_bytes : slots * shape.slot_bytes) +
                       (is_routed ? warps * static_cast<int>(sizeof(MlpRowTable)) : 0);
  return shape;
}

}  // namespace wide::kernels
