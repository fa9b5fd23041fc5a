// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How a parameter repeats along x of a binary node: type inference, the placing of members and the
// folding of rows must agree on it.
#pragma once

#include "wide/shape.hpp"

namespace wide {

/// x's last axes, all of them: the parameter repeats along those in front.
inline bool is_of_last_axes(const Shape& parameter, const Shape& x) {
  const int missing = x.rank() - parameter.rank();
  bool fits = missing >= 1;
  for (int axis = 0; fits && axis < parameter.rank(); ++axis) {
    fits = parameter[axis] == x[axis + missing];
  }
  return fits;
}

/// [C, 1, ..] of an x [B, C, ..]: it repeats along the batch and the positions.
inline bool is_one_per_channel(const Shape& parameter, const Shape& x) {
  bool fits = x.rank() >= 3 && parameter.rank() == x.rank() - 1 && parameter[0] == x[1];
  for (int axis = 1; fits && axis < parameter.rank(); ++axis) fits = parameter[axis] == 1;
  return fits;
}

}  // namespace wide
