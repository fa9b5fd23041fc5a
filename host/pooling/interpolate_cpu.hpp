// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the CPU device's interpolate of both layouts shares: the bits are the same.
#pragma once

#include <cmath>

#include "kernels/pooling/interpolate_params.hpp"

namespace wide::interpolate_cpu {

inline kernels::LinearTap tap_of(const kernels::LinearAxis& axis, int64_t output) {
  return kernels::linear_tap(axis, static_cast<int>(output), [&](int64_t n, int64_t& left) {
    left = n % axis.parts;
    return n / axis.parts;
  });
}

/// (1 - weight) a + weight b, so rounded that equal ones give their value, by any instructions.
inline float between(float a, float b, float weight) {
  return std::fma(weight, b, (1.0f - weight) * a);
}

}  // namespace wide::interpolate_cpu
