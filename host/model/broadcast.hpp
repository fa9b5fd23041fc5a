// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How an operand repeats along x of a binary node: type inference, the placing of members and the
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

/// Computed, [B, C, 1, ..] of an x [B, C, ..]: each row of the batch repeats along the positions.
inline bool repeats_channels(const Shape& other, const Shape& x) {
  bool fits = x.rank() >= 3 && other.rank() == x.rank() && other[0] == x[0] && other[1] == x[1];
  for (int axis = 2; fits && axis < x.rank(); ++axis) fits = other[axis] == 1;
  return fits;
}

/// The same of features, or of channels that are last: [B, 1, .., D] of an x [B, .., D].
inline bool repeats_features(const Shape& other, const Shape& x) {
  bool fits =
      x.rank() >= 3 && other.rank() == x.rank() && other[0] == x[0] && other.back() == x.back();
  for (int axis = 1; fits && axis < x.rank() - 1; ++axis) fits = other[axis] == 1;
  return fits;
}

}  // namespace wide
