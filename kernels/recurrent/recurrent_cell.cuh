// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One unit's step from its gates, in fp32: for the kernel that goes step by step and for the one
// that takes all steps.
#pragma once

#include "kernels/common/logistic.cuh"
#include "wide/recurrent_cell.hpp"

namespace wide::kernels {

/// h_t from u_t and v_t. `before` is h_{t-1}, for gru only; `state` is c_{t-1} and becomes c_t, for
/// lstm only.
template <RecurrentCell cell>
__device__ inline float recurrent_unit(const float (&u)[recurrent_gates(cell)],
                                       const float (&v)[recurrent_gates(cell)], float before,
                                       float& state) {
  if constexpr (cell == RecurrentCell::lstm) {
    const float taken = logistic(u[0] + v[0]), kept = logistic(u[1] + v[1]);
    state = kept * state + taken * tanhf(u[2] + v[2]);
    return logistic(u[3] + v[3]) * tanhf(state);
  } else {
    const float candidate = tanhf(u[2] + logistic(u[0] + v[0]) * v[2]);
    const float kept = logistic(u[1] + v[1]);
    return (1.0f - kept) * candidate + kept * before;
  }
}

/// Calls f.template operator()<cell>() for the runtime value, and returns what it returns.
template <class F>
auto with_recurrent_cell(RecurrentCell cell, const F& f) {
  return cell == RecurrentCell::lstm ? f.template operator()<RecurrentCell::lstm>()
                                     : f.template operator()<RecurrentCell::gru>();
}

}  // namespace wide::kernels
