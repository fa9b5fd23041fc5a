// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// interpolate: signals and images of every channel of every member with more positions or fewer, by
// linear interpolation between neighbours, in one call. Signals are images of one row.
#pragma once

#include <memory>
#include <utility>

#include "wide/channels.hpp"
#include "wide/coordinate_mode.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

struct InterpolateProblem {
  int64_t num_members = 1;
  int64_t batch = 0;                      ///< B
  int64_t channels = 0;                   ///< C, of one member
  int64_t height = 1;                     ///< rows of positions of x; 1 for signals
  int64_t width = 0;                      ///< positions in a row of x
  int64_t out_height = 0, out_width = 0;  ///< of y; 0: interpolate_outputs()
  CoordinateMode coordinates = CoordinateMode::half_pixel;
  /// Of positions, by which coordinates go unless they are aligned; 0: out_height / height and
  /// out_width / width.
  float row_scale = 0, column_scale = 0;
  Dtype dtype = Dtype::fp32;                             ///< of x and y: fp32, fp16 or bf16
  ChannelLayout layout = ChannelLayout::channels_first;  ///< of x and y
  ChannelStrides x{}, y{};
  friend bool operator==(const InterpolateProblem&, const InterpolateProblem&) = default;
};

struct InterpolateArguments {
  ConstTensorView x;  ///< [B, N*C, L] or [B, N*C, H, W]; channels last [B, L, N*C], [B, H, W, N*C]
  TensorView y;       ///< as x, of the outputs' size
};

/// The number of outputs for `size` positions: floor(size * scale), at least 1; `size` where the
/// scale is 0 or none. Never throws.
int64_t interpolate_outputs(int64_t size, float scale);

/// Reads the problem off the operands; `like` gives what they do not show: num_members, the
/// layout, the coordinates and scales.
InterpolateProblem describe_interpolate(const InterpolateArguments& arguments,
                                        const InterpolateProblem& like);

extern template class PrimitivePlan<InterpolateProblem>;

/// There are no parameters, so nothing is prepared.
class InterpolatePlan : public PrimitivePlan<InterpolateProblem> {
 public:
  /// y[b, n, c, i, j] = x[b, n, c, .., ..] between rows and between columns: along an axis of L
  /// positions and O outputs, output i is (1 - t) x[k] + t x[k + 1], where k + t, 0 <= t < 1, is
  /// its position, limited to 0 to L - 1, with the scale s, or O / L where that is 0:
  ///   half_pixel          (i + 0.5) / s - 0.5
  ///   pytorch_half_pixel  the same, and 0 where O is 1
  ///   align_corners       i (L - 1) / (O - 1), and 0 where O is 1
  ///   asymmetric          i / s
  /// A neighbour of weight 0 does not count, not even if it is infinite. Positions are exact, t is
  /// rounded down to a multiple of 2^-24; equal neighbours give their value exactly. Fewer outputs
  /// than positions skip some: nothing is averaged (no antialias).
  /// Layout: as InterpolateArguments says; the last axis contiguous, any other strides, any
  ///         alignment of an element. y overlaps nothing. Either layout gives the same bits.
  /// Types: x and y share a dtype in {fp32, fp16, bf16}; sums in fp32.
  /// Limits: H * W and OH * OW are at most 2^30; (O - 1) / s at most L. On CUDA a launch has up to
  ///         2^31 - 1 blocks: if one for all members exceeds this, wide is unsupported and "auto"
  ///         takes sequential; if a single member exceeds it, making the plan throws unsupported.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace, which is 0.
  /// Errors: invalid_argument, unsupported (strides of another layout), cuda.
  /// Threads: safe with an Execution each.
  void run(const InterpolateArguments& arguments, const Execution& execution) const;

 private:
  friend InterpolatePlan make_interpolate_plan(const Context&, const InterpolateProblem&,
                                               const PlanOptions&);
  explicit InterpolatePlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

InterpolatePlan make_interpolate_plan(const Context& context, const InterpolateProblem& problem,
                                      const PlanOptions& options = {});

}  // namespace wide
