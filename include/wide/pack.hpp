// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// N tensors of N members <-> the one packed tensor that a primitive reads.
//
// The axis along which members lie side by side is a property of the primitive's operand, not a
// choice: pack() takes the operand's name, so packing [B, T, D] along the wrong axis cannot be
// expressed, and a destination of another shape is an error that shows both.
#pragma once

#include <span>
#include <string_view>

#include "wide/tensor.hpp"

namespace wide {

/// How the members of one operand lie in its packed tensor.
struct PackedOperand {
  enum class Kind : uint8_t {
    joined,   ///< member tensors are joined along `axis`: N x [B, D] -> [B, N*D]
    stacked,  ///< a member axis of extent N is put in before `axis`: N x [out, in] -> [N, out, in]
  };
  std::string_view name;  ///< "linear x"
  Kind kind = Kind::joined;
  /// From the front; negative from the back, -1 is the last axis of the member tensor. One that a
  /// tensor has not is refused where it is used.
  int axis = 0;
  int min_rank = 1, max_rank = 5;  ///< of a member's tensor
};

/// Every operand that is packed, under the names of the table in README.md beside this file.
namespace operands {
using enum PackedOperand::Kind;
// Activations with features last: [B, D] or [B, T, D] -> [.., N*D].
inline constexpr PackedOperand linear_x{"linear x", joined, -1, 2, 3};
inline constexpr PackedOperand linear_y{"linear y", joined, -1, 2, 3};
inline constexpr PackedOperand linear_residual{"linear residual", joined, -1, 2, 3};
inline constexpr PackedOperand flash_attention_q{"flash_attention q", joined, -1, 3, 3};
inline constexpr PackedOperand flash_attention_k{"flash_attention k", joined, -1, 3, 3};
inline constexpr PackedOperand flash_attention_v{"flash_attention v", joined, -1, 3, 3};
inline constexpr PackedOperand mlp_x{"mlp x", joined, -1, 2, 3};
inline constexpr PackedOperand attention_x{"attention x", joined, -1, 3, 3};
inline constexpr PackedOperand recurrent_x{"recurrent x", joined, -1, 3, 3};
inline constexpr PackedOperand recurrent_state{"recurrent state", joined, -1, 2, 2};
inline constexpr PackedOperand embedding_y{"embedding y", joined, -1, 2, 3};
inline constexpr PackedOperand layernorm_x{"layernorm x", joined, -1, 2, 5};
inline constexpr PackedOperand rmsnorm_x{"rmsnorm x", joined, -1, 2, 5};
inline constexpr PackedOperand chain_x{"chain x", joined, -1, 2, 5};
inline constexpr PackedOperand pointwise_x{"pointwise x", joined, -1, 2, 5};
inline constexpr PackedOperand softmax_x{"softmax x", joined, -1, 2, 5};
inline constexpr PackedOperand binary_x{"binary x", joined, -1, 2, 5};
inline constexpr PackedOperand dropout_x{"dropout x", joined, -1, 2, 5};
inline constexpr PackedOperand ensemble_x{"ensemble x", joined, -1, 2, 5};
// Activations with channels first: [B, C, ...] -> [B, N*C, ...].
inline constexpr PackedOperand conv1d_x{"conv1d x", joined, 1, 3, 3};
inline constexpr PackedOperand conv2d_x{"conv2d x", joined, 1, 4, 4};
inline constexpr PackedOperand conv3d_x{"conv3d x", joined, 1, 5, 5};
inline constexpr PackedOperand conv1d_x_channels_last{"conv1d x channels_last", joined, -1, 3, 3};
inline constexpr PackedOperand conv2d_x_channels_last{"conv2d x channels_last", joined, -1, 4, 4};
inline constexpr PackedOperand conv3d_x_channels_last{"conv3d x channels_last", joined, -1, 5, 5};
inline constexpr PackedOperand batchnorm1d_x{"batchnorm1d x", joined, 1, 2, 3};
inline constexpr PackedOperand batchnorm2d_x{"batchnorm2d x", joined, 1, 4, 4};
inline constexpr PackedOperand groupnorm_x{"groupnorm x", joined, 1, 2, 5};
inline constexpr PackedOperand groupnorm_x_channels_last{"groupnorm x channels_last", joined, -1, 3,
                                                         5};
inline constexpr PackedOperand pooling_x{"pooling x", joined, 1, 3, 4};
inline constexpr PackedOperand pooling_x_channels_last{"pooling x channels_last", joined, -1, 3, 4};
inline constexpr PackedOperand interpolate_x{"interpolate x", joined, 1, 3, 4};
inline constexpr PackedOperand interpolate_x_channels_last{"interpolate x channels_last", joined,
                                                           -1, 3, 4};
inline constexpr PackedOperand instancenorm1d_x{"instancenorm1d x", joined, 1, 3, 3};
inline constexpr PackedOperand instancenorm2d_x{"instancenorm2d x", joined, 1, 4, 4};
// Parameters with a member axis in front.
inline constexpr PackedOperand linear_weight{"linear weight", stacked, 0, 2, 2};
inline constexpr PackedOperand linear_quantized_weight{"linear quantized weight", stacked, 0, 1, 1};
inline constexpr PackedOperand linear_bias{"linear bias", stacked, 0, 1, 1};
inline constexpr PackedOperand linear_scale{"linear scale", stacked, 0, 1, 1};
inline constexpr PackedOperand mlp_weights{"mlp weights", stacked, 0, 1, 1};
inline constexpr PackedOperand attention_weight{"attention weight", stacked, 0, 2, 2};
inline constexpr PackedOperand attention_bias{"attention bias", stacked, 0, 1, 1};
inline constexpr PackedOperand recurrent_weight{"recurrent weight", stacked, 0, 2, 2};
inline constexpr PackedOperand recurrent_bias{"recurrent bias", stacked, 0, 1, 1};
inline constexpr PackedOperand embedding_table{"embedding table", stacked, 0, 2, 2};
inline constexpr PackedOperand embedding_quantized_table{"embedding quantized table", stacked, 0, 1,
                                                         1};
inline constexpr PackedOperand layernorm_gamma{"layernorm gamma", stacked, 0, 1, 1};
inline constexpr PackedOperand layernorm_beta{"layernorm beta", stacked, 0, 1, 1};
inline constexpr PackedOperand rmsnorm_gamma{"rmsnorm gamma", stacked, 0, 1, 1};
inline constexpr PackedOperand channel_parameter{"channel parameter", stacked, 0, 1, 1};
inline constexpr PackedOperand flash_attention_key_lengths{"flash_attention key_lengths", stacked,
                                                           0, 1, 1};
inline constexpr PackedOperand flash_attention_slopes{"flash_attention slopes", stacked, 0, 1, 1};
inline constexpr PackedOperand flash_attention_bias{"flash_attention bias", stacked, 0, 4, 4};
inline constexpr PackedOperand chain_parameter{"chain parameter", stacked, 0, 1, 1};
inline constexpr PackedOperand pointwise_slope{"pointwise slope", stacked, 0, 1, 1};
inline constexpr PackedOperand binary_other{"binary other", stacked, 0, 1, 1};
inline constexpr PackedOperand dropout_seed{"dropout seed", stacked, 0, 1, 1};
inline constexpr PackedOperand dropout_probability{"dropout probability", stacked, 0, 1, 1};
// Parameters with all members' channels on one axis, as grouped convolution expects them.
inline constexpr PackedOperand conv1d_weight{"conv1d weight", joined, 0, 3, 3};
inline constexpr PackedOperand conv2d_weight{"conv2d weight", joined, 0, 4, 4};
inline constexpr PackedOperand conv3d_weight{"conv3d weight", joined, 0, 5, 5};
inline constexpr PackedOperand conv_bias{"conv bias", joined, 0, 1, 1};
// Token ids of each member: [B, T] -> [B, N, T]; those of bags [L] -> [N, L].
inline constexpr PackedOperand embedding_ids{"embedding ids", stacked, 1, 2, 2};
inline constexpr PackedOperand embedding_bag_ids{"embedding bag ids", stacked, 0, 1, 1};
inline constexpr PackedOperand embedding_offsets{"embedding offsets", stacked, 0, 1, 1};
}  // namespace operands

/// The packed shape of `num_members` tensors of shape `member`.
/// Throws invalid_argument where the operand's member tensors have another rank, or no such axis.
Shape packed_shape(const PackedOperand& operand, const Shape& member, int64_t num_members);

/// View of member `index` inside the packed tensor; no copy.
/// Throws invalid_argument where there is no such axis, where the member axis cannot be divided by
/// `num_members`, or the index is outside.
TensorView member_view(const PackedOperand& operand, const TensorView& packed, int64_t num_members,
                       int64_t index);
ConstTensorView member_view(const PackedOperand& operand, const ConstTensorView& packed,
                            int64_t num_members, int64_t index);
inline TensorView member_view(const PackedOperand& operand, Tensor& packed, int64_t num_members,
                              int64_t index) {
  return member_view(operand, packed.view(), num_members, index);
}

/// packed[.., i, ..] = members[i] for every i, bit for bit.
/// Layout: members[i] any strides, all of one shape; packed any strides, shape
///         packed_shape(operand, member, N).
/// Types: all dtypes; members and packed share one.
/// Stream: asynchronous on `stream`; does not synchronize. On the CPU done at return.
/// Memory: all views on one device; no workspace; must not overlap.
/// Errors: invalid_argument (no member, shapes, dtypes, devices: names both shapes), cuda.
void pack(const PackedOperand& operand, std::span<const ConstTensorView> members,
          const TensorView& packed, Stream stream);

/// members[i] = packed[.., i, ..] for every i: the inverse of pack, under the same terms.
void unpack(const PackedOperand& operand, const ConstTensorView& packed,
            std::span<const TensorView> members, Stream stream);

}  // namespace wide
