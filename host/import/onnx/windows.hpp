// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What operators on positions have in common: attributes of a number for each axis of positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

/// The value, at least `least` and at most 2^30.
int64_t limited(Lowering& at, const char* what, int64_t value, int64_t least);
/// `usual` where there is no such attribute.
std::vector<int64_t> per_axis(Lowering& at, const char* attribute, size_t num_axes, int64_t usual,
                              int64_t least);
/// The last two axes' values.
PerAxis pair(const std::vector<int64_t>& values, int64_t usual);
/// The positions of x [B, C, L], [B, C, H, W] or [B, C, D, H, W].
std::span<const int64_t> positions_of(Lowering& at, Value x);
/// The weight's extents after its channels.
std::vector<int64_t> kernel_of(Lowering& at, Value x);
/// x, the weight, and the bias where there is one.
std::vector<Operand> with_weights(Lowering& at, Value x);

}  // namespace wide::onnx
