// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Activations of the CPU's epilogues, in fp32.
#pragma once

#include "host/core/math_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "wide/epilogue.hpp"

namespace wide {

/// In place; one loop per activation.
inline void activate_cpu(Activation activation, float* values, int64_t count) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return cpu::map(values, values, count, cpu::relu);
    case Activation::gelu:
      return cpu::map(values, values, count, cpu::gelu);
    case Activation::gelu_tanh:
      return cpu::map(values, values, count, cpu::gelu_tanh);
    case Activation::silu:
      return cpu::map(values, values, count, cpu::silu);
  }
}

}  // namespace wide
