// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's cells: a task is a step of some sequences, unit by unit in chunks.
#include <algorithm>

#include "host/core/independent.hpp"
#include "host/core/math_cpu.hpp"
#include "host/core/parallel.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/vectorised.hpp"
#include "host/recurrent/recurrent_run.hpp"

namespace wide {

namespace {

using kernels::RecurrentCellParams;

constexpr int64_t kChunk = 128;  ///< units whose gates stay in the first-level cache
constexpr int kMaxGates = 4;

/// A chunk's gates u and v as floats, the previous states, and the results.
struct Chunk {
  const float *u[kMaxGates], *v[kMaxGates];
  const float *before, *cell_before;  ///< for gru and lstm
  float *h, *cell_after;
  int64_t count;
};

inline float logistic(float x) {
  return 1.0f / (1.0f + cpu::exp(-x));
}

void run_lstm(const Chunk& c) {
  call_vectorised([&c] {
    WIDE_INDEPENDENT
    for (int64_t i = 0; i < c.count; ++i) {
      const float taken = logistic(c.u[0][i] + c.v[0][i]), kept = logistic(c.u[1][i] + c.v[1][i]);
      const float state = kept * c.cell_before[i] + taken * cpu::tanh(c.u[2][i] + c.v[2][i]);
      c.cell_after[i] = state;
      c.h[i] = logistic(c.u[3][i] + c.v[3][i]) * cpu::tanh(state);
    }
  });
}

void run_gru(const Chunk& c) {
  call_vectorised([&c] {
    WIDE_INDEPENDENT
    for (int64_t i = 0; i < c.count; ++i) {
      const float reset = logistic(c.u[0][i] + c.v[0][i]), kept = logistic(c.u[1][i] + c.v[1][i]);
      const float candidate = cpu::tanh(c.u[2][i] + reset * c.v[2][i]);
      c.h[i] = (1.0f - kept) * candidate + kept * c.before[i];
    }
  });
}

void run_sequence(const RecurrentCellParams& p, int64_t row, int64_t member) {
  const int gates = recurrent_gates(p.cell);
  const char* inputs = row_at(p.input_gates, p.input_strides, row, member, p.dtype);
  const char* hiddens = row_at(p.hidden_gates, p.hidden_strides, row, member, p.dtype);
  char* y = row_at(p.y, p.y_strides, row, member, p.dtype);
  float decoded[2 * kMaxGates + 1][kChunk], h[kChunk];
  const float zeros[kChunk] = {};
  for (int64_t first = 0; first < p.hidden; first += kChunk) {
    Chunk c{};
    c.count = std::min(kChunk, p.hidden - first);
    for (int g = 0; g < gates; ++g) {
      const int64_t at = g * p.hidden + first;
      c.u[g] = cpu::chunk_of(p.dtype, inputs, at, c.count, decoded[g]);
      c.v[g] = cpu::chunk_of(p.dtype, hiddens, at, c.count, decoded[kMaxGates + g]);
    }
    c.h = p.dtype == Dtype::fp32 ? reinterpret_cast<float*>(y) + first : h;
    c.before =
        p.before == nullptr
            ? zeros
            : cpu::chunk_of(p.dtype, row_at(p.before, p.before_strides, row, member, p.dtype),
                            first, c.count, decoded[2 * kMaxGates]);
    if (p.cell == RecurrentCell::gru) {
      run_gru(c);
    } else {
      const auto state = [&](auto* data, const RowStrides& strides) {
        return data + row * strides.row + member * strides.member + first;
      };
      c.cell_before =
          p.cell_before == nullptr ? zeros : state(p.cell_before, p.cell_before_strides);
      c.cell_after = state(p.cell_after, p.cell_after_strides);
      run_lstm(c);
    }
    if (p.dtype != Dtype::fp32) {
      encode_row(p.dtype, h, y + first * dtype_bytes(p.dtype), c.count);
    }
  }
}

}  // namespace

void run_recurrent_cell_cpu(const Context& context, const RecurrentCellParams& step) {
  constexpr int64_t kUnitsOfTask = 4096;  // some 50 us
  const int64_t sequences = step.batch * step.num_members;
  const int64_t of_task = std::max<int64_t>(kUnitsOfTask / step.hidden, 1);
  parallel_for(context, (sequences + of_task - 1) / of_task, [&](int64_t task) {
    const int64_t end = std::min(sequences, (task + 1) * of_task);
    for (int64_t i = task * of_task; i < end; ++i) {
      run_sequence(step, i / step.num_members, i % step.num_members);
    }
  });
}

}  // namespace wide
