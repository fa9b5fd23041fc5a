// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands by which describe_x() measures the others, compared with the plan before that: where one
// of them differs, it is the one to name, not those that no longer fit it. All throw
// invalid_argument, and allocate nothing except for messages. A view without the axes in question
// passes: describe_x() names it anyway.
#pragma once

#include <cstdint>
#include <string_view>

#include "wide/tensor.hpp"

namespace wide {

/// Of [.., row_elements], however these elements are divided into axes:
/// "linear: x is [4, 24] with 4 rows, expected the plan's batch = 3".
void require_plan_rows(std::string_view primitive, std::string_view argument,
                       const ConstTensorView& view, int64_t row_elements, std::string_view field,
                       int64_t rows);

/// "flash_attention: k is [3, 5, 24], expected the plan's kv_seq = 4"; an axis below 0 counts from
/// the last one.
void require_plan_extent(std::string_view primitive, std::string_view argument,
                         const ConstTensorView& view, int axis, std::string_view field,
                         int64_t extent);

/// "linear: weight is [3, 10, 9], expected the plan's [num_members, out, in] = [3, 10, 8]"
void require_plan_shape(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, std::string_view axes, const Shape& shape);

/// "linear: x is fp16, expected the plan's dtype = fp32"
void require_plan_dtype(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, Dtype dtype);

}  // namespace wide
