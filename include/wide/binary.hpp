// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// binary: two packed tensors, element by element, in one call.
//
// Matrix products are not functions of this primitive. a b^T of [N, B, M, K] and [N, B, K', K] is
// linear as it stands: N*B members, x and y the views [M, N*B, .] of a and of the result, b the
// weight. Of a b, with b [N, B, K, K'], b is transposed first, as linear's kernels load both
// operands along K; in graphs layers::matmul does both. Products with a softmax between them are
// flash_attention.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "wide/binary_function.hpp"
#include "wide/epilogue.hpp"
#include "wide/parse_enumerator.hpp"
#include "wide/plan.hpp"
#include "wide/strides.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// What the second operand has one element for.
enum class Broadcast : uint8_t {
  none,      ///< each of x: other [.., N*D]
  rows,      ///< each feature of each member, in all rows: other [N, D]
  features,  ///< each member: other [N]
  members,   ///< all: other [1]
};

constexpr std::string_view broadcast_name(Broadcast broadcast) {
  switch (broadcast) {
    case Broadcast::none:
      return "none";
    case Broadcast::rows:
      return "rows";
    case Broadcast::features:
      return "features";
    case Broadcast::members:
      return "members";
  }
  return "?";
}

inline constexpr auto kAllBroadcasts = enumerators<Broadcast, broadcast_name>();

constexpr std::optional<Broadcast> parse_broadcast(std::string_view name) {
  return parse_enumerator(name, kAllBroadcasts, broadcast_name);
}

struct BinaryProblem {
  int64_t num_members = 1;
  int64_t rows = 0;      ///< per member: the product of all axes but the last
  int64_t features = 0;  ///< D, the last axis of a member
  BinaryFunction function = BinaryFunction::add;
  Broadcast broadcast = Broadcast::none;
  Activation activation = Activation::none;  ///< of the result
  Dtype dtype = Dtype::fp32;                 ///< of x, other and y: fp32, fp16 or bf16
  RowStrides x{}, y{};
  RowStrides other{};  ///< 0 along axes that other lacks
  friend bool operator==(const BinaryProblem&, const BinaryProblem&) = default;
};

struct BinaryArguments {
  ConstTensorView x;      ///< [.., N*D]
  ConstTensorView other;  ///< as the problem's broadcast says
  TensorView y;           ///< [.., N*D]; may be x itself, or other where nothing is broadcast
};

/// Reads the problem off the operands; `like` gives what they do not show: num_members (with
/// features where x is not packed), function, broadcast and activation.
BinaryProblem describe_binary(const BinaryArguments& arguments, const BinaryProblem& like);

extern template class PrimitivePlan<BinaryProblem>;

class BinaryPlan : public PrimitivePlan<BinaryProblem> {
 public:
  /// y[r, n, d] = activation(function(x[r, n, d], other)), in fp32, rounded once to nearest even;
  /// without an activation that is the exact result rounded to fp32, then to the dtype. Zeros,
  /// infinities and NaN follow IEEE 754.
  /// Layout: as BinaryArguments says; features contiguous, any row and member strides, any
  ///         alignment of an element. y may be an input, but overlaps no other. Tensors of
  ///         other layouts without gaps are views [rows, N*D] of the same memory.
  /// Types: x, other, y share a dtype in {fp32, fp16, bf16}.
  /// Stream: asynchronous on execution.stream; never synchronizes or allocates; may be captured.
  /// Memory: workspace_bytes() of execution.workspace.
  /// Errors: invalid_argument, cuda.
  /// Threads: safe with an Execution each.
  void run(const BinaryArguments& arguments, const Execution& execution) const;

 private:
  friend BinaryPlan make_binary_plan(const Context&, const BinaryProblem&, const PlanOptions&);
  explicit BinaryPlan(std::shared_ptr<const State> state) : PrimitivePlan(std::move(state)) {}
};

BinaryPlan make_binary_plan(const Context& context, const BinaryProblem& problem,
                            const PlanOptions& options = {});

}  // namespace wide
