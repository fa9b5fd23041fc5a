// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks that the problems of all norms share.
#pragma once

#include <string_view>

#include "wide/tensor.hpp"

namespace wide {

/// A finite number >= 0.
void require_epsilon(std::string_view primitive, float epsilon);

/// A parameter's member stride where a problem written by hand gives none.
inline void complete_parameter(int64_t& stride, bool is_present, int64_t count) {
  if (!is_present) stride = 0;
  if (is_present && stride == 0) stride = count;
}

/// The member stride of parameters [num_members, count], `axes` in messages, of `dtype`; `count`
/// where there is one member.
int64_t parameter_stride(std::string_view primitive, const char* argument,
                         const ConstTensorView& view, std::string_view axes, int64_t num_members,
                         int64_t count, Dtype dtype);

}  // namespace wide
