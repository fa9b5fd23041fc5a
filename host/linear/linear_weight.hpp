// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The weights of linear layers of one shape, packed or quantised: their checks, and the way from
// members to a plan's format and back. linear and routed_linear differ in their rows only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "wide/linear.hpp"
#include "wide/quantize.hpp"

namespace wide {

/// What a plan knows of its weights and biases.
struct LinearWeights {
  std::string_view primitive;  ///< in messages
  int64_t num_members = 1;
  QuantizedWeight weight{};   ///< format and shape
  Dtype dtype = Dtype::fp32;  ///< of packed weights
  Dtype bias_dtype = Dtype::fp32;
  bool has_bias = false;
};

inline bool is_quantized(const QuantizedWeight& weight) {
  return weight.format != WeightFormat::packed;
}

/// The strides of quantised weights, in bytes: a blob is one row. `member_stride` 0 means side by
/// side. Throws invalid_argument for a group size that there is not, and for blobs that overlap.
RowStrides complete_quantized_strides(std::string_view primitive, const QuantizedWeight& weight,
                                      int64_t num_members, int64_t member_stride);

/// Checks blobs [num_members, member_bytes] and returns their strides. They show neither `in` nor
/// `out`.
RowStrides describe_quantized_weight(std::string_view primitive, const ConstTensorView& blobs,
                                     const QuantizedWeight& weight);

/// As LinearPlan's functions of these names.
void prepare_linear_weights(const Context& context, const LinearWeights& how,
                            std::span<const LinearMember> members, const TensorView& weight,
                            const TensorView& bias, Stream stream);
void restore_linear_weights(const Context& context, const LinearWeights& how,
                            const ConstTensorView& weight, const ConstTensorView& bias,
                            std::span<const TensorView> member_weights,
                            std::span<const TensorView> member_biases, Stream stream);

}  // namespace wide
