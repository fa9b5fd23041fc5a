// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the CPU device goes through packed rows: `wide` spreads all rows of all members over the
// threads at once, `sequential` one member's rows after the other's.
#pragma once

#include <algorithm>

#include "host/core/parallel.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/vectorised.hpp"
#include "host/core/wide_strategy.hpp"
#include "host/pointwise/packed_rows.hpp"

namespace wide {

/// body(row, member), from several threads, vectorised.
template <class Body>
void for_each_row(const Context& context, const PackedRows& rows, WideStrategy strategy,
                  const Body& body) {
  constexpr int64_t kElementsPerTask = 1 << 15;  // some tens of microseconds
  if (rows.features == 0) return;
  const int64_t at_once = strategy == WideStrategy::wide ? rows.num_members : 1;
  const int64_t step = std::max<int64_t>(1, kElementsPerTask / (rows.features * at_once));
  for (int64_t first = 0; first < rows.num_members; first += at_once) {
    parallel_for(context, (rows.rows + step - 1) / step, [&](int64_t task) {
      const int64_t end = std::min(rows.rows, (task + 1) * step);
      call_vectorised([&] {
        for (int64_t row = task * step; row < end; ++row) {
          for (int64_t n = first; n < first + at_once; ++n) body(row, n);
        }
      });
    });
  }
}

}  // namespace wide
