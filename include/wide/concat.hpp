// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parts of members, side by side: concat, slice and flatten of packed tensors.
//
// The axis is the one along which members are joined, features or channels, and follows from the
// operand's name as in pack(): each member's own part is joined or cut, never the members. Whatever
// strides can express is a view and moves nothing.
#pragma once

#include <span>

#include "wide/pack.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// Features or channels [first, first + count) of every member: [.., N*D, ..] as [.., N, count, ..]
/// with an axis for members, which primitives with features last take as it is; those that read
/// num_members from their problem are told `features` there, too. Throws invalid_argument where D
/// is shorter than that, or members are stacked rather than joined.
TensorView slice(const PackedOperand& operand, const TensorView& packed, int64_t num_members,
                 int64_t first, int64_t count);
ConstTensorView slice(const PackedOperand& operand, const ConstTensorView& packed,
                      int64_t num_members, int64_t first, int64_t count);
inline TensorView slice(const PackedOperand& operand, Tensor& packed, int64_t num_members,
                        int64_t first, int64_t count) {
  return slice(operand, packed.view(), num_members, first, count);
}

/// [B, N*C, ..] as linear's x [B, N*in], in = C times all positions. Throws unsupported where a
/// member's channels and positions have gaps between them.
TensorView flatten(const TensorView& packed, int64_t num_members);
ConstTensorView flatten(const ConstTensorView& packed, int64_t num_members);
inline TensorView flatten(Tensor& packed, int64_t num_members) {
  return flatten(packed.view(), num_members);
}

/// whole[.., n, :, ..] = parts[0][.., n, :, ..], then parts[1]'s, ..: every member's parts,
/// consecutively along its features or channels, bit for bit.
/// Layout: parts[i] [.., N*D_i, ..], or slices [.., N, D_i, ..]; whole [.., N*sum D_i, ..]; any
///         strides.
/// Types: all dtypes; all share one.
/// Stream: asynchronous on `stream`, a launch for each part; does not synchronize. On the CPU done
///         at return.
/// Memory: all on one device; no workspace; whole overlaps no part.
/// Errors: invalid_argument (no part, shapes, dtypes, devices), cuda.
void concat(const PackedOperand& operand, std::span<const ConstTensorView> parts,
            int64_t num_members, const TensorView& whole, Stream stream);

}  // namespace wide
