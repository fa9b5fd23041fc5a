// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a node of a graph computes. A graph describes one member, so nothing here knows of members:
// an operation is a primitive's attributes, and its operands are named as the primitive's are.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "wide/binary.hpp"
#include "wide/chain.hpp"
#include "wide/conv.hpp"
#include "wide/coordinate_mode.hpp"
#include "wide/ensemble.hpp"
#include "wide/epilogue.hpp"
#include "wide/pointwise.hpp"
#include "wide/pooling.hpp"
#include "wide/quantize.hpp"
#include "wide/recurrent.hpp"
#include "wide/shape.hpp"

namespace wide {

/// x [B, .., in], weight [out, in], bias [out] or none, residual as y or none -> y [B, .., out];
/// quantised: weight uint8 [quantized_bytes], of quantize_weights() or what quantize makes.
struct LinearOp {
  Activation activation = Activation::none;
  Residual residual = Residual::none;
  WeightFormat weight_format = WeightFormat::packed;
  int64_t group_size = 128;  ///< of quantised weights: inputs that share a scale, 64 or 128
  int64_t out_features = 0;  ///< of quantised weights, whose shape does not show it
  friend bool operator==(const LinearOp&, const LinearOp&) = default;
};

/// left [B, .., M, K], right [B, .., P, K], both computed and with the same axes in front, residual
/// as y or none -> y [B, .., M, P]: alpha left right^T of each pair of matrices. A plan runs it as
/// a linear call, whose members are the matrices.
struct MatmulOp {
  float alpha = 1;
  Activation activation = Activation::none;
  Residual residual = Residual::none;
  friend bool operator==(const MatmulOp&, const MatmulOp&) = default;
};

/// x [B, Cin, L], [B, Cin, H, W] or [B, Cin, D, H, W], weight [Cout, Cin/groups, k..], bias [Cout]
/// or none, residual as y or none -> y. Channels last: x [B, .., Cin]; the weight stays as it is. x
/// may have another layout than y.
struct ConvOp {
  int64_t groups = 1;
  PerAxis stride{}, padding{0, 0}, dilation{};
  ConvDepth depth{};  ///< stride, padding and dilation; the others are ignored
  ChannelLayout layout = ChannelLayout::channels_first;
  std::optional<ChannelLayout> x_layout{};  ///< absent: as `layout`
  Activation activation = Activation::none;
  Residual residual = Residual::none;
  friend bool operator==(const ConvOp&, const ConvOp&) = default;
};

/// x [B, Cin, L], [B, Cin, H, W] or [B, Cin, D, H, W], weight [Cin, Cout/groups, k..], bias [Cout]
/// or none -> y [B, Cout, ..]: element i of an axis of x, times tap t of the weight, is added to
/// element i*stride - padding + t*dilation of y, which has (in - 1)*stride - 2*padding +
/// dilation*(k - 1) + 1 + output_padding. A plan runs it as a convolution to the channels of all
/// phases (positions modulo stride), and a depth_to_space.
struct ConvTransposeOp {
  int64_t groups = 1;
  PerAxis stride{}, padding{0, 0}, dilation{};
  PerAxis output_padding{0, 0};  ///< more elements at an axis' end; below 0 fewer
  ConvDepth depth{};             ///< stride, padding and dilation; the others are ignored
  int64_t depth_output_padding = 0;
  Activation activation = Activation::none;
  friend bool operator==(const ConvTransposeOp&, const ConvTransposeOp&) = default;
};

/// x [B, C*blocks, L], [B, C*blocks, H, W] or [B, C*blocks, D, H, W], or with channels last -> y
/// [B, C, ..]: of all positions, y's is x's position / block in channel (group, position % block, c
/// of the group), the group outermost. With C groups, or 0, this is PyTorch's pixel_shuffle and the
/// mode CRD of ONNX, with one its mode DCR. Of a signal's blocks the width counts.
struct DepthToSpaceOp {
  PerAxis block{2, 2};
  PerAxis first{0, 0}, size{0, 0};  ///< positions that y has; a size of 0: from the first on, all
  int64_t depth_block = 1, depth_first = 0, depth_size = 0;  ///< of volumes
  int64_t groups = 0;
  ChannelLayout layout = ChannelLayout::channels_first;
  friend bool operator==(const DepthToSpaceOp&, const DepthToSpaceOp&) = default;
};

/// x [B, C, L], [B, C, H, W] or [B, C, D, H, W], or with channels last -> y, each axis of positions
/// `factor` times as long: element i is x's element i / factor, the nearest one. Of a signal's
/// factors the width counts.
struct UpsampleOp {
  PerAxis factor{2, 2};
  int64_t depth_factor = 1;  ///< of volumes
  ChannelLayout layout = ChannelLayout::channels_first;
  friend bool operator==(const UpsampleOp&, const UpsampleOp&) = default;
};

/// x [B, T, D] -> y [B, T, D], with the parameters of AttentionParameters by their names; with
/// operands key and value a cross attention; key_lengths int32 [B] or none.
struct AttentionOp {
  int64_t heads = 1;
  bool is_causal = false;
  friend bool operator==(const AttentionOp&, const AttentionOp&) = default;
};

/// q [B, Tq, heads*D], k and v [B, Tk, kv_heads*D], key_lengths int32 [B] or none -> y as q. bias,
/// which is added to scores, [B, heads or 1, Tq or 1, Tk]; or a parameter, without the batch; or
/// none. Broadcast axes are read in place. slopes of ALiBi: a parameter, fp32 [heads], or none.
/// FlashAttentionPlan::run has the formula.
struct FlashAttentionOp {
  int64_t heads = 1;
  int64_t kv_heads = 0;  ///< 0: as heads
  bool is_causal = false;
  std::optional<float> scale{};    ///< absent: 1 / sqrt(D)
  int64_t window = 0;              ///< a query sees keys nearer to it than this; 0: all
  float soft_cap = 0;              ///< scores become soft_cap tanh(score / soft_cap); 0: off
  bool aligns_to_lengths = false;  ///< positions end at a row's key length instead of at Tk
  friend bool operator==(const FlashAttentionOp&, const FlashAttentionOp&) = default;
};

/// x [B, T, D], input_weight [G*H, D], hidden_weight [G*H, H], input_bias and hidden_bias [G*H] or
/// none, first_hidden [B, H] or none, for an lstm with it fp32 first_cell [B, H] -> y [B, T, H],
/// and the last cell state, fp32 [B, H], where writes_cell. The last hidden state is y's last step.
struct RecurrentOp {
  RecurrentCell cell = RecurrentCell::lstm;
  bool is_reversed = false;
  bool writes_cell = false;
  friend bool operator==(const RecurrentOp&, const RecurrentOp&) = default;
};

/// ids int32 or int64 [B, T], table [V, D] -> y [B, T, D]
struct EmbeddingOp {
  int64_t padding_id = -1;
  friend bool operator==(const EmbeddingOp&, const EmbeddingOp&) = default;
};

/// x [.., D], gamma and beta [D] or none, residual as x or none -> y, and the sum of both where
/// writes_sum
struct LayernormOp {
  float epsilon = 1e-5f;
  bool writes_sum = false;
  friend bool operator==(const LayernormOp&, const LayernormOp&) = default;
};

/// As layernorm, without beta.
struct RmsnormOp {
  float epsilon = 1e-5f;
  bool writes_sum = false;
  friend bool operator==(const RmsnormOp&, const RmsnormOp&) = default;
};

/// x [.., D], bias [D] or none, residual as x or none, gamma and beta [D] or none -> y, and what is
/// normalised where writes_sum
struct ChainOp {
  Activation activation = Activation::none;
  ChainNorm norm = ChainNorm::none;
  float epsilon = 1e-5f;
  bool writes_sum = false;
  friend bool operator==(const ChainOp&, const ChainOp&) = default;
};

/// In inference: x [B, C, ..], gamma and beta [C] or none, running_mean and running_variance [C]
struct BatchnormOp {
  float epsilon = 1e-5f;
  friend bool operator==(const BatchnormOp&, const BatchnormOp&) = default;
};

/// x [B, C, ..], gamma and beta [C] or none
struct GroupnormOp {
  int64_t groups = 1;
  float epsilon = 1e-5f;
  friend bool operator==(const GroupnormOp&, const GroupnormOp&) = default;
};

/// x [B, C, L] or [B, C, H, W], gamma and beta [C] or none
struct InstancenormOp {
  float epsilon = 1e-5f;
  friend bool operator==(const InstancenormOp&, const InstancenormOp&) = default;
};

/// x, slope [1] or [D] for prelu -> y as x
struct PointwiseOp {
  PointwiseFunction function = PointwiseFunction::relu;
  float slope = 0.01f, alpha = 1, beta = 1, low = -1, high = 1;  ///< as in PointwiseProblem
  friend bool operator==(const PointwiseOp&, const PointwiseOp&) = default;
};

/// x, other -> y as x. other is as x; or computed, [B, C, 1, ..] of an x with channels first or
/// [B, 1, .., D]; or a parameter: [1], as the last axes of x without its batch, or [C, 1, ..].
struct BinaryOp {
  BinaryFunction function = BinaryFunction::add;
  Activation activation = Activation::none;
  friend bool operator==(const BinaryOp&, const BinaryOp&) = default;
};

/// x [B, C, L] or [B, C, H, W], or with channels last -> y; fields as in PoolingProblem
struct PoolingOp {
  PoolingMode mode = PoolingMode::max;
  PoolingWindow rows{}, columns{};
  bool ceil_mode = false;
  bool counts_padding = true;
  int64_t out_height = 0, out_width = 0;  ///< an adaptive pool's, at least 1; of signals the width
  ChannelLayout layout = ChannelLayout::channels_first;
  friend bool operator==(const PoolingOp&, const PoolingOp&) = default;
};

/// x [B, C, L] or [B, C, H, W], or with channels last -> y: between x's positions; fields as in
/// InterpolateProblem, of signals those of columns
struct InterpolateOp {
  int64_t out_height = 0, out_width = 0;
  CoordinateMode coordinates = CoordinateMode::half_pixel;
  float row_scale = 0, column_scale = 0;
  ChannelLayout layout = ChannelLayout::channels_first;
  friend bool operator==(const InterpolateOp&, const InterpolateOp&) = default;
};

/// x [.., D] -> y: over the last axis
struct SoftmaxOp {
  bool is_log = false;
  friend bool operator==(const SoftmaxOp&, const SoftmaxOp&) = default;
};

/// x, probability fp32 [1] or absent -> y. The identity, except in models made for Monte Carlo
/// dropout. A probability outside of [0, 1] or NaN makes the member's y NaN.
struct DropoutOp {
  float probability = 0.5f;  ///< where the operand is absent
  friend bool operator==(const DropoutOp&, const DropoutOp&) = default;
};

/// part0, part1, .. -> y: consecutively along an axis other than the batch. A part may be a
/// parameter, which is then repeated in every row of the batch.
struct ConcatOp {
  int axis = 1;
  friend bool operator==(const ConcatOp&, const ConcatOp&) = default;
};

/// x -> y: elements [first, first + count) of an axis other than the batch
struct SliceOp {
  int axis = 1;
  int64_t first = 0, count = 0;
  friend bool operator==(const SliceOp&, const SliceOp&) = default;
};

/// x -> y: the same elements in the same order. The batch stays in front.
struct ReshapeOp {
  Shape shape;
  friend bool operator==(const ReshapeOp&, const ReshapeOp&) = default;
};

/// x -> y: axes in another order. On parameters it is done before anything runs; on an activation,
/// whose batch stays in front, it is a copy, even where the order is unchanged: into a layout of
/// its own.
struct TransposeOp {
  Dims order;  ///< axis i of y is axis order[i] of x
  friend bool operator==(const TransposeOp&, const TransposeOp&) = default;
};

/// The weight or bias of a layer into which the batchnorm after it is folded, in inference; on
/// parameters only: weight [C, ..], or of a transposed convolution [Cin, C/groups, ..], gamma,
/// running_variance -> y = weight gamma / sqrt(variance + epsilon); or bias [C] or none, gamma,
/// beta, running_mean, running_variance -> y [C]
struct FoldBatchnormOp {
  float epsilon = 1e-5f;
  Dtype dtype = Dtype::fp32;      ///< of y
  int64_t transposed_groups = 0;  ///< of a transposed convolution's weight; 0: of another layer's
  friend bool operator==(const FoldBatchnormOp&, const FoldBatchnormOp&) = default;
};

/// Parameters of the convolution that a transposed one is run as; of parameters only: weight [Cin,
/// Cout/groups, k..] -> y [groups*phases*(Cout/groups), Cin/groups, ceil(reach / stride)..], with
/// zeros where a phase has fewer taps; or bias [Cout] -> y [groups*phases*(Cout/groups)]. reach is
/// dilation*(k - 1) + 1.
struct ConvPhasesOp {
  int64_t groups = 1;
  PerAxis stride{}, dilation{};
  int64_t depth_stride = 1, depth_dilation = 1;
  friend bool operator==(const ConvPhasesOp&, const ConvPhasesOp&) = default;
};

/// x [B, .., widths[0]], weights [E], as pack_mlp packs the layers -> y [B, .., widths.back()]
struct MlpOp {
  std::vector<int64_t> widths;
  bool has_bias = true;
  Activation activation = Activation::none;  ///< after every layer but the last
  Activation last_activation = Activation::none;
  friend bool operator==(const MlpOp&, const MlpOp&) = default;
};

/// weight0 [out, in], bias0 [out] or none, weight1, .. -> y [E], as MlpLayerPlace has it; of
/// parameters only
struct PackMlpOp {
  std::vector<int64_t> widths;
  bool has_bias = true;
  friend bool operator==(const PackMlpOp&, const PackMlpOp&) = default;
};

/// weight [out, in] -> y uint8 [quantized_bytes], a blob (quantize.hpp); of parameters only
struct QuantizeOp {
  WeightFormat format = WeightFormat::int4;
  int64_t group_size = 128;
  friend bool operator==(const QuantizeOp&, const QuantizeOp&) = default;
};

/// x [B, .., D] of each member -> y [B, .., D], one for all members; only as an output
struct EnsembleOp {
  EnsembleFunction ensemble = EnsembleFunction::mean;
  friend bool operator==(const EnsembleOp&, const EnsembleOp&) = default;
};

using Operation =
    std::variant<LinearOp, MatmulOp, ConvOp, ConvTransposeOp, DepthToSpaceOp, UpsampleOp,
                 AttentionOp, FlashAttentionOp, RecurrentOp, EmbeddingOp, LayernormOp, RmsnormOp,
                 ChainOp, BatchnormOp, GroupnormOp, InstancenormOp, PointwiseOp, BinaryOp,
                 PoolingOp, InterpolateOp, SoftmaxOp, DropoutOp, ConcatOp, SliceOp, ReshapeOp,
                 TransposeOp, FoldBatchnormOp, ConvPhasesOp, MlpOp, PackMlpOp, QuantizeOp,
                 EnsembleOp>;

}  // namespace wide
