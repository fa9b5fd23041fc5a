// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring channels of a position, where channels are last: 16 bytes of them in one access, or
// a single one where addresses, strides or channels are not whole vectors.
#pragma once

#include "kernels/arch/load.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/common/vector_load.cuh"
#include "wide/channels.hpp"

namespace wide::kernels {

template <int kVector>
using Values = float[kVector];

template <int kVector, class T>
__device__ void load_channels(const T* from, Values<kVector>& values) {
  if constexpr (kVector == 1) {
    values[0] = to_float(arch::load(from));
  } else {
    const Vec16<T> vector = load_vec16_here(from);
#pragma unroll
    for (int e = 0; e < kVector; ++e) values[e] = to_float(vector.v[e]);
  }
}

/// Zeros if it does not exist: then nothing is read.
template <int kVector, class T>
__device__ void load_channels_if(const T* from, bool exists, Values<kVector>& values) {
  if constexpr (kVector == 1) {
    values[0] = exists ? to_float(arch::load(from)) : 0.0f;
  } else {
    const Vec16<T> vector = load_vec16_if(from, exists);
#pragma unroll
    for (int e = 0; e < kVector; ++e) values[e] = to_float(vector.v[e]);
  }
}

template <int kVector, class T>
__device__ void store_channels(T* to, const Values<kVector>& values) {
  if constexpr (kVector == 1) {
    *to = from_float<T>(values[0]);
  } else {
    Vec16<T> vector;
#pragma unroll
    for (int e = 0; e < kVector; ++e) vector.v[e] = from_float<T>(values[e]);
    store_vec16(to, vector);
  }
}

/// Position of a vector of outputs; its channel is one of those of all members.
struct ChannelPlace {
  int64_t batch, channel;
  int row, column;

  __device__ int64_t offset(const ChannelStrides& s, int64_t at_row, int64_t at_column) const {
    return batch * s.batch + channel + at_row * s.row + at_column * s.column;
  }
};

/// Of an operand with so many channels, of all members, in elements of `bytes`.
inline bool has_channel_vectors(const void* pointer, const ChannelStrides& s, int64_t channels,
                                int64_t bytes) {
  const int64_t vector = 16 / bytes;
  return is_aligned(pointer, s.row, s.column, vector, bytes) && s.batch % vector == 0 &&
         channels % vector == 0;
}

/// Of params whose x and y are such operands.
template <class Params>
bool has_channel_vectors(const Params& p, int64_t bytes) {
  const int64_t channels = p.num_members * p.channels;
  return has_channel_vectors(p.x, p.x_strides, channels, bytes) &&
         has_channel_vectors(p.y, p.y_strides, channels, bytes);
}

}  // namespace wide::kernels
