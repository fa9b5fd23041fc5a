// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters common to the norms over channels.
#pragma once

#include <cstdint>

#include "wide/channels.hpp"

namespace wide::kernels {

/// x, y [batch, members, channels, height, width], parameters [members, channels]; strides in
/// elements.
struct ChannelNormParams {
  const void* x = nullptr;
  const void* gamma = nullptr;  ///< null: 1
  const void* beta = nullptr;   ///< null: 0
  void* y = nullptr;            ///< may be x
  int64_t num_members = 0, channels = 0;
  int64_t batch = 0, height = 0, width = 0;
  ChannelStrides x_strides{}, y_strides{};
  int64_t gamma_member_stride = 0, beta_member_stride = 0;
  float epsilon = 0;
};

}  // namespace wide::kernels
