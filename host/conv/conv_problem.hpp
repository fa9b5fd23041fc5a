// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What makes a convolution legal, with all strides filled in.
#pragma once

#include <string_view>

#include "wide/conv.hpp"

namespace wide {

inline constexpr std::string_view kConvName = "conv";  ///< in messages

std::string_view conv_layout_name(ChannelLayout layout);
inline ChannelLayout x_layout_of(const ConvProblem& problem) {
  return problem.x_layout.value_or(problem.layout);
}

/// Checks everything and fills in strides, so that equal layouts compare equal. Throws
/// invalid_argument.
ConvProblem complete_conv_problem(ConvProblem problem);

/// Throws invalid_argument for the first field in which the operands' problem differs from the
/// plan's.
void require_same_conv_problem(const ConvProblem& got, const ConvProblem& plan);

/// Whether y has no element.
bool is_empty(const ConvProblem& problem);

/// Elements of x that one output is summed over.
int64_t conv_terms(const ConvProblem& problem);

/// 1x1, stride 1, no padding, one group: every position of its own, a matrix product.
bool is_pointwise(const ConvProblem& problem);

}  // namespace wide
