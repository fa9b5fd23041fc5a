// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The state of one element while members are visited, and its result: the sums of ensemble's
// functions, in fp32, in the order of members.
#pragma once

#include "kernels/arch/math.cuh"
#include "wide/ensemble_function.hpp"

namespace wide::kernels {

/// parts: state passed on by sequential launches. add(value, k): the k-th member that counts, k
/// from 1; inverse: 1 / k. result(k): for k members.
template <EnsembleFunction kFunction>
struct EnsembleSum;

template <>
struct EnsembleSum<EnsembleFunction::mean> {
  static constexpr int kParts = 1;
  float parts[kParts] = {0.0f};

  __device__ void add(float value, int, float) { parts[0] += value; }
  __device__ float result(int k) const { return parts[0] / static_cast<float>(k); }
};

/// Welford's algorithm on differences to the first: a common offset costs no digits.
template <>
struct EnsembleSum<EnsembleFunction::variance> {
  static constexpr int kParts = 3;
  float parts[kParts] = {0.0f, 0.0f, 0.0f};  ///< the first, the mean of differences, their squares

  __device__ void add(float value, int k, float inverse) {
    if (k == 1) parts[0] = value;
    const float difference = value - parts[0], delta = difference - parts[1];
    parts[1] = fmaf(delta, inverse, parts[1]);
    parts[2] = fmaf(delta, difference - parts[1], parts[2]);
  }
  __device__ float result(int k) const {
    return parts[2] / static_cast<float>(max(k - 1, 0));  // 0 / 0 for one and for no member
  }
};

/// The largest, and the sum of exp(value - largest), rescaled whenever the largest grows.
template <>
struct EnsembleSum<EnsembleFunction::log_mean_exp> {
  static constexpr int kParts = 2;
  float parts[kParts] = {-INFINITY, 0.0f};

  __device__ void add(float value, int, float) {
    const float largest = parts[0];
    // Equal values differ by 0, infinite ones, too; NaN equals nothing and propagates.
    const float power =
        value == largest ? 1.0f : arch::exp2_approximately(-fabsf(value - largest) * kLog2E);
    parts[1] = value > largest ? fmaf(parts[1], power, 1.0f) : parts[1] + power;
    parts[0] = fmaxf(largest, value);
  }
  __device__ float result(int k) const { return parts[0] + logf(parts[1] / static_cast<float>(k)); }
};

}  // namespace wide::kernels
