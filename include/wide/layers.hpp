// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// layers: nodes with their parameters, so that a graph reads like the definition of a model:
//
//   GraphBuilder g("mlp");
//   Value x = g.input("x", {kBatch, 64});
//   x = layers::linear(g, "fc1", x, 128, {.activation = Activation::relu});
//   g.output("y", layers::linear(g, "fc2", x, 64));
//
// Parameters are named as in PyTorch's checkpoints: "fc1.weight" [128, 64], "fc1.bias" [128].
#pragma once

#include <initializer_list>
#include <string>

#include "wide/graph.hpp"

namespace wide::layers {

struct LinearLayer {
  bool has_bias = true;
  Activation activation = Activation::none;
};
/// NAME.weight [out, in], NAME.bias [out]
Value linear(GraphBuilder& g, const std::string& name, Value x, int64_t out_features,
             const LinearLayer& layer = {});

struct ConvLayer {
  PerAxis kernel{3, 3};
  PerAxis stride{}, padding{0, 0}, dilation{};
  ConvDepth depth{.kernel = 3};  ///< of volumes; input and operands' strides are ignored
  int64_t groups = 1;
  bool has_bias = true;
  ChannelLayout layout = ChannelLayout::channels_first;
  std::optional<ChannelLayout> x_layout{};  ///< absent: as `layout`
};
/// conv1d where x has three axes (only widths count), conv2d where it has four (depths do not),
/// else conv3d. NAME.weight [Cout, Cin/groups, k..], NAME.bias [Cout]
Value conv(GraphBuilder& g, const std::string& name, Value x, int64_t out_channels,
           const ConvLayer& layer);

struct ConvTransposeLayer {
  PerAxis kernel{3, 3};
  PerAxis stride{}, padding{0, 0}, dilation{};
  PerAxis output_padding{0, 0};
  ConvDepth depth{.kernel = 3};  ///< of volumes; input and operands' strides are ignored
  int64_t depth_output_padding = 0;
  int64_t groups = 1;
  bool has_bias = true;
};
/// The size that a convolution by this kernel, stride, padding and dilation made smaller, again:
/// ConvTransposeOp has the formula. Signals, images and volumes, as conv has them, channels first.
/// NAME.weight [Cin, Cout/groups, k..], NAME.bias [Cout]
Value conv_transpose(GraphBuilder& g, const std::string& name, Value x, int64_t out_channels,
                     const ConvTransposeLayer& layer);
/// [B, C*block*block, H, W] -> [B, C, H*block, W*block], PyTorch's pixel_shuffle; of a signal
/// [B, C*block, L] -> [B, C, L*block]. For other blocks use GraphBuilder::append.
Value depth_to_space(GraphBuilder& g, const std::string& name, Value x, int64_t block);

/// [B, C, H, W] -> [B, C, H*factor, W*factor], each element as many times; signals and volumes
/// alike.
Value upsample(GraphBuilder& g, const std::string& name, Value x, int64_t factor);
/// [B, C, H, W] -> [B, C, out_height, out_width] by linear interpolation, of signals [B, C, L] ->
/// [B, C, out_width]. By a scale use GraphBuilder::append.
Value interpolate(GraphBuilder& g, const std::string& name, Value x, int64_t out_height,
                  int64_t out_width, CoordinateMode coordinates = CoordinateMode::half_pixel);

struct MatmulLayer {
  bool transposes_left = false, transposes_right = false;  ///< the last two axes, before anything
  float alpha = 1;
};
/// [B, .., M, K] and [B, .., K, P] -> [B, .., M, P]: alpha left right, of two computed values,
/// matrix by matrix. MatmulOp takes right transposed: left and right that are not so are copied.
Value matmul(GraphBuilder& g, const std::string& name, Value left, Value right,
             const MatmulLayer& layer = {});

struct AttentionLayer {
  bool has_bias = true;
  bool is_causal = false;
  Value key_lengths{};  ///< int32 [B]
  Value key{};          ///< [B, Tk, kdim] of a cross attention; absent: keys and values come from x
  Value value{};        ///< [B, Tk, vdim]; absent: as key
};
/// NAME.in_proj_weight [3D, D], NAME.in_proj_bias, NAME.out_proj.weight [D, D], NAME.out_proj.bias;
/// where kdim or vdim is not D, NAME.q_proj_weight [D, D], NAME.k_proj_weight [D, kdim] and
/// NAME.v_proj_weight [D, vdim] instead of the first.
Value attention(GraphBuilder& g, const std::string& name, Value x, int64_t heads,
                const AttentionLayer& layer = {});

struct FlashAttentionLayer {
  int64_t kv_heads = 0;  ///< 0: heads
  bool is_causal = false;
  std::optional<float> scale{};    ///< absent: 1 / sqrt of a head's features
  int64_t window = 0;              ///< a query sees keys nearer to it than this; 0: all
  float soft_cap = 0;              ///< scores become soft_cap tanh(score / soft_cap); 0: off
  Value key_lengths{};             ///< int32 [B]
  Value bias{};                    ///< added to scores, as FlashAttentionOp says
  Value slopes{};                  ///< of ALiBi: a parameter, fp32 [heads]
  bool aligns_to_lengths = false;  ///< positions end at a row's key length instead of at Tk
};
/// Attention without projections: q [B, Tq, heads*D], k and v [B, Tk, kv_heads*D] -> as q
Value flash_attention(GraphBuilder& g, const std::string& name, Value q, Value k, Value v,
                      int64_t heads, const FlashAttentionLayer& layer = {});

struct RecurrentLayer {
  bool has_bias = true;
  bool is_reversed = false;
  std::string suffix = "l0";  ///< of the parameters' names: "l0_reverse", "l1", ..
  Value first_hidden{};       ///< [B, H]; absent: zeros
  Value first_cell{};         ///< fp32 [B, H], an lstm's; present where first_hidden is
};
/// x [B, T, D] -> [B, T, hidden], one layer in one direction. NAME.weight_ih_l0 [G*H, D],
/// NAME.weight_hh_l0 [G*H, H], NAME.bias_ih_l0, NAME.bias_hh_l0 [G*H]; G = 4
Value lstm(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
           const RecurrentLayer& layer = {});
/// As lstm, with G = 3
Value gru(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
          const RecurrentLayer& layer = {});
/// A call's results; the next call continues from the states, as first_hidden and first_cell.
struct RecurrentStates {
  Value y;       ///< [B, T, H]
  Value hidden;  ///< [B, H], after the step computed last
  Value cell;    ///< fp32 [B, H], an lstm's; absent for a gru
};
/// An lstm or gru that returns its states, too: for an agent, or a stream that arrives in parts.
RecurrentStates recurrent(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
                          RecurrentCell cell, const RecurrentLayer& layer = {});
/// [B, T, H] of both directions -> [B, T, 2H], as PyTorch's `bidirectional` has it: two layers, of
/// which the second is reversed and has the suffix "l0_reverse".
Value bidirectional(GraphBuilder& g, const std::string& name, Value x, int64_t hidden,
                    RecurrentCell cell, const RecurrentLayer& layer = {});

/// NAME.weight [vocab, dim]
Value embedding(GraphBuilder& g, const std::string& name, Value ids, int64_t vocab, int64_t dim);

/// NAME.weight [D], NAME.bias [D]
Value layernorm(GraphBuilder& g, const std::string& name, Value x, float epsilon = 1e-5f);
/// NAME.weight [D]
Value rmsnorm(GraphBuilder& g, const std::string& name, Value x, float epsilon = 1e-5f);
/// NAME.weight [C], NAME.bias [C], fp32 NAME.running_mean [C], NAME.running_var [C]
Value batchnorm(GraphBuilder& g, const std::string& name, Value x, float epsilon = 1e-5f);
/// NAME.weight [C], NAME.bias [C]
Value groupnorm(GraphBuilder& g, const std::string& name, Value x, int64_t groups,
                float epsilon = 1e-5f);
Value instancenorm(GraphBuilder& g, const std::string& name, Value x, float epsilon = 1e-5f);

/// The functions' parameters, as in PointwiseProblem.
struct PointwiseLayer {
  float slope = 0.01f, alpha = 1, beta = 1, low = -1, high = 1;
  int64_t num_slopes = 1;  ///< prelu's: 1, or the number of x's features
};
/// For prelu: NAME.weight [num_slopes]
Value pointwise(GraphBuilder& g, const std::string& name, Value x, PointwiseFunction function,
                const PointwiseLayer& layer = {});
inline Value relu(GraphBuilder& g, const std::string& name, Value x) {
  return pointwise(g, name, x, PointwiseFunction::relu);
}
inline Value gelu(GraphBuilder& g, const std::string& name, Value x) {
  return pointwise(g, name, x, PointwiseFunction::gelu);
}
Value add(GraphBuilder& g, const std::string& name, Value x, Value other);
/// x and other as BinaryOp says
Value binary(GraphBuilder& g, const std::string& name, Value x, Value other,
             BinaryFunction function);

/// One window for rows and columns; for others use GraphBuilder::append.
Value max_pool(GraphBuilder& g, const std::string& name, Value x, const PoolingWindow& window);
Value average_pool(GraphBuilder& g, const std::string& name, Value x, const PoolingWindow& window,
                   bool counts_padding = true);
/// [B, C, ..] -> [B, C, out_height, out_width], of signals [B, C, out_width]; extents of at least 1
Value adaptive_average_pool(GraphBuilder& g, const std::string& name, Value x, int64_t out_height,
                            int64_t out_width);
/// [B, C, ..] -> [B, C, 1, ..], the mean of all positions
Value global_average_pool(GraphBuilder& g, const std::string& name, Value x);
Value softmax(GraphBuilder& g, const std::string& name, Value x);
Value log_softmax(GraphBuilder& g, const std::string& name, Value x);
Value dropout(GraphBuilder& g, const std::string& name, Value x, float probability);
/// Each member has a probability of its own: NAME.probability, fp32 [1].
Value dropout(GraphBuilder& g, const std::string& name, Value x);

/// [B, ..] -> [B, all the rest]
Value flatten(GraphBuilder& g, const std::string& name, Value x);
Value reshape(GraphBuilder& g, const std::string& name, Value x, const Shape& shape);
Value concat(GraphBuilder& g, const std::string& name, std::initializer_list<Value> parts,
             int axis);
Value slice(GraphBuilder& g, const std::string& name, Value x, int axis, int64_t first,
            int64_t count);
/// Axis i of y is axis order[i] of x; the batch stays in front.
Value transpose(GraphBuilder& g, const std::string& name, Value x, const Dims& order);
Value ensemble(GraphBuilder& g, const std::string& name, Value x, EnsembleFunction function);

}  // namespace wide::layers
