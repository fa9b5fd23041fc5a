// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "wide/pooling.hpp"

namespace wide::catalog {

/// Row `row` of y in fp64, and the largest error that passes; x is one member's, dense, in the
/// problem's layout: [B, C, H, W], of whose y a row is [OW], or [B, H, W, C], of whose y it is [C].
///
/// Bound, with u = 2^-24: the largest value is one of x's, exact. A mean of a window of h rows of w
/// positions is added up along rows, then rows, or in more lanes than that and then as a tree of
/// at most 8 levels: an element goes through at most h + w + 8 roundings and the division (where a
/// block has a window to itself: h w / 2048 + 13, and at most 525 + h w / 2^20), so
///   (h + w + 9) u sum |x| / weight + u_out |y| + min
void pooling_reference(const PoolingProblem& problem, std::span<const double> x, int64_t row,
                       std::span<double> y, std::span<double> tolerance);

}  // namespace wide::catalog
