// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reads operands as the kernels see them: [rows, members, features], features contiguous, one
// stride per row and one per member.
//
// Strides that nothing steps along are given their packed value (the row stride of a single row,
// the member stride of a single member), so that equal layouts compare equal.
#pragma once

#include <cstdint>
#include <string_view>

#include "host/core/check.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct MemberRows {
  int64_t rows = 0;
  RowStrides strides;
};

/// A view [.., N*D], whose leading axes fold into one row stride, or member-explicit [.., N, D].
MemberRows member_rows(std::string_view primitive, std::string_view argument,
                       const ConstTensorView& view, int64_t num_members, int64_t features);

/// D of a view [.., N*D] or [.., N, D]; `known` is what the caller says it is, 0 for nothing. A
/// view that fits both forms is packed, but one of three axes and more whose rows of D have gaps
/// between them is refused: slices of members look like that, and so do padded rows.
int64_t member_features(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, int64_t num_members, int64_t known);

/// A view [.., D] that all members read: member stride 0.
MemberRows shared_rows(std::string_view primitive, std::string_view argument,
                       const ConstTensorView& view, int64_t features);

/// For outputs: no two (row, member) pairs may share an element.
void require_disjoint_rows(std::string_view primitive, std::string_view argument,
                           const MemberRows& rows, int64_t num_members, int64_t features);

/// {N*D, D}; throws invalid_argument on overflow.
RowStrides packed_rows(int64_t num_members, int64_t features);

/// A problem's strides as views are described: packed where both are 0 or there are no features,
/// and where nothing steps along one. Throws invalid_argument where one is below 0.
RowStrides fill_strides(const ArgumentName& name, const RowStrides& strides,
                        const RowStrides& packed, int64_t rows, int64_t num_members,
                        int64_t features);
/// The same, and throws where the extent does not fit in 64 bits.
RowStrides complete_strides(const ArgumentName& name, const RowStrides& strides,
                            const RowStrides& packed, int64_t rows, int64_t num_members,
                            int64_t features);

/// The only stride of a problem's [steps, count], refused likewise; `name` is the field's.
int64_t complete_stride(const ArgumentName& name, int64_t stride, int64_t steps, int64_t count);

}  // namespace wide
