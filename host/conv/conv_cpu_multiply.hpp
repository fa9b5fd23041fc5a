// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tile's kernel, written once over a vector of sixteen floats. Included by one file per
// instruction set, after that file's target pragma: all definitions here are compiled for it, hence
// the anonymous namespace.
//
// A few channels' sums stay in registers over all terms; each term's positions are loaded
// once for all of them. `Vector` has load, broadcast, fma(a, b, sum), store and kTileRows.
#pragma once

#include "host/conv/conv_cpu_tile.hpp"

namespace wide::cpu {
namespace {

constexpr int kLanes = kConvLanes;

template <class Vector, int kRows, int kVectors, bool kSkips>
void multiply_rows(const ConvTile& tile, int first_channel, int first_position) {
  const int64_t stride = tile.weight_stride;
  const float* weights = tile.weights + first_channel * stride;
  float(*const all_sums)[kConvSpan] = tile.sums + first_channel;
  Vector sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = tile.is_first ? Vector::broadcast(0.0f)
                                 : Vector::load(all_sums[r] + first_position + v * kLanes);
    }
  }
  for (int t = 0; t < tile.depth; ++t) {
    const float* from = tile.inputs + tile.offsets[t] + first_position;
    Vector inputs[kVectors];
    for (int v = 0; v < kVectors; ++v) inputs[v] = Vector::load(from + v * kLanes);
    const int64_t term = kSkips ? tile.terms[t] : t;
    for (int r = 0; r < kRows; ++r) {
      const Vector weight = Vector::broadcast(weights[r * stride + term]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Vector::fma(weight, inputs[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v].store(all_sums[r] + first_position + v * kLanes);
    }
  }
}

/// Channels from `first` on, kRows at a time, and what is left half as many at a time.
template <class Vector, int kRows, int kVectors, bool kSkips>
void multiply_channels(const ConvTile& tile, int first, int first_position) {
  for (; first + kRows <= tile.channels; first += kRows) {
    multiply_rows<Vector, kRows, kVectors, kSkips>(tile, first, first_position);
  }
  if constexpr (kRows > 1) {
    multiply_channels<Vector, kRows / 2, kVectors, kSkips>(tile, first, first_position);
  }
}

/// Two vectors of positions at a time, and the last one alone.
template <class Vector, bool kSkips>
void multiply_positions(const ConvTile& tile) {
  constexpr int kRows = Vector::kTileRows;
  int at = 0;
  for (; at + kLanes < tile.positions; at += 2 * kLanes) {
    multiply_channels<Vector, kRows, 2, kSkips>(tile, 0, at);
  }
  if (at < tile.positions) multiply_channels<Vector, kRows, 1, kSkips>(tile, 0, at);
}

template <class Vector>
void multiply_tile(const ConvTile& tile) {
  if (tile.terms == nullptr) {
    multiply_positions<Vector, false>(tile);
  } else {
    multiply_positions<Vector, true>(tile);
  }
}

}  // namespace
}  // namespace wide::cpu
