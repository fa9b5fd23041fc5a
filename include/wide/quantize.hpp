// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights of linear: codes of 4, 6 or 8 bits, and one scale for each group of inputs of
// an output (weight_format.hpp). A format is a way to store a member's parameters: one blob of
// bytes per member, so that replacing a member is copying one row of [N, member_bytes].
#pragma once

#include <cstdint>
#include <span>

#include "wide/context.hpp"
#include "wide/tensor.hpp"
#include "wide/weight_format.hpp"

namespace wide {

/// How one member's weight [out_features, in_features] is stored.
struct QuantizedWeight {
  WeightFormat format = WeightFormat::int4;
  int64_t group_size = 128;  ///< inputs that share a scale: 64 or 128
  int64_t out_features = 0;
  int64_t in_features = 0;
};

/// Bytes of a member's blob, a multiple of 32. Throws invalid_argument for the format packed,
/// another group size, negative sizes and what does not fit in 64 bits.
int64_t quantized_bytes(const QuantizedWeight& weight);
/// Bytes of one strip of 16 outputs. Throws as quantized_bytes.
int64_t quantized_strip_bytes(const QuantizedWeight& weight);

/// Members' weights -> blobs. The scale of a group is the one with the least squared error among
/// max |w| / (largest value), the power of two next above it, which loses nothing where the weights
/// are multiples of one, and, below 8 bits, ten smaller ones that clip the largest weights. Codes
/// are the nearest, ties to even; deterministic for given weights. A group of zeros has scale 0;
/// one with a NaN or an infinity has scale NaN, so that the damage shows in that output alone.
/// Layout: members [out, in], any strides; blobs [N, quantized_bytes(weight)], bytes side by side.
/// Types: members fp32, fp16 or bf16; blobs uint8, rows aligned to kQuantizedAlignment.
/// Stream: on CUDA weights are staged through the host: this is not part of an execution, as it
///         allocates, waits for `stream` and cannot be captured. Done at return.
/// Errors: invalid_argument (sizes, shapes, dtypes, devices), out_of_memory, cuda.
void quantize_weights(const Context& context, const QuantizedWeight& weight,
                      std::span<const ConstTensorView> members, const TensorView& blobs,
                      Stream stream);

/// blobs -> scale * value(code), rounded to the members' dtype: exact in fp32. Infinite where that
/// is beyond the dtype, as it may be for weights next to its largest number: their scale is rounded
/// to bf16. Under the terms of quantize_weights.
void dequantize_weights(const Context& context, const QuantizedWeight& weight,
                        const ConstTensorView& blobs, std::span<const TensorView> members,
                        Stream stream);

/// The error of quantising one member's weight; NaN where a weight was not finite.
struct QuantizationError {
  double max_abs = 0;             ///< largest |stored - weight|
  double rms = 0;                 ///< root of the mean square of stored - weight
  double relative_frobenius = 0;  ///< root of sum (stored - weight)^2 / sum weight^2
  double snr_db = 0;              ///< -20 log10 of the above; infinite where nothing is lost
  int64_t worst_output = 0;       ///< of the group with the largest sum of squares
  int64_t worst_group = 0;
};

/// Compares a member's weight [out, in] with its blob [quantized_bytes(weight)]. Under the terms of
/// quantize_weights.
QuantizationError quantization_error(const Context& context, const QuantizedWeight& weight,
                                     const ConstTensorView& member, const ConstTensorView& blob,
                                     Stream stream);

}  // namespace wide
