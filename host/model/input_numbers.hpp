// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What whole numbers an input may hold, for whoever fills it.
#pragma once

#include <cstdint>

#include "wide/graph.hpp"

namespace wide {

/// Inclusive.
struct InputNumbers {
  int64_t first = 0, last = 1;
};

/// Ids that are in every table which they choose rows of, or lengths of every operand whose
/// positions they count, also where the input is read in another shape; else 0 and 1.
InputNumbers input_numbers(const Graph& graph, Value input);

}  // namespace wide
