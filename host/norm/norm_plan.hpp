// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks that the problems of all norms share.
#pragma once

#include <string_view>

#include "host/core/check.hpp"
#include "host/core/rows.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// A finite number >= 0.
void require_epsilon(std::string_view primitive, float epsilon);

/// The member stride of a problem's parameters [num_members, count]; 0 where they are absent.
inline void complete_parameter(const ArgumentName& field, int64_t& stride, bool is_present,
                               int64_t num_members, int64_t count) {
  stride = is_present ? complete_stride(field, stride, num_members, count) : 0;
}

/// The member stride of parameters [num_members, count], `axes` in messages, of `dtype`; `count`
/// where there is one member.
int64_t parameter_stride(std::string_view primitive, const char* argument,
                         const ConstTensorView& view, std::string_view axes, int64_t num_members,
                         int64_t count, Dtype dtype);

}  // namespace wide
