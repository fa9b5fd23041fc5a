// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/linear/linear_weight.hpp"

#include <string>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

/// The packed side. Quantised weights are checked where they are made.
void check_packed_side(const LinearWeights& how, const ConstTensorView& weight,
                       const ConstTensorView& bias) {
  const int64_t members = how.num_members, out = how.weight.out_features;
  if (!is_quantized(how.weight)) {
    require_dtype(how.primitive, "weight", weight, how.dtype);
    require_shape(how.primitive, "weight", weight, "[num_members, out, in]",
                  {members, out, how.weight.in_features});
  }
  WIDE_REQUIRE(bias.is_absent() != how.has_bias,
               name_of(how.primitive, "bias") + " is " +
                   (how.has_bias ? "absent, expected [num_members, out]"
                                 : "present, expected none: the problem has none"));
  if (!how.has_bias) return;
  require_dtype(how.primitive, "bias", bias, how.bias_dtype);
  require_shape(how.primitive, "bias", bias, "[num_members, out]", {members, out});
}

}  // namespace

RowStrides complete_quantized_strides(std::string_view primitive, const QuantizedWeight& weight,
                                      int64_t num_members, int64_t member_stride) {
  WIDE_REQUIRE(weight.group_size == 64 || weight.group_size == 128,
               name_of(primitive, "group_size") + " is " + std::to_string(weight.group_size) +
                   ", expected 64 or 128");
  const int64_t bytes = quantized_bytes(weight);
  const RowStrides strides = fill_strides(name_of(primitive, "weight"),
                                          {bytes, member_stride == 0 ? bytes : member_stride},
                                          {bytes, bytes}, 1, num_members, bytes);
  WIDE_REQUIRE(strides.member >= bytes && strides.member % kQuantizedAlignment == 0,
               name_of(primitive, "weight") + " has member stride " +
                   std::to_string(strides.member) + " bytes, expected a multiple of " +
                   std::to_string(kQuantizedAlignment) + ", at least " + std::to_string(bytes));
  return strides;
}

RowStrides describe_quantized_weight(std::string_view primitive, const ConstTensorView& blobs,
                                     const QuantizedWeight& weight) {
  constexpr std::string_view kShape = "[num_members, member_bytes]";
  const ArgumentName name = name_of(primitive, "weight");
  WIDE_REQUIRE(!blobs.is_absent(), name + " is absent, expected " + std::string(kShape));
  WIDE_REQUIRE(blobs.rank() == 2,
               name + " is " + to_string(blobs.shape) + ", expected " + std::string(kShape));
  WIDE_REQUIRE(blobs.shape[0] >= 1,
               name + " is " + to_string(blobs.shape) + ", expected num_members >= 1 in front");
  require_dtype(primitive, "weight", blobs, Dtype::uint8);
  const int64_t bytes = quantized_bytes(weight);
  require_shape(primitive, "weight", blobs, kShape, {blobs.shape[0], bytes});
  require_last_axis_contiguous(primitive, "weight", blobs);
  WIDE_REQUIRE(bytes == 0 || blobs.alignment() >= kQuantizedAlignment,
               name + " is aligned to " + std::to_string(blobs.alignment()) + " bytes, expected " +
                   std::to_string(kQuantizedAlignment) + ": quantised");
  const RowStrides strides{bytes, blobs.shape[0] == 1 ? bytes : blobs.strides[0]};
  WIDE_REQUIRE(bytes == 0 || strides.member != 0,
               name + " has strides " + to_string(blobs.strides) +
                   ", expected rows or members that do not all start at one place");
  return strides;
}

void prepare_linear_weights(const Context& context, const LinearWeights& how,
                            std::span<const LinearMember> members, const TensorView& weight,
                            const TensorView& bias, Stream stream) {
  require_entries(how.primitive, "members", members.size(), how.num_members);
  check_packed_side(how, weight, bias);
  std::vector<ConstTensorView> weights, biases;
  for (const LinearMember& member : members) {
    WIDE_REQUIRE(member.bias.is_absent() != how.has_bias,
                 name_of(how.primitive, "bias of member " + std::to_string(weights.size())) +
                     " is " + (how.has_bias ? "absent, expected [out]" : "present, expected none"));
    weights.push_back(member.weight);
    if (how.has_bias) biases.push_back(member.bias);
  }
  const NvtxRange range(("wide::" + std::string(how.primitive) + "::prepare_weights").c_str());
  if (is_quantized(how.weight)) {
    quantize_weights(context, how.weight, weights, weight, stream);
  } else {
    pack(operands::linear_weight, weights, weight, stream);
  }
  if (how.has_bias) pack(operands::linear_bias, biases, bias, stream);
}

void restore_linear_weights(const Context& context, const LinearWeights& how,
                            const ConstTensorView& weight, const ConstTensorView& bias,
                            std::span<const TensorView> member_weights,
                            std::span<const TensorView> member_biases, Stream stream) {
  check_packed_side(how, weight, bias);
  require_entries(how.primitive, "member_weights", member_weights.size(), how.num_members);
  if (how.has_bias) {
    require_entries(how.primitive, "member_biases", member_biases.size(), how.num_members);
  }
  const NvtxRange range(("wide::" + std::string(how.primitive) + "::restore_weights").c_str());
  if (is_quantized(how.weight)) {
    dequantize_weights(context, how.weight, weight, member_weights, stream);
  } else {
    unpack(operands::linear_weight, weight, member_weights, stream);
  }
  if (how.has_bias) unpack(operands::linear_bias, bias, member_biases, stream);
}

}  // namespace wide
