// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The layers of wide/layers.hpp, one by one.
#include "wide/layers.hpp"

#include "host/c_api/builder.hpp"

using namespace wide;
using namespace wide::c_api;

namespace {

using Name = const std::string&;

template <class T>
T or_default(T given, T otherwise) {
  return given == T{} ? otherwise : given;
}

float epsilon_of(float given) {
  return or_default(given, 1e-5f);
}

PoolingOp pooling_of(PoolingMode mode, const wide_pool_layer* options) {
  const wide_pool_layer given = options_or_default(options, "options");
  return {.mode = mode,
          .rows = {.kernel = or_default(given.kernel_height, int64_t{1}),
                   .stride = given.stride_height,
                   .padding = given.padding_height,
                   .dilation = or_default(given.dilation_height, int64_t{1})},
          .columns = {.kernel = or_default(given.kernel_width, int64_t{1}),
                      .stride = given.stride_width,
                      .padding = given.padding_width,
                      .dilation = or_default(given.dilation_width, int64_t{1})},
          .ceil_mode = given.is_ceil_mode != 0,
          .counts_padding = given.counts_no_padding == 0,
          .layout = given.is_channels_last != 0 ? ChannelLayout::channels_last
                                                : ChannelLayout::channels_first};
}

}  // namespace

wide_status wide_builder_linear(wide_builder* builder, const char* name, wide_value x,
                                int64_t out_features, const wide_linear_layer* options,
                                wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_linear_layer given = options_or_default(options, "options");
    layers::LinearLayer layer{.has_bias = given.has_no_bias == 0};
    if (given.activation != nullptr) {
      layer.activation = named<Activation>(given.activation, "options.activation", kAllActivations,
                                           activation_name);
    }
    return layers::linear(g, own, value_of(g, x), out_features, layer);
  });
}

namespace {

PerAxis pair(int64_t height, int64_t width, int64_t otherwise) {
  return {or_default(height, otherwise), or_default(width, otherwise)};
}

/// Of either struct, which name these alike.
template <class Layer>
ConvDepth depth_of(const Layer& given) {
  return {.kernel = or_default(given.kernel_depth, int64_t{3}),
          .stride = or_default(given.stride_depth, int64_t{1}),
          .padding = given.padding_depth,
          .dilation = or_default(given.dilation_depth, int64_t{1})};
}

}  // namespace

wide_status wide_builder_conv(wide_builder* builder, const char* name, wide_value x,
                              int64_t out_channels, const wide_conv_layer* options,
                              wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_conv_layer given = options_or_default(options, "options");
    return layers::conv(g, own, value_of(g, x), out_channels,
                        {.kernel = pair(given.kernel_height, given.kernel_width, 3),
                         .stride = pair(given.stride_height, given.stride_width, 1),
                         .padding = {given.padding_height, given.padding_width},
                         .dilation = pair(given.dilation_height, given.dilation_width, 1),
                         .depth = depth_of(given),
                         .groups = or_default(given.groups, int64_t{1}),
                         .has_bias = given.has_no_bias == 0,
                         .layout = given.is_channels_last != 0 ? ChannelLayout::channels_last
                                                               : ChannelLayout::channels_first,
                         .x_layout = layout_of(given.x_channels, "options.x_channels")});
  });
}

wide_status wide_builder_conv_transpose(wide_builder* builder, const char* name, wide_value x,
                                        int64_t out_channels,
                                        const wide_conv_transpose_layer* options, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_conv_transpose_layer given = options_or_default(options, "options");
    return layers::conv_transpose(
        g, own, value_of(g, x), out_channels,
        {.kernel = pair(given.kernel_height, given.kernel_width, 3),
         .stride = pair(given.stride_height, given.stride_width, 1),
         .padding = {given.padding_height, given.padding_width},
         .dilation = pair(given.dilation_height, given.dilation_width, 1),
         .output_padding = {given.output_padding_height, given.output_padding_width},
         .depth = depth_of(given),
         .depth_output_padding = given.output_padding_depth,
         .groups = or_default(given.groups, int64_t{1}),
         .has_bias = given.has_no_bias == 0});
  });
}

wide_status wide_builder_depth_to_space(wide_builder* builder, const char* name, wide_value x,
                                        int64_t block, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::depth_to_space(g, own, value_of(g, x), block);
  });
}

wide_status wide_builder_upsample(wide_builder* builder, const char* name, wide_value x,
                                  int64_t factor, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::upsample(g, own, value_of(g, x), factor);
  });
}

wide_status wide_builder_interpolate(wide_builder* builder, const char* name, wide_value x,
                                     const wide_interpolate_layer* options, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_interpolate_layer given = options_or_default(options, "options");
    InterpolateOp op{.out_height = given.out_height, .out_width = given.out_width};
    op.row_scale = given.row_scale, op.column_scale = given.column_scale;
    if (given.coordinates != nullptr) {
      op.coordinates = named<CoordinateMode>(given.coordinates, "options.coordinates",
                                             kAllCoordinateModes, coordinate_mode_name);
    }
    return g.append(own, op, {{"x", value_of(g, x)}});
  });
}

wide_status wide_builder_matmul(wide_builder* builder, const char* name, wide_value left,
                                wide_value right, const wide_matmul_layer* options,
                                wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_matmul_layer given = options_or_default(options, "options");
    return layers::matmul(g, own, value_of(g, left), value_of(g, right),
                          {.transposes_left = given.transposes_left != 0,
                           .transposes_right = given.transposes_right != 0,
                           .alpha = or_default(given.alpha, 1.0f)});
  });
}

wide_status wide_builder_attention(wide_builder* builder, const char* name, wide_value x,
                                   int64_t heads, const wide_attention_layer* options,
                                   wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_attention_layer given = options_or_default(options, "options");
    return layers::attention(g, own, value_of(g, x), heads,
                             {.has_bias = given.has_no_bias == 0,
                              .is_causal = given.is_causal != 0,
                              .key_lengths = optional_value_of(g, given.key_lengths),
                              .key = optional_value_of(g, given.key),
                              .value = optional_value_of(g, given.value)});
  });
}

wide_status wide_builder_flash_attention(wide_builder* builder, const char* name, wide_value q,
                                         wide_value k, wide_value v, int64_t heads,
                                         const wide_flash_attention_layer* options,
                                         wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_flash_attention_layer given = options_or_default(options, "options");
    layers::FlashAttentionLayer layer{.kv_heads = given.kv_heads,
                                      .is_causal = given.is_causal != 0,
                                      .window = given.window,
                                      .soft_cap = given.soft_cap,
                                      .key_lengths = optional_value_of(g, given.key_lengths),
                                      .bias = optional_value_of(g, given.bias),
                                      .slopes = optional_value_of(g, given.slopes),
                                      .aligns_to_lengths = given.aligns_to_lengths != 0};
    if (given.scale != 0) layer.scale = given.scale;
    return layers::flash_attention(g, own, value_of(g, q), value_of(g, k), value_of(g, v), heads,
                                   layer);
  });
}

wide_status wide_builder_recurrent(wide_builder* builder, const char* name, wide_value x,
                                   int64_t hidden, const wide_recurrent_layer* options,
                                   wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_recurrent_layer given = options_or_default(options, "options");
    const bool is_lstm = given.is_gru == 0;
    layers::RecurrentLayer layer{.has_bias = given.has_no_bias == 0,
                                 .is_reversed = given.is_reversed != 0,
                                 .first_hidden = optional_value_of(g, given.first_hidden),
                                 .first_cell = optional_value_of(g, given.first_cell)};
    if (given.suffix != nullptr) layer.suffix = given.suffix;
    const auto cell = is_lstm ? RecurrentCell::lstm : RecurrentCell::gru;
    const bool wants_states = given.last_hidden != nullptr || given.last_cell != nullptr;
    if (given.is_bidirectional != 0) {
      WIDE_REQUIRE(!wants_states,
                   "options.last_hidden or last_cell is present, expected none: both directions "
                   "end with states of their own");
      return layers::bidirectional(g, own, value_of(g, x), hidden, cell, layer);
    }
    if (wants_states) {
      WIDE_REQUIRE(is_lstm || given.last_cell == nullptr,
                   "options.last_cell is present, expected none: a gru has no cell state");
      const layers::RecurrentStates states =
          layers::recurrent(g, own, value_of(g, x), hidden, cell, layer);
      if (given.last_hidden != nullptr) *given.last_hidden = handle_of(states.hidden);
      if (given.last_cell != nullptr) *given.last_cell = handle_of(states.cell);
      return states.y;
    }
    return is_lstm ? layers::lstm(g, own, value_of(g, x), hidden, layer)
                   : layers::gru(g, own, value_of(g, x), hidden, layer);
  });
}

wide_status wide_builder_embedding(wide_builder* builder, const char* name, wide_value ids,
                                   int64_t vocab, int64_t dim, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::embedding(g, own, value_of(g, ids), vocab, dim);
  });
}

wide_status wide_builder_layernorm(wide_builder* builder, const char* name, wide_value x,
                                   float epsilon, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::layernorm(g, own, value_of(g, x), epsilon_of(epsilon));
  });
}
wide_status wide_builder_rmsnorm(wide_builder* builder, const char* name, wide_value x,
                                 float epsilon, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::rmsnorm(g, own, value_of(g, x), epsilon_of(epsilon));
  });
}
wide_status wide_builder_batchnorm(wide_builder* builder, const char* name, wide_value x,
                                   float epsilon, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::batchnorm(g, own, value_of(g, x), epsilon_of(epsilon));
  });
}
wide_status wide_builder_groupnorm(wide_builder* builder, const char* name, wide_value x,
                                   int64_t groups, float epsilon, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::groupnorm(g, own, value_of(g, x), groups, epsilon_of(epsilon));
  });
}
wide_status wide_builder_instancenorm(wide_builder* builder, const char* name, wide_value x,
                                      float epsilon, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::instancenorm(g, own, value_of(g, x), epsilon_of(epsilon));
  });
}

wide_status wide_builder_pointwise(wide_builder* builder, const char* name, wide_value x,
                                   const char* function, const wide_pointwise_layer* options,
                                   wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    const wide_pointwise_layer given = options_or_default(options, "options");
    const layers::PointwiseLayer usual;
    const bool has_bounds = given.low != 0 || given.high != 0;
    return layers::pointwise(g, own, value_of(g, x),
                             named<PointwiseFunction>(function, "function", kAllPointwiseFunctions,
                                                      pointwise_function_name),
                             {.slope = or_default(given.slope, usual.slope),
                              .alpha = or_default(given.alpha, usual.alpha),
                              .beta = or_default(given.beta, usual.beta),
                              .low = has_bounds ? given.low : usual.low,
                              .high = has_bounds ? given.high : usual.high,
                              .num_slopes = or_default(given.num_slopes, usual.num_slopes)});
  });
}
wide_status wide_builder_add(wide_builder* builder, const char* name, wide_value x,
                             wide_value other, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::add(g, own, value_of(g, x), value_of(g, other));
  });
}
wide_status wide_builder_binary(wide_builder* builder, const char* name, wide_value x,
                                wide_value other, const char* function, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::binary(
        g, own, value_of(g, x), value_of(g, other),
        named<BinaryFunction>(function, "function", kAllBinaryFunctions, binary_function_name));
  });
}

wide_status wide_builder_max_pool(wide_builder* builder, const char* name, wide_value x,
                                  const wide_pool_layer* options, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return g.append(own, pooling_of(PoolingMode::max, options), {{"x", value_of(g, x)}});
  });
}
wide_status wide_builder_average_pool(wide_builder* builder, const char* name, wide_value x,
                                      const wide_pool_layer* options, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return g.append(own, pooling_of(PoolingMode::average, options), {{"x", value_of(g, x)}});
  });
}
wide_status wide_builder_adaptive_average_pool(wide_builder* builder, const char* name,
                                               wide_value x, int64_t out_height, int64_t out_width,
                                               wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::adaptive_average_pool(g, own, value_of(g, x), out_height, out_width);
  });
}
wide_status wide_builder_global_average_pool(wide_builder* builder, const char* name, wide_value x,
                                             wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::global_average_pool(g, own, value_of(g, x));
  });
}
wide_status wide_builder_softmax(wide_builder* builder, const char* name, wide_value x,
                                 wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::softmax(g, own, value_of(g, x));
  });
}
wide_status wide_builder_log_softmax(wide_builder* builder, const char* name, wide_value x,
                                     wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::log_softmax(g, own, value_of(g, x));
  });
}
wide_status wide_builder_dropout(wide_builder* builder, const char* name, wide_value x,
                                 float probability, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::dropout(g, own, value_of(g, x), probability);
  });
}
wide_status wide_builder_member_dropout(wide_builder* builder, const char* name, wide_value x,
                                        wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::dropout(g, own, value_of(g, x));
  });
}
wide_status wide_builder_flatten(wide_builder* builder, const char* name, wide_value x,
                                 wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::flatten(g, own, value_of(g, x));
  });
}
wide_status wide_builder_reshape(wide_builder* builder, const char* name, wide_value x,
                                 const int64_t* shape, int32_t rank, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::reshape(g, own, value_of(g, x), dims_of(shape, rank));
  });
}
wide_status wide_builder_concat(wide_builder* builder, const char* name, const wide_value* parts,
                                int64_t num_parts, int32_t axis, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    require_array(parts, num_parts, "parts");
    std::vector<Operand> operands;
    for (int64_t i = 0; i < num_parts; ++i) {
      operands.push_back({"part" + std::to_string(i), value_of(g, parts[i])});
    }
    return g.append(own, ConcatOp{.axis = axis}, std::move(operands));
  });
}
wide_status wide_builder_slice(wide_builder* builder, const char* name, wide_value x, int32_t axis,
                               int64_t first, int64_t count, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::slice(g, own, value_of(g, x), axis, first, count);
  });
}
wide_status wide_builder_transpose(wide_builder* builder, const char* name, wide_value x,
                                   const int64_t* order, int32_t rank, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::transpose(g, own, value_of(g, x), dims_of(order, rank, "order"));
  });
}
wide_status wide_builder_ensemble(wide_builder* builder, const char* name, wide_value x,
                                  const char* ensemble, wide_value* out) {
  return appended(__func__, builder, name, out, [&](GraphBuilder& g, Name own) {
    return layers::ensemble(g, own, value_of(g, x),
                            named<EnsembleFunction>(ensemble, "ensemble", kAllEnsembleFunctions,
                                                    ensemble_function_name));
  });
}
