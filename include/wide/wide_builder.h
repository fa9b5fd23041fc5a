/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * wide_builder.h: a graph built node by node, in C. What wide.h says of errors, structs, handles
 * and threads applies here, too.
 *
 *   wide_builder_create("mlp", WIDE_FP32, &builder);
 *   wide_builder_input(builder, "x", WIDE_FP32, shape, 2, &x);
 *   wide_builder_linear(builder, "fc1", x, 128, NULL, &x);
 *   wide_builder_output(builder, "y", x);
 *   wide_graph_create(builder, &graph);
 */
#ifndef WIDE_WIDE_BUILDER_H
#define WIDE_WIDE_BUILDER_H

#include "wide/wide.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wide_builder wide_builder; /* a graph under construction */

/* A value of one builder; 0 is none. */
typedef int32_t wide_value;

/* A builder keeps its first error: its later calls, wide_graph_create included, return it again, so
 * that checking the last is enough. `dtype` is that of embedding tables; what other layers declare
 * has x's. */
WIDE_API wide_status wide_builder_create(const char* name, wide_dtype dtype, wide_builder** out);
WIDE_API void wide_builder_destroy(wide_builder* builder);

/* The builder stays usable. */
WIDE_API wide_status wide_graph_create(const wide_builder* builder, wide_graph** out);

/* Inputs begin with WIDE_BATCH. A shared input is one that all members read. */
WIDE_API wide_status wide_builder_input(wide_builder* builder, const char* name, wide_dtype dtype,
                                        const int64_t* shape, int32_t rank, wide_value* out);
WIDE_API wide_status wide_builder_shared_input(wide_builder* builder, const char* name,
                                               wide_dtype dtype, const int64_t* shape, int32_t rank,
                                               wide_value* out);
WIDE_API wide_status wide_builder_parameter(wide_builder* builder, const char* name,
                                            wide_dtype dtype, const int64_t* shape, int32_t rank,
                                            wide_value* out);
WIDE_API wide_status wide_builder_output(wide_builder* builder, const char* name, wide_value value);

/* Layers. Each declares its parameters, named as in PyTorch's checkpoints: NAME.weight, NAME.bias.
 * Options may be NULL. */
typedef struct wide_linear_layer {
  size_t struct_size;
  const char* activation; /* NULL: "none"; "relu", "gelu", "gelu_tanh", "silu" */
  int32_t has_no_bias;
} wide_linear_layer;
WIDE_API wide_status wide_builder_linear(wide_builder* builder, const char* name, wide_value x,
                                         int64_t out_features, const wide_linear_layer* options,
                                         wide_value* out);

typedef struct wide_conv_layer {
  size_t struct_size;
  int64_t kernel_height, kernel_width;     /* 0: 3 */
  int64_t stride_height, stride_width;     /* 0: 1 */
  int64_t padding_height, padding_width;   /* 0: none */
  int64_t dilation_height, dilation_width; /* 0: 1 */
  int64_t groups;                          /* 0: 1 */
  int32_t has_no_bias;
  int32_t is_channels_last;
  wide_channels x_channels; /* WIDE_CHANNELS_AUTO: as y's */
  int64_t kernel_depth;     /* 0: 3; of volumes, as the next three */
  int64_t stride_depth;     /* 0: 1 */
  int64_t padding_depth;    /* 0: none */
  int64_t dilation_depth;   /* 0: 1 */
} wide_conv_layer;
/* conv1d where x has three axes (only the widths count), conv2d where it has four (depths do not),
 * else conv3d. */
WIDE_API wide_status wide_builder_conv(wide_builder* builder, const char* name, wide_value x,
                                       int64_t out_channels, const wide_conv_layer* options,
                                       wide_value* out);

typedef struct wide_conv_transpose_layer {
  size_t struct_size;
  int64_t kernel_height, kernel_width;                 /* 0: 3 */
  int64_t stride_height, stride_width;                 /* 0: 1 */
  int64_t padding_height, padding_width;               /* 0: none */
  int64_t dilation_height, dilation_width;             /* 0: 1 */
  int64_t output_padding_height, output_padding_width; /* at an axis' end; below 0 fewer */
  int64_t groups;                                      /* 0: 1 */
  int64_t has_no_bias;
  int64_t kernel_depth;         /* 0: 3; of volumes, as the next four */
  int64_t stride_depth;         /* 0: 1 */
  int64_t padding_depth;        /* 0: none */
  int64_t dilation_depth;       /* 0: 1 */
  int64_t output_padding_depth; /* 0: none */
} wide_conv_transpose_layer;
/* Signals, images and volumes, as wide_builder_conv has them, channels first: an axis of n
 * positions has (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 + output_padding.
 * NAME.weight [Cin, out_channels / groups, kernel..], NAME.bias [out_channels]. */
WIDE_API wide_status wide_builder_conv_transpose(wide_builder* builder, const char* name,
                                                 wide_value x, int64_t out_channels,
                                                 const wide_conv_transpose_layer* options,
                                                 wide_value* out);
/* [B, C*block*block, H, W] -> [B, C, H*block, W*block], PyTorch's pixel_shuffle; of a signal
 * [B, C*block, L] -> [B, C, L*block]. */
WIDE_API wide_status wide_builder_depth_to_space(wide_builder* builder, const char* name,
                                                 wide_value x, int64_t block, wide_value* out);

/* [B, C, H, W] -> [B, C, H*factor, W*factor], each element as many times; signals and volumes
 * alike. */
WIDE_API wide_status wide_builder_upsample(wide_builder* builder, const char* name, wide_value x,
                                           int64_t factor, wide_value* out);

typedef struct wide_interpolate_layer {
  size_t struct_size;
  int64_t out_height, out_width; /* 0: x's times the scale, rounded down; without one, x's */
  float row_scale, column_scale; /* by which coordinates go; 0: outputs / x's positions */
  const char* coordinates;       /* NULL: "half_pixel"; "pytorch_half_pixel", "align_corners",
                                    "asymmetric" */
} wide_interpolate_layer;
/* Linear interpolation between positions: [B, C, H, W] -> [B, C, out_height, out_width]; of signals
 * [B, C, L] -> [B, C, out_width] only the widths count. */
WIDE_API wide_status wide_builder_interpolate(wide_builder* builder, const char* name, wide_value x,
                                              const wide_interpolate_layer* options,
                                              wide_value* out);

typedef struct wide_matmul_layer {
  size_t struct_size;
  int32_t transposes_left, transposes_right; /* the last two axes, before anything */
  float alpha;                               /* 0: 1 */
} wide_matmul_layer;
/* [B, .., M, K] and [B, .., K, P] -> [B, .., M, P]: alpha left right, of two computed values,
 * matrix by matrix. A left that is transposed and a right that is not are copied. */
WIDE_API wide_status wide_builder_matmul(wide_builder* builder, const char* name, wide_value left,
                                         wide_value right, const wide_matmul_layer* options,
                                         wide_value* out);

typedef struct wide_attention_layer {
  size_t struct_size;
  int32_t has_no_bias;
  int32_t is_causal;
  wide_value key_lengths; /* int32 [B]; 0: none */
  wide_value key;         /* [B, Tk, kdim] of a cross attention; 0: keys and values come from x */
  wide_value value;       /* [B, Tk, vdim]; 0: as key */
} wide_attention_layer;
/* A cross attention whose kdim or vdim differs from x's D has NAME.q_proj_weight,
 * NAME.k_proj_weight and NAME.v_proj_weight instead of NAME.in_proj_weight. */
WIDE_API wide_status wide_builder_attention(wide_builder* builder, const char* name, wide_value x,
                                            int64_t heads, const wide_attention_layer* options,
                                            wide_value* out);

typedef struct wide_flash_attention_layer {
  size_t struct_size;
  int64_t kv_heads; /* 0: heads */
  float scale;      /* 0: 1 / sqrt of a head's features */
  int32_t is_causal;
  wide_value key_lengths; /* int32 [B]; 0: none */
  /* Added to scores: [B, heads or 1, Tq or 1, Tk], or a parameter without the batch; 0: none. */
  wide_value bias;
  int64_t window;            /* a query sees keys nearer to it than this; 0: all */
  float soft_cap;            /* scores become soft_cap tanh(score / soft_cap); 0: off */
  wide_value slopes;         /* of ALiBi: a parameter, fp32 [heads]; 0: none */
  int32_t aligns_to_lengths; /* positions end at a row's key length instead of at Tk */
} wide_flash_attention_layer;
/* Attention without projections: q [B, Tq, heads*D], k and v [B, Tk, kv_heads*D] -> as q */
WIDE_API wide_status wide_builder_flash_attention(wide_builder* builder, const char* name,
                                                  wide_value q, wide_value k, wide_value v,
                                                  int64_t heads,
                                                  const wide_flash_attention_layer* options,
                                                  wide_value* out);

typedef struct wide_recurrent_layer {
  size_t struct_size;
  int32_t is_gru; /* 0: an lstm */
  int32_t has_no_bias;
  int32_t is_reversed;
  int32_t is_bidirectional; /* [B, T, 2H], of a layer in each direction */
  const char* suffix;       /* of the parameters' names; NULL: "l0" */
  wide_value first_hidden;  /* [B, H]; 0: zeros */
  wide_value first_cell;    /* fp32 [B, H], an lstm's; present where first_hidden is */
  /* What the next call continues from, written where not NULL; not for both directions at once. */
  wide_value* last_hidden; /* [B, H] */
  wide_value* last_cell;   /* fp32 [B, H], an lstm's */
} wide_recurrent_layer;
/* x [B, T, D] -> [B, T, hidden] */
WIDE_API wide_status wide_builder_recurrent(wide_builder* builder, const char* name, wide_value x,
                                            int64_t hidden, const wide_recurrent_layer* options,
                                            wide_value* out);

WIDE_API wide_status wide_builder_embedding(wide_builder* builder, const char* name, wide_value ids,
                                            int64_t vocab, int64_t dim, wide_value* out);

/* An epsilon of 0 is 1e-5. */
WIDE_API wide_status wide_builder_layernorm(wide_builder* builder, const char* name, wide_value x,
                                            float epsilon, wide_value* out);
WIDE_API wide_status wide_builder_rmsnorm(wide_builder* builder, const char* name, wide_value x,
                                          float epsilon, wide_value* out);
WIDE_API wide_status wide_builder_batchnorm(wide_builder* builder, const char* name, wide_value x,
                                            float epsilon, wide_value* out);
WIDE_API wide_status wide_builder_groupnorm(wide_builder* builder, const char* name, wide_value x,
                                            int64_t groups, float epsilon, wide_value* out);
WIDE_API wide_status wide_builder_instancenorm(wide_builder* builder, const char* name,
                                               wide_value x, float epsilon, wide_value* out);

typedef struct wide_pointwise_layer {
  size_t struct_size;
  float slope;        /* leaky_relu's; 0: 0.01 */
  float alpha;        /* elu's; 0: 1 */
  float beta;         /* softplus's; 0: 1 */
  float low, high;    /* clamp's, infinite where there is no bound; both 0: -1 and 1 */
  int64_t num_slopes; /* prelu's: 1 or the number of x's features; 0: 1 */
} wide_pointwise_layer;
/* By the function's name: relu, gelu, gelu_tanh, silu, sigmoid, tanh, elu, leaky_relu, prelu,
 * hardswish, softplus, clamp. */
WIDE_API wide_status wide_builder_pointwise(wide_builder* builder, const char* name, wide_value x,
                                            const char* function,
                                            const wide_pointwise_layer* options, wide_value* out);
WIDE_API wide_status wide_builder_add(wide_builder* builder, const char* name, wide_value x,
                                      wide_value other, wide_value* out);
/* By the function's name: add, subtract, multiply, divide. `other` is as x; or computed,
 * [B, C, 1, ..] of an x with channels first or [B, 1, .., D]; or a parameter: [1], as the last axes
 * of x without its batch, or [C, 1, ..]. */
WIDE_API wide_status wide_builder_binary(wide_builder* builder, const char* name, wide_value x,
                                         wide_value other, const char* function, wide_value* out);

/* Where x has three axes only the widths count. */
typedef struct wide_pool_layer {
  size_t struct_size;
  int64_t kernel_height, kernel_width;     /* 0: 1 */
  int64_t stride_height, stride_width;     /* 0: as the kernel */
  int64_t padding_height, padding_width;   /* 0: none */
  int64_t dilation_height, dilation_width; /* 0: 1; an average's is 1 */
  int32_t is_ceil_mode;                    /* a last window may begin inside x and end outside */
  int32_t counts_no_padding;               /* of an average: padding does not count as zeros */
  int32_t is_channels_last;
} wide_pool_layer;
WIDE_API wide_status wide_builder_max_pool(wide_builder* builder, const char* name, wide_value x,
                                           const wide_pool_layer* options, wide_value* out);
WIDE_API wide_status wide_builder_average_pool(wide_builder* builder, const char* name,
                                               wide_value x, const wide_pool_layer* options,
                                               wide_value* out);
/* [B, C, ..] -> [B, C, out_height, out_width], of signals [B, C, out_width]; extents of at least 1,
 * of 1 for a global pool. */
WIDE_API wide_status wide_builder_adaptive_average_pool(wide_builder* builder, const char* name,
                                                        wide_value x, int64_t out_height,
                                                        int64_t out_width, wide_value* out);
WIDE_API wide_status wide_builder_global_average_pool(wide_builder* builder, const char* name,
                                                      wide_value x, wide_value* out);
WIDE_API wide_status wide_builder_softmax(wide_builder* builder, const char* name, wide_value x,
                                          wide_value* out);
WIDE_API wide_status wide_builder_log_softmax(wide_builder* builder, const char* name, wide_value x,
                                              wide_value* out);
WIDE_API wide_status wide_builder_dropout(wide_builder* builder, const char* name, wide_value x,
                                          float probability, wide_value* out);
/* Each member has a probability of its own: NAME.probability, fp32 [1]. */
WIDE_API wide_status wide_builder_member_dropout(wide_builder* builder, const char* name,
                                                 wide_value x, wide_value* out);
WIDE_API wide_status wide_builder_flatten(wide_builder* builder, const char* name, wide_value x,
                                          wide_value* out);
WIDE_API wide_status wide_builder_reshape(wide_builder* builder, const char* name, wide_value x,
                                          const int64_t* shape, int32_t rank, wide_value* out);
WIDE_API wide_status wide_builder_concat(wide_builder* builder, const char* name,
                                         const wide_value* parts, int64_t num_parts, int32_t axis,
                                         wide_value* out);
WIDE_API wide_status wide_builder_slice(wide_builder* builder, const char* name, wide_value x,
                                        int32_t axis, int64_t first, int64_t count,
                                        wide_value* out);
/* Axis i of y is axis order[i] of x; the batch stays in front. */
WIDE_API wide_status wide_builder_transpose(wide_builder* builder, const char* name, wide_value x,
                                            const int64_t* order, int32_t rank, wide_value* out);
/* Combines the members' outputs: mean, variance (of K members: over K - 1), vote, log_mean_exp or
 * sum. */
WIDE_API wide_status wide_builder_ensemble(wide_builder* builder, const char* name, wide_value x,
                                           const char* ensemble, wide_value* out);

#ifdef __cplusplus
}
#endif

#endif
