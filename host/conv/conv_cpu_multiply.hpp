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

template <class Vector, int kRows>
void multiply_rows(const ConvTile& tile, int first) {
  constexpr int kLanes = 16, kVectors = kConvPositions / kLanes;
  const float* weights = tile.weights + first * tile.weight_stride;
  Vector sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = Vector::load(tile.sums[first + r] + v * kLanes);
    }
  }
  for (int t = 0; t < tile.depth; ++t) {
    Vector inputs[kVectors];
    for (int v = 0; v < kVectors; ++v) inputs[v] = Vector::load(tile.inputs[t] + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vector weight = Vector::broadcast(weights[r * tile.weight_stride + t]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Vector::fma(weight, inputs[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v].store(tile.sums[first + r] + v * kLanes);
  }
}

template <class Vector>
void multiply_tile(const ConvTile& tile) {
  int row = 0;
  for (; row + Vector::kTileRows <= tile.channels; row += Vector::kTileRows) {
    multiply_rows<Vector, Vector::kTileRows>(tile, row);
  }
  for (; row < tile.channels; ++row) multiply_rows<Vector, 1>(tile, row);
}

}  // namespace
}  // namespace wide::cpu
