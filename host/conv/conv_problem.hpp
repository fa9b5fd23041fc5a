// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What makes a convolution legal, with all strides filled in.
#pragma once

#include <string>
#include <string_view>

#include "wide/conv.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline constexpr std::string_view kConvName = "conv";  ///< in messages

std::string_view conv_layout_name(ChannelLayout layout);
inline ChannelLayout x_layout_of(const ConvProblem& problem) {
  return problem.x_layout.value_or(problem.layout);
}

/// [outer, channels, D, H, W] or [outer, D, H, W, channels]; of rank 4 without D, of rank 3 without
/// D and H.
Shape conv_shape(ChannelLayout layout, int rank, int64_t outer, int64_t channels, int64_t depth,
                 const PerAxis& size);

/// Checks everything and fills in strides, so that equal layouts compare equal. Throws
/// invalid_argument.
ConvProblem complete_conv_problem(ConvProblem problem);

/// Throws invalid_argument for the first field in which the operands' problem differs from the
/// plan's.
void require_same_conv_problem(const ConvProblem& got, const ConvProblem& plan);

/// Whether y has no element.
bool is_empty(const ConvProblem& problem);

/// Whether there is more than one plane, of x, the kernel or padding: not an image.
bool is_volume(const ConvProblem& problem);

/// The same sums over fewer axes where no window spans one of the three: independent planes become
/// batch rows of images, independent positions of a plane become columns. For a completed problem;
/// unchanged where strides forbid it.
ConvProblem without_idle_axes(const ConvProblem& problem);

/// The same sums where a kernel's row is read as it lies, by one column of y alone (patches): its
/// columns become channels, contiguous ones; of x with channels first, channels become planes. For
/// a completed problem; unchanged where strides forbid it.
ConvProblem with_patches_as_channels(const ConvProblem& problem);

/// The same sums of tall patches, row by row of the kernel: its rows become planes. For a completed
/// problem; unchanged where rows of y share rows of x.
ConvProblem with_rows_as_planes(const ConvProblem& problem);

/// Positions of y, of all batch rows: images' pixels.
int64_t conv_positions(const ConvProblem& problem);

/// Elements of x that one output is summed over.
int64_t conv_terms(const ConvProblem& problem);

/// One tap, stride 1, no padding, one group: positions are independent, a matrix product.
bool is_pointwise(const ConvProblem& problem);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const ConvProblem& complete);
TuningKey tuning_key(const ConvProblem& problem);

}  // namespace wide
