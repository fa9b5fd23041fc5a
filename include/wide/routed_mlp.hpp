// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_mlp: multilayer perceptrons of N members, each for the rows of one batch that are routed
// to it: thousands of small networks, of which the device alone knows who computes what. A plan is
// for any routing.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "wide/epilogue.hpp"
#include "wide/mlp.hpp"
#include "wide/plan.hpp"
#include "wide/routing.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// The shapes, types, strides and activations of one call. Strides left 0 mean packed.
struct RoutedMlpProblem {
  int64_t num_members = 1;
  int64_t num_rows = 0;         ///< R, the routing's rows; up to 2^31 - 1
  std::vector<int64_t> widths;  ///< in, hidden.., out: one more than there are layers, each >= 1
  Dtype dtype = Dtype::fp32;    ///< of x, weights and y: fp32, fp16 or bf16
  bool allow_tf32 = false;      ///< fp32 may be rounded to tf32 before it is multiplied
  bool gathers = false;    ///< x lies by rows: row r reads x[r / choices]; else in routed order
  bool scatters = false;   ///< y lies by rows; else in routed order
  int64_t choices = 1;     ///< K, the rows that read one of x; 1 unless it gathers; divides R
  bool has_gates = false;  ///< a factor of each row of y, last of all
  bool has_bias = false;   ///< in every layer
  Activation activation = Activation::relu;       ///< after every layer but the last
  Activation last_activation = Activation::none;  ///< after the last
  int64_t x_row_stride = 0, y_row_stride = 0;
  int64_t weights_member_stride = 0;  ///< a multiple of kMlpAlignment bytes
  friend bool operator==(const RoutedMlpProblem&, const RoutedMlpProblem&) = default;
};

/// Operands of one call; gates are absent exactly where the problem has none.
struct RoutedMlpArguments {
  ConstTensorView x;           ///< [R, in]; that gathers: [R / K, in]
  ConstTensorView weights;     ///< [N, mlp_member_elements(..)], as mlp's, aligned to kMlpAlignment
  TensorView y;                ///< [R, out]; that scatters also [B, K*out], contiguous
  ConstTensorView gates{};     ///< fp32 [R] or [B, K], by rows, whether y lies so or not
  ConstTensorView first_rows;  ///< int32 [N + 1]: of a routing of R rows to N members
  ConstTensorView order;       ///< int32 [R]
};

/// Reads the problem off the operands; `like` gives what they do not show: widths, allow_tf32,
/// gathers, scatters, has_bias and the activations.
RoutedMlpProblem describe_routed_mlp(const RoutedMlpArguments& arguments,
                                     const RoutedMlpProblem& like);

extern template class PrimitivePlan<RoutedMlpProblem>;

/// How plan.run computes one problem on one device, whatever the routing. Immutable: may run from
/// several threads at a time, each with its own Execution.
class RoutedMlpPlan : public PrimitivePlan<RoutedMlpProblem> {
 public:
  /// N members' layers -> weights [N, elements], with the zeros between. Runs once per set of
  /// weights, on `stream`.
  void prepare_weights(std::span<const MlpMember> members, const TensorView& weights,
                       Stream stream) const;
  /// The inverse, bit for bit.
  void restore_weights(const ConstTensorView& weights,
                       std::span<const BasicMlpMember<TensorView>> members, Stream stream) const;

  /// For all members n, and all j in [first_rows[n], first_rows[n + 1]), with r = order[j]:
  ///   h_0 = x[from]; h_l[o] = f_l(sum_i weight_l[n, o, i] h_{l-1}[i] + bias_l[n, o]);
  ///   y[to] = gates[r] * h_L,
  ///   with f_l = activation, for the last layer L last_activation; `from` is r / K if it gathers
  ///   and j if not, `to` is r if it scatters and j if not.
  /// Rows of no member, those from first_rows[N] on, become zeros in y; their rows of x are not
  /// read.
  /// Layout: as RoutedMlpArguments says; any row strides of x and y, features contiguous; any
  ///         alignment of an element (16 bytes is fastest). Weights as MlpLayerPlace says, the
  ///         zeros included: prepare_weights() writes them. y overlaps no input.
  /// Types: x, weights and y share a dtype in {fp32, fp16, bf16}; gates are fp32; products and sums
  ///        in fp32; every h_l is rounded to the dtype once, the last one times its gate; tf32
  ///        products only with allow_tf32.
  /// Routing: one that routing.hpp describes, of these R rows and N members. Another one is not
  ///          noticed: y then is undefined, but nothing outside of the operands is read or written.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured:
  ///         what is launched depends on the problem only, so a replay follows a new routing.
  /// Memory: workspace_bytes() of execution.workspace: 0 where the layers are fused, else two
  ///         buffers of activations and the largest workspace of a layer.
  /// Errors: invalid_argument, unsupported, cuda: see plan.hpp.
  /// Threads: safe with an Execution each.
  /// Members: a row's bits depend on its own x and its member's parameters; but for `fused`, also
  ///          on the number of rows of that member and the row's place among them; never on other
  ///          members.
  /// Source: Reiser et al., "KiloNeRF: Speeding up Neural Radiance Fields with Thousands of Tiny
  ///         MLPs"; the kernel is mlp's.
  void run(const RoutedMlpArguments& arguments, const Execution& execution) const;

 private:
  friend RoutedMlpPlan make_routed_mlp_plan(const Context&, const RoutedMlpProblem&,
                                            const PlanOptions&);
  explicit RoutedMlpPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

/// Fixes the strategy. Errors: see plan.hpp; `fused` takes widths up to 256 and 16 layers.
RoutedMlpPlan make_routed_mlp_plan(const Context& context, const RoutedMlpProblem& problem,
                                   const PlanOptions& options = {});

}  // namespace wide
