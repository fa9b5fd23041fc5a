// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whole multilayer perceptrons: h_l[b, n, o] = f_l(sum_i w_l[n, o, i] h_{l-1}[b, n, i] +
// bias_l[n, o]), all layers of all members in one launch.
//
// Plan: a block has one member, and a part of its rows; each of its warps takes 16 rows (8 on the
// fp32 units) through all layers, then the next 16. Activations are private to the warp, so that
// warps wait for each other only where weights arrive. A layer is computed in strips of 64 outputs:
// a strip is 64 rows of the weight, one run of bytes, which cp.async copies unchanged, since rows
// are padded so that eight rows' same chunk is in eight different banks.
//
//   all weights fit     strip  0 1 2 3 ...   all loads start at once; a strip is waited for when
//                                            first needed, and stays for the rows that follow
//   they do not         slot   0 1 2 0 1 ..  a ring: strip s + slots - 1 is loaded while s is
//                                            multiplied, again for every round of rows
//
// Shared memory: biases of all layers | each warp's rows of x, then y (with fp32 elements: also the
// activations between layers) | weights | where rows are routed, each warp's row table.
//
// Routed rows: a block finds its member and rows by its slot (routed_block.cuh), and has weights
// fetched only where there are any. Its warps read and write rows by tables of where these are.
//
// Every output is summed in order of k by one warp, and rows are independent: its bits depend
// neither on the shape of blocks nor on N.
// Source: Mueller et al., "Real-time Neural Radiance Caching for Path Tracing", section 5 (fully
// fused networks); register chaining as of P in Dao, "FlashAttention-2".
#pragma once

#include "kernels/arch/cp_async.cuh"
#include "kernels/arch/grid.cuh"
#include "kernels/arch/prefetch.cuh"
#include "kernels/common/activation.cuh"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/routed_block.cuh"
#include "kernels/common/routed_slots.hpp"
#include "kernels/common/row_tile.cuh"
#include "kernels/fused/mlp_fused.hpp"

namespace wide::kernels {

constexpr int kMlpBlocksOf8 = kMlpStrip / 8;  // of an instruction's outputs, per strip

/// Waits until at most `pending` of this thread's groups of copies are in flight, or fewer.
__device__ inline void wait_for_copies(int pending) {
  switch (pending) {
    case 0:
      return arch::cp_async_wait<0>();
    case 1:
      return arch::cp_async_wait<1>();
    case 2:
      return arch::cp_async_wait<2>();
    default:
      return arch::cp_async_wait<3>();
  }
}

/// Copies `bytes`, a multiple of 16, by all threads of the block.
__device__ inline void copy_run(char* to, const char* from, int bytes) {
  const int step = static_cast<int>(blockDim.x) * kChunkBytes;
  for (int byte = static_cast<int>(threadIdx.x) * kChunkBytes; byte < bytes; byte += step) {
    arch::cp_async_16(to + byte, from + byte, kChunkBytes);
  }
}

/// The strips of a member's weights, one after another, round after round. Called uniformly by all
/// threads of the block.
class MlpStrips {
 public:
  __device__ MlpStrips(const MlpFusedParams& p, const char* blob, char* place, int rounds)
      : p_(p), blob_(blob), place_(place), left_(p.net.num_strips * (stays() ? 1 : rounds)) {}

  /// Starts loading what fits; this thread's earlier copies belong to the first strip.
  __device__ void start() {
    const int room = stays() ? p_.net.num_strips : p_.shape.slots - 1;
    for (int i = 0; i < room; ++i) load();
  }

  /// Waits for the next strip, of those outputs of that layer; the one before is no longer used.
  __device__ const char* next(int layer, int strip) {
    const int slot = step_;
    if (!stays() || step_ < p_.net.num_strips) {
      wait_for_copies(stays() ? p_.net.num_strips - 1 - step_ : p_.shape.slots - 2);
      __syncthreads();
      if (!stays()) load();  // into the previous strip's slot
      step_ = !stays() && step_ == p_.shape.slots - 1 ? 0 : step_ + 1;
    }
    return place_ + (stays() ? offset_of(layer, strip) : slot * p_.shape.slot_bytes);
  }

 private:
  __device__ bool stays() const { return p_.shape.slots == 0; }
  __device__ int offset_of(int layer, int strip) const {
    const MlpFusedLayer& of = p_.net.layers[layer];
    return of.weight - p_.net.bias_bytes + strip * kMlpStrip * of.row_bytes;
  }

  __device__ void load() {
    if (left_ > 0) {
      const MlpFusedLayer& layer = p_.net.layers[layer_];
      const int offset = offset_of(layer_, strip_);
      const int outputs = min(layer.out - strip_ * kMlpStrip, kMlpStrip);
      char* to = place_ + (stays() ? offset : slot_ * p_.shape.slot_bytes);
      copy_run(to, blob_ + p_.net.bias_bytes + offset, outputs * layer.row_bytes);
      slot_ = slot_ == p_.shape.slots - 1 ? 0 : slot_ + 1;
      if (++strip_ * kMlpStrip >= layer.out) {
        strip_ = 0;
        layer_ = layer_ == p_.net.num_layers - 1 ? 0 : layer_ + 1;
      }
      --left_;
    }
    arch::cp_async_commit();  // empty groups keep the pending count
  }

  const MlpFusedParams& p_;
  const char* blob_;
  char* place_;
  int left_;                              // still to be loaded
  int layer_ = 0, strip_ = 0, slot_ = 0;  // of the next one to be loaded
  int step_ = 0;                          // strips waited for; in a ring the next one's slot
};

/// Calls f(values[i], i) for all i, in a loop that is not unrolled: f's code exists once, and since
/// registers have no runtime index, the values rotate past it.
template <int count, int size, class F>
__device__ inline void for_each_in_turn(float (&values)[count][size], const F& f) {
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    f(values[0], i);
#pragma unroll
    for (int e = 0; e < size; ++e) {
      const float first = values[0][e];
#pragma unroll
      for (int next = 1; next < count; ++next) values[next - 1][e] = values[next][e];
      values[count - 1][e] = first;
    }
  }
}

/// A warp's view of a strip of a layer.
struct MlpStripOf {
  const MlpFusedLayer& layer;
  Activation activation;
  const char* weights;  ///< [outputs, row_bytes]
  const char* biases;   ///< of the strip's outputs; null: none
  int outputs;
  const float* gates;  ///< of the warp's rows, behind the activation; null: none
};

/// The weight of an instruction's B: for outputs 16 `pair` to 16 `pair` + 15 the lane's row and
/// chunk of ldmatrix's four matrices, at k 0. Rows past the last repeat the last one, and their
/// sums are discarded.
__device__ inline const char* b_weights(const MlpStripOf& strip, int pair, int lane) {
  const int row = min(16 * pair + lane / 16 * 8 + lane % 8, strip.outputs - 1);
  return strip.weights + row * strip.layer.row_bytes + lane / 8 % 2 * kChunkBytes;
}

/// Initialises a lane's sums of 16 rows and a strip with the biases of its columns.
template <class T>
__device__ inline void begin_sums(const MlpStripOf& strip, int lane,
                                  float (&sums)[kMlpBlocksOf8][4]) {
#pragma unroll
  for (int n = 0; n < kMlpBlocksOf8; ++n) {
    float bias[2] = {};
    if (strip.biases != nullptr && 8 * n < strip.outputs) {
      const T* of_lane = reinterpret_cast<const T*>(strip.biases) + 8 * n + lane % 4 * 2;
      bias[0] = to_float(of_lane[0]), bias[1] = to_float(of_lane[1]);
    }
    sums[n][0] = sums[n][2] = bias[0];
    sums[n][1] = sums[n][3] = bias[1];
  }
}

/// Whether a kernel is for routed rows, for rows in turn, or asks its parameters.
enum class MlpRowsOf : uint8_t { turn, routing, params };

template <MlpRowsOf rows_of>
__device__ inline bool is_routed(const MlpFusedParams& p) {
  if constexpr (rows_of == MlpRowsOf::params) return p.routing.first_rows != nullptr;
  return rows_of == MlpRowsOf::routing;
}

/// A block's rows: of one member, in turn or by its slot in routed order.
struct MlpBlock {
  uint32_t member;
  int rounds;
  int64_t row;  ///< the warp's first
  int64_t end;
};

/// Before wait_for_grid(), by one thread of each member: prefetches its biases, and weights as far
/// as they fit at once.
__device__ inline void prefetch_blob(const MlpFusedParams& p, const MlpBlock& block) {
  if (threadIdx.x > 0 || block.row > 0) return;
  const int32_t room = p.shape.slots == 0 ? p.net.weight_bytes : p.shape.slots * p.shape.slot_bytes;
  arch::prefetch_bulk(
      static_cast<const char*>(p.weights) + int64_t{block.member} * p.weights_member_bytes,
      static_cast<uint32_t>(p.net.bias_bytes + min(room, p.net.weight_bytes)));
}

/// From one round's rows to the next's.
template <int kRows>
__device__ inline int64_t rows_at_once(const MlpFusedParams& p) {
  return int64_t{p.shape.blocks_per_member} * p.shape.warps * kRows;
}

template <int kRows>
__device__ inline MlpBlock block_in_turn(const MlpFusedParams& p, int warp) {
  const auto per_member = static_cast<uint32_t>(p.shape.blocks_per_member);
  const int64_t at_once = rows_at_once<kRows>(p);
  return {blockIdx.x / per_member, static_cast<int>((p.rows + at_once - 1) / at_once),
          (int64_t{blockIdx.x % per_member} * p.shape.warps + warp) * int64_t{kRows}, p.rows};
}

/// No rounds where there are no rows; rows of none are of member num_members.
template <int kRows>
__device__ inline MlpBlock routed_block(const MlpFusedParams& p, int warp) {
  const RoutedBlock found = rows_of_slot({p.routing.first_rows, static_cast<int32_t>(p.rows),
                                          static_cast<uint32_t>(p.num_members), p.routing.tile},
                                         blockIdx.x);
  const int at_once = p.shape.warps * kRows;
  return {static_cast<uint32_t>(found.member), (found.count + at_once - 1) / at_once,
          found.first + warp * kRows, found.first + found.count};
}

/// TileRows' places by a table.
struct TablePlaces {
  const int32_t* places;
  __device__ bool has(int row) const { return places[row] != MlpRowTable::kNone; }
  __device__ int operator()(int row) const { return places[row]; }
};

/// Fills a warp's table, visible to all of it but for the gate, which the lane of its row returns:
/// nobody waits for it yet. `first` is in routed order.
__device__ inline float find_rows(const MlpFusedParams& p, int64_t first, int count,
                                  MlpRowTable& table) {
  const MlpRouting& routing = p.routing;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  float gate = 0;
  if (lane < count) {
    const auto in_order = static_cast<int32_t>(first) + lane;
    const int32_t row = arch::load(routing.order + in_order);
    const bool exists = row >= 0 && row < p.rows;
    const uint32_t read = static_cast<uint32_t>(row) / static_cast<uint32_t>(routing.choices);
    const int32_t x = routing.gathers ? static_cast<int32_t>(read) : in_order;
    table.x[lane] = exists ? x : MlpRowTable::kNone;
    table.y[lane] = !exists ? MlpRowTable::kNone : routing.scatters ? row : in_order;
    if (exists && routing.gates != nullptr) gate = arch::load(routing.gates + row);
  }
  __syncwarp();
  return gate;
}

/// Starts loading a warp's rows of x.
template <class Rows, MlpRowsOf rows_of>
__device__ inline void load_rows(const MlpFusedParams& p, const MlpBlock& block, int count,
                                 char* own, MlpRowTable& table) {
  using T = typename Rows::Element;
  const auto load = [&]<class Places>(const T* x, const Places& places) {
    load_tile_rows<T, Rows::kRows, 2>(
        own, p.shape.pitch,
        TileRows<const T, Places>{x, p.x_strides.row, count, p.net.layers[0].in, p.x_is_aligned,
                                  places},
        TileThreads::of_warp());
  };
  const T* x = static_cast<const T*>(p.x);
  if (!is_routed<rows_of>(p)) {
    return load(x + int64_t{block.member} * p.x_strides.member + block.row * p.x_strides.row,
                RowsInTurn{});
  }
  const float gate = find_rows(p, block.row, count, table);
  load(x, TablePlaces{table.x});
  if (threadIdx.x % 32 < Rows::kRows) table.gates[threadIdx.x % 32] = gate;
}

/// Writes a warp's rows of y from `tile`.
template <class T, MlpRowsOf rows_of>
__device__ inline void store_rows(const MlpFusedParams& p, const MlpBlock& block, int count,
                                  const char* tile, const MlpRowTable& table) {
  const int features = p.net.layers[p.net.num_layers - 1].out;
  const auto store = [&]<class Places>(T* y, const Places& places) {
    store_tile_rows<T>(
        tile, p.shape.pitch,
        TileRows<T, Places>{y, p.y_strides.row, count, features, p.y_is_aligned, places},
        TileThreads::of_warp());
  };
  T* y = static_cast<T*>(p.y);
  if (!is_routed<rows_of>(p)) {
    return store(y + int64_t{block.member} * p.y_strides.member + block.row * p.y_strides.row,
                 RowsInTurn{});
  }
  store(y, TablePlaces{table.y});
}

/// The warp's rows of a round; possibly none where other warps have some left.
template <int kRows>
__device__ inline int rows_of_round(const MlpBlock& block) {
  return static_cast<int>(max(min(block.end - block.row, int64_t{kRows}), int64_t{0}));
}

/// Zeros for the rows of no member.
template <class Rows>
__device__ inline void store_zeros(const MlpFusedParams& p, MlpBlock block, char* own,
                                   MlpRowTable& table) {
  for (int byte = static_cast<int>(threadIdx.x % 32) * 4; byte < p.shape.buffer_bytes;
       byte += 128) {
    *reinterpret_cast<uint32_t*>(own + byte) = 0;
  }
#pragma unroll 1
  for (int round = 0; round < block.rounds; ++round, block.row += rows_at_once<Rows::kRows>(p)) {
    const int count = rows_of_round<Rows::kRows>(block);
    find_rows(p, block.row, count, table);
    store_rows<typename Rows::Element, MlpRowsOf::routing>(p, block, count, own, table);
    __syncwarp();  // the next rows replace the table
  }
}

template <class Rows, MlpRowsOf rows_of>
__global__ void __launch_bounds__(32 * kMaxMlpWarps, 1)
    mlp_fused(const __grid_constant__ MlpFusedParams p) {
  using T = typename Rows::Element;
  extern __shared__ __align__(128) char shared[];
  const int warp = static_cast<int>(threadIdx.x / 32);
  MlpBlock block = block_in_turn<Rows::kRows>(p, warp);
  char* own = shared + p.net.bias_bytes + warp * Rows::kBuffers * p.shape.buffer_bytes;
  char* weights = shared + p.net.bias_bytes + p.shape.warps * Rows::kBuffers * p.shape.buffer_bytes;
  // Last of all, and only where rows are routed.
  MlpRowTable& table =
      *(reinterpret_cast<MlpRowTable*>(shared + p.shape.shared_bytes) - p.shape.warps + warp);

  if (!is_routed<rows_of>(p)) prefetch_blob(p, block);
  arch::follow_grid();
  if (is_routed<rows_of>(p)) {
    block = routed_block<Rows::kRows>(p, warp);
    if (block.rounds == 0) return;
    if (block.member == p.num_members) return store_zeros<Rows>(p, block, own, table);
  }
  const auto* blob =
      static_cast<const char*>(p.weights) + int64_t{block.member} * p.weights_member_bytes;
  const MlpFusedLayer& last = p.net.layers[p.net.num_layers - 1];
  MlpStrips strips(p, blob, weights, block.rounds);
  Rows rows;
#pragma unroll 1
  for (int round = 0; round < block.rounds; ++round, block.row += rows_at_once<Rows::kRows>(p)) {
    const int count = rows_of_round<Rows::kRows>(block);
    if (count > 0) load_rows<Rows, rows_of>(p, block, count, own, table);
    if (round == 0) {
      copy_run(shared, blob, p.net.bias_bytes);
      strips.start();
    } else {
      arch::cp_async_commit();
    }
#pragma unroll 1
    for (int l = 0; l < p.net.num_layers; ++l) {
      const MlpFusedLayer& layer = p.net.layers[l];
      const bool is_last = l == p.net.num_layers - 1;
      const Activation activation = is_last ? p.last_activation : p.activation;
#pragma unroll 1
      for (int strip = 0; strip * kMlpStrip < layer.out; ++strip) {
        const char* arrived = strips.next(l, strip);
        if (count == 0) continue;
        if (l == 0 && strip == 0) {
          if (round > 0) {
            arch::cp_async_wait<0>();
            __syncwarp();
          }
          rows.take(own, p.shape, layer);
        }
        const int first = strip * kMlpStrip;
        rows.multiply(
            {layer, activation, arrived,
             p.net.bias_bytes > 0 ? shared + layer.bias + first * static_cast<int>(sizeof(T))
                                  : nullptr,
             min(layer.out - first, kMlpStrip),
             rows_of != MlpRowsOf::turn && is_last && p.routing.gates != nullptr ? table.gates
                                                                                 : nullptr},
            strip);
      }
      if (count > 0) rows.finish_layer(layer);
    }
    if (count > 0) {
      store_rows<T, rows_of>(p, block, count, rows.put(own, p.shape, last), table);
      __syncwarp();  // the next rows of x replace them
    }
  }
}

template <class Rows>
auto* mlp_kernel(bool is_routed) {
  if constexpr (Rows::kHasRoutedKernel) {
    return is_routed ? mlp_fused<Rows, MlpRowsOf::routing> : mlp_fused<Rows, MlpRowsOf::turn>;
  } else {
    return mlp_fused<Rows, MlpRowsOf::params>;
  }
}

template <class Rows>
cudaError_t launch_mlp(MlpFusedParams p, cudaStream_t stream) {
  constexpr int64_t kBytes = sizeof(typename Rows::Element), kVector = 16 / kBytes;
  p.x_is_aligned = is_aligned(p.x, p.x_strides.row, p.x_strides.member, kVector, kBytes);
  p.y_is_aligned = is_aligned(p.y, p.y_strides.row, p.y_strides.member, kVector, kBytes);
  if (p.num_members > kMaxGridBlocks / p.shape.blocks_per_member)
    return cudaErrorInvalidConfiguration;
  const bool is_routed = p.routing.first_rows != nullptr;
  const int64_t blocks = is_routed ? routed_slots(p.rows, p.num_members, p.routing.tile)
                                   : p.num_members * p.shape.blocks_per_member;
  if (blocks > kMaxGridBlocks) return cudaErrorInvalidConfiguration;
  auto* const kernel = mlp_kernel<Rows>(is_routed);
  const cudaError_t status = allow_shared_bytes(kernel, p.shape.shared_bytes);
  if (status != cudaSuccess) return status;
  return launch_kernel(kernel, static_cast<unsigned>(blocks),
                       static_cast<unsigned>(32 * p.shape.warps),
                       static_cast<size_t>(p.shape.shared_bytes), stream, p);
}

}  // namespace wide::kernels
