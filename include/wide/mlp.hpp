// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp: whole multilayer perceptrons of N members in one call, so that activations between layers
// need not go through memory, nor layers take a launch each.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "wide/epilogue.hpp"
#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// The shapes, types, strides and activations of one call. Strides left 0 mean packed.
struct MlpProblem {
  int64_t num_members = 1;
  int64_t batch = 0;            ///< rows per member: B, or B*T
  std::vector<int64_t> widths;  ///< in, hidden.., out: one more than there are layers, each >= 1
  Dtype dtype = Dtype::fp32;    ///< of all operands: fp32, fp16 or bf16
  bool allow_tf32 = false;      ///< fp32 may be rounded to tf32 before it is multiplied
  bool shared_input = false;    ///< all members read one x [B, in]
  bool has_bias = false;        ///< in every layer
  Activation activation = Activation::relu;       ///< after every layer but the last
  Activation last_activation = Activation::none;  ///< after the last
  RowStrides x{}, y{};
  int64_t weights_member_stride = 0;  ///< a multiple of kMlpAlignment bytes
  friend bool operator==(const MlpProblem&, const MlpProblem&) = default;
};

inline constexpr int64_t kMlpAlignment = 16;  ///< of weights and their member stride, in bytes

/// Where a layer's parameters lie among those of its member, in elements. A member's weights are
/// contiguous: the biases of all layers, each padded with zeros to a multiple of 32 bytes; then,
/// layer by layer, the rows [in] of the weight, each padded with zeros to a multiple of 32 bytes
/// plus 16 bytes. So a kernel fetches a layer, or some rows of it, with a single copy, and the same
/// 16 bytes of eight rows lie in different banks of its memory; and a layer is a strided [N, out,
/// in] like any other.
struct MlpLayerPlace {
  int64_t bias = 0;    ///< of its bias [out], where the problem has any
  int64_t weight = 0;  ///< of its weight [out, in]
  int64_t row = 0;     ///< from one output's weights to the next
};
std::vector<MlpLayerPlace> mlp_layer_places(const MlpProblem& problem);
/// Elements of a member's weights.
int64_t mlp_member_elements(const MlpProblem& problem);

/// Operands of one call.
struct MlpArguments {
  ConstTensorView x;        ///< [B, N*in], [B, T, N*in] or [B, N, in]; shared: [B, in], [B, T, in]
  ConstTensorView weights;  ///< [N, mlp_member_elements(problem)], aligned to kMlpAlignment
  TensorView y;             ///< [B, N*out], [B, T, N*out] or [B, N, out]
};

/// One member's parameters, as a checkpoint holds them.
template <class View>
struct BasicMlpLayer {
  View weight{};  ///< [out, in]
  View bias{};    ///< [out], or absent
};
template <class View>
struct BasicMlpMember {
  std::vector<BasicMlpLayer<View>> layers;
};
using MlpMember = BasicMlpMember<ConstTensorView>;

/// Reads the problem off the operands; `like` gives what they do not show: widths, allow_tf32,
/// shared_input, has_bias and the activations.
MlpProblem describe_mlp(const MlpArguments& arguments, const MlpProblem& like);

extern template class PrimitivePlan<MlpProblem>;

/// How plan.run computes one problem on one device. Immutable: may run from several threads at a
/// time, each with its own Execution.
class MlpPlan : public PrimitivePlan<MlpProblem> {
 public:
  /// N members' layers -> weights [N, elements], with the zeros between. Runs once per set of
  /// weights, on `stream`.
  void prepare_weights(std::span<const MlpMember> members, const TensorView& weights,
                       Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& weights,
                       std::span<const BasicMlpMember<TensorView>> members, Stream stream) const;

  /// h_0 = x; h_l[b, n, o] = f_l(sum_i weight_l[n, o, i] h_{l-1}[b, n, i] + bias_l[n, o]); y = h_L,
  ///   with f_l = activation, for the last layer L last_activation.
  /// Layout: as MlpArguments says; any row and member strides of x and y, features contiguous, any
  ///         alignment of an element (16 bytes is fastest). Weights as MlpLayerPlace says, the
  ///         zeros included: prepare_weights() writes them. y overlaps no input.
  /// Types: one dtype in {fp32, fp16, bf16}; products and sums in fp32; every h_l is rounded to the
  ///        dtype once, whatever the strategy; tf32 products only with allow_tf32.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace: 0 where the layers are fused, else two
  ///         buffers of activations and the largest workspace of a layer.
  /// Errors: invalid_argument, unsupported, cuda, cublas: see plan.hpp.
  /// Threads: safe with an Execution each.
  /// Source: Mueller et al., "Real-time Neural Radiance Caching for Path Tracing" (fully fused
  ///         MLPs).
  void run(const MlpArguments& arguments, const Execution& execution) const;

 private:
  friend MlpPlan make_mlp_plan(const Context&, const MlpProblem&, const PlanOptions&);
  explicit MlpPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes the strategy. Errors: see plan.hpp; `fused` takes widths up to 256 and 16 layers.
MlpPlan make_mlp_plan(const Context& context, const MlpProblem& problem,
                      const PlanOptions& options = {});

}  // namespace wide
