// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of pooling's kernels, apart from their launchers: planning needs no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/common/divisor.hpp"
#include "wide/channels.hpp"

namespace wide::kernels {

/// Windows along rows or columns; adaptive pools use only the numbers of inputs and outputs.
struct PoolingAxis {
  int in = 1, out = 1;
  int kernel = 1, stride = 1, padding = 0, dilation = 1;
  Divisor by_out{};
};

/// x [batch, members, channels, rows, columns], y likewise; strides in elements.
struct PoolingParams {
  const void* x = nullptr;
  void* y = nullptr;
  int64_t num_members = 0, channels = 0, batch = 0;
  PoolingAxis rows, columns;
  ChannelStrides x_strides{}, y_strides{};
  bool counts_padding = true;
};

}  // namespace wide::kernels
