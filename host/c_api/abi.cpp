// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The layout of the C headers' structs, which programs have compiled in: it cannot change
// unnoticed. A later version adds fields at a struct's end, in whole words, so that struct_size
// tells its versions apart (guard.hpp). What it adds inside, or into the padding at its end, is
// caught here: a caller's padding may have any content, and struct_size would be the same.
#include <cstddef>
#include <cstdint>

#include "wide/wide_builder.h"
#include "wide/wide_onnx.h"

namespace {

struct Anything {
  template <class T>
  operator T() const;
};

/// How many initialisers a struct takes: its fields, elements of arrays one by one.
template <class Struct, class... Given>
consteval size_t num_initialisers() {
  if constexpr (requires { Struct{Given{}..., Anything{}}; }) {
    return num_initialisers<Struct, Given..., Anything>();
  } else {
    return sizeof...(Given);
  }
}

template <class Struct>
consteval bool has_layout(size_t bytes, size_t initialisers) {
  return sizeof(Struct) == bytes && num_initialisers<Struct>() == initialisers;
}

// Where pointers have 64 bits, as on every machine with CUDA.
#if UINTPTR_MAX == UINT64_MAX

// wide/wide_runtime.h
static_assert(has_layout<wide_device>(8, 2));
static_assert(offsetof(wide_device, type) == 0 && offsetof(wide_device, ordinal) == 4);
static_assert(has_layout<wide_view>(128, 17));
static_assert(offsetof(wide_view, data) == 8 && offsetof(wide_view, dtype) == 16 &&
              offsetof(wide_view, rank) == 20 && offsetof(wide_view, shape) == 24 &&
              offsetof(wide_view, strides) == 72 && offsetof(wide_view, device) == 120);
static_assert(has_layout<wide_context_options>(48, 6));
static_assert(offsetof(wide_context_options, device) == 8 &&
              offsetof(wide_context_options, num_threads) == 16 &&
              offsetof(wide_context_options, user) == 24 &&
              offsetof(wide_context_options, allocate) == 32 &&
              offsetof(wide_context_options, deallocate) == 40);
static_assert(has_layout<wide_context_info>(48, 7));
static_assert(offsetof(wide_context_info, name) == 8 && offsetof(wide_context_info, device) == 16 &&
              offsetof(wide_context_info, compute_capability) == 24 &&
              offsetof(wide_context_info, num_threads) == 28 &&
              offsetof(wide_context_info, num_multiprocessors) == 32 &&
              offsetof(wide_context_info, memory_bytes) == 40);

// wide/wide.h
static_assert(has_layout<wide_model_sizes>(72, 9));
static_assert(offsetof(wide_model_sizes, dtype) == 8 && offsetof(wide_model_sizes, layers) == 16 &&
              offsetof(wide_model_sizes, width) == 24 && offsetof(wide_model_sizes, heads) == 32 &&
              offsetof(wide_model_sizes, seq) == 40 && offsetof(wide_model_sizes, image) == 48 &&
              offsetof(wide_model_sizes, classes) == 56 && offsetof(wide_model_sizes, vocab) == 64);
static_assert(has_layout<wide_weight_quantization>(40, 5));
static_assert(offsetof(wide_weight_quantization, format) == 8 &&
              offsetof(wide_weight_quantization, group_size) == 16 &&
              offsetof(wide_weight_quantization, layers) == 24 &&
              offsetof(wide_weight_quantization, num_layers) == 32);
static_assert(has_layout<wide_graph_info>(40, 5));
static_assert(offsetof(wide_graph_info, name) == 8 &&
              offsetof(wide_graph_info, num_parameters) == 16 &&
              offsetof(wide_graph_info, num_inputs) == 24 &&
              offsetof(wide_graph_info, num_outputs) == 32);
static_assert(has_layout<wide_graph_value>(80, 11));
static_assert(offsetof(wide_graph_value, name) == 8 && offsetof(wide_graph_value, dtype) == 16 &&
              offsetof(wide_graph_value, rank) == 20 && offsetof(wide_graph_value, shape) == 24 &&
              offsetof(wide_graph_value, is_shared) == 72);
static_assert(has_layout<wide_parameter_info>(80, 11));
static_assert(offsetof(wide_parameter_info, name) == 8 &&
              offsetof(wide_parameter_info, dtype) == 16 &&
              offsetof(wide_parameter_info, rank) == 20 &&
              offsetof(wide_parameter_info, shape) == 24 &&
              offsetof(wide_parameter_info, is_shared) == 72);
static_assert(has_layout<wide_output_ensembles>(48, 6));
static_assert(offsetof(wide_output_ensembles, ensembles) == 8 &&
              offsetof(wide_output_ensembles, num_ensembles) == 16 &&
              offsetof(wide_output_ensembles, outputs) == 24 &&
              offsetof(wide_output_ensembles, num_outputs) == 32 &&
              offsetof(wide_output_ensembles, keeps_members) == 40);
static_assert(has_layout<wide_members_info>(24, 3));
static_assert(offsetof(wide_members_info, graph) == 8 &&
              offsetof(wide_members_info, num_members) == 16);
static_assert(has_layout<wide_strategy>(24, 3));
static_assert(offsetof(wide_strategy, primitive) == 8 && offsetof(wide_strategy, strategy) == 16);
static_assert(has_layout<wide_plan_options>(168, 25));
static_assert(
    offsetof(wide_plan_options, num_members) == 8 && offsetof(wide_plan_options, batch) == 16 &&
    offsetof(wide_plan_options, batches) == 24 && offsetof(wide_plan_options, num_batches) == 32 &&
    offsetof(wide_plan_options, preset) == 40 && offsetof(wide_plan_options, allows_tf32) == 48 &&
    offsetof(wide_plan_options, drops_out) == 52 &&
    offsetof(wide_plan_options, shared_parameters) == 56 &&
    offsetof(wide_plan_options, num_shared_parameters) == 64 &&
    offsetof(wide_plan_options, strategies) == 72 &&
    offsetof(wide_plan_options, num_strategies) == 80 &&
    offsetof(wide_plan_options, disable_batchnorm_folding) == 88 &&
    offsetof(wide_plan_options, disable_fusion) == 92 &&
    offsetof(wide_plan_options, disable_memory_reuse) == 96 &&
    offsetof(wide_plan_options, disable_copies) == 100 &&
    offsetof(wide_plan_options, tuning) == 104 && offsetof(wide_plan_options, channels) == 112 &&
    offsetof(wide_plan_options, is_routed) == 116 && offsetof(wide_plan_options, choices) == 120 &&
    offsetof(wide_plan_options, router) == 128 && offsetof(wide_plan_options, gate) == 136 &&
    offsetof(wide_plan_options, first_id) == 144 &&
    offsetof(wide_plan_options, num_scores) == 152 && offsetof(wide_plan_options, id_dtype) == 160);
static_assert(has_layout<wide_plan_info>(136, 18));
static_assert(
    offsetof(wide_plan_info, num_members) == 8 && offsetof(wide_plan_info, batch) == 16 &&
    offsetof(wide_plan_info, num_inputs) == 24 && offsetof(wide_plan_info, num_outputs) == 32 &&
    offsetof(wide_plan_info, num_parameters) == 40 && offsetof(wide_plan_info, num_steps) == 48 &&
    offsetof(wide_plan_info, weights_bytes) == 56 &&
    offsetof(wide_plan_info, workspace_bytes) == 64 &&
    offsetof(wide_plan_info, input_bytes) == 72 && offsetof(wide_plan_info, output_bytes) == 80 &&
    offsetof(wide_plan_info, total_bytes) == 88 &&
    offsetof(wide_plan_info, activation_bytes) == 96 &&
    offsetof(wide_plan_info, scratch_bytes) == 104 &&
    offsetof(wide_plan_info, table_bytes) == 112 && offsetof(wide_plan_info, calls_cublas) == 120 &&
    offsetof(wide_plan_info, calls_cudnn) == 124 && offsetof(wide_plan_info, host_bytes) == 128);
static_assert(has_layout<wide_operand>(96, 14));
static_assert(offsetof(wide_operand, name) == 8 && offsetof(wide_operand, dtype) == 16 &&
              offsetof(wide_operand, rank) == 20 && offsetof(wide_operand, shape) == 24 &&
              offsetof(wide_operand, member_axis) == 72 &&
              offsetof(wide_operand, is_stacked) == 76 &&
              offsetof(wide_operand, first_rows) == 80 &&
              offsetof(wide_operand, num_members) == 88);
static_assert(has_layout<wide_step>(72, 9));
static_assert(offsetof(wide_step, node) == 8 && offsetof(wide_step, primitive) == 16 &&
              offsetof(wide_step, strategy) == 24 && offsetof(wide_step, explain) == 32 &&
              offsetof(wide_step, num_members) == 40 && offsetof(wide_step, scratch_bytes) == 48 &&
              offsetof(wide_step, member) == 56 && offsetof(wide_step, is_tuned) == 64);
static_assert(has_layout<wide_execution>(40, 5));
static_assert(offsetof(wide_execution, stream) == 8 && offsetof(wide_execution, workspace) == 16 &&
              offsetof(wide_execution, workspace_bytes) == 24 &&
              offsetof(wide_execution, handles) == 32);
static_assert(has_layout<wide_replay_options>(16, 2));
static_assert(offsetof(wide_replay_options, advances_dropout) == 8);

// wide/wide_builder.h
static_assert(has_layout<wide_linear_layer>(24, 3));
static_assert(offsetof(wide_linear_layer, activation) == 8 &&
              offsetof(wide_linear_layer, has_no_bias) == 16);
static_assert(has_layout<wide_conv_layer>(128, 17));
static_assert(offsetof(wide_conv_layer, kernel_height) == 8 &&
              offsetof(wide_conv_layer, kernel_width) == 16 &&
              offsetof(wide_conv_layer, stride_height) == 24 &&
              offsetof(wide_conv_layer, stride_width) == 32 &&
              offsetof(wide_conv_layer, padding_height) == 40 &&
              offsetof(wide_conv_layer, padding_width) == 48 &&
              offsetof(wide_conv_layer, dilation_height) == 56 &&
              offsetof(wide_conv_layer, dilation_width) == 64 &&
              offsetof(wide_conv_layer, groups) == 72 &&
              offsetof(wide_conv_layer, has_no_bias) == 80 &&
              offsetof(wide_conv_layer, is_channels_last) == 84 &&
              offsetof(wide_conv_layer, x_channels) == 88 &&
              offsetof(wide_conv_layer, kernel_depth) == 96 &&
              offsetof(wide_conv_layer, stride_depth) == 104 &&
              offsetof(wide_conv_layer, padding_depth) == 112 &&
              offsetof(wide_conv_layer, dilation_depth) == 120);
static_assert(has_layout<wide_conv_transpose_layer>(144, 18));
static_assert(offsetof(wide_conv_transpose_layer, kernel_height) == 8 &&
              offsetof(wide_conv_transpose_layer, kernel_width) == 16 &&
              offsetof(wide_conv_transpose_layer, stride_height) == 24 &&
              offsetof(wide_conv_transpose_layer, stride_width) == 32 &&
              offsetof(wide_conv_transpose_layer, padding_height) == 40 &&
              offsetof(wide_conv_transpose_layer, padding_width) == 48 &&
              offsetof(wide_conv_transpose_layer, dilation_height) == 56 &&
              offsetof(wide_conv_transpose_layer, dilation_width) == 64 &&
              offsetof(wide_conv_transpose_layer, output_padding_height) == 72 &&
              offsetof(wide_conv_transpose_layer, output_padding_width) == 80 &&
              offsetof(wide_conv_transpose_layer, groups) == 88 &&
              offsetof(wide_conv_transpose_layer, has_no_bias) == 96 &&
              offsetof(wide_conv_transpose_layer, kernel_depth) == 104 &&
              offsetof(wide_conv_transpose_layer, stride_depth) == 112 &&
              offsetof(wide_conv_transpose_layer, padding_depth) == 120 &&
              offsetof(wide_conv_transpose_layer, dilation_depth) == 128 &&
              offsetof(wide_conv_transpose_layer, output_padding_depth) == 136);
static_assert(has_layout<wide_attention_layer>(32, 6));
static_assert(offsetof(wide_attention_layer, has_no_bias) == 8 &&
              offsetof(wide_attention_layer, is_causal) == 12 &&
              offsetof(wide_attention_layer, key_lengths) == 16 &&
              offsetof(wide_attention_layer, key) == 20 &&
              offsetof(wide_attention_layer, value) == 24);
static_assert(has_layout<wide_flash_attention_layer>(56, 10));
static_assert(offsetof(wide_flash_attention_layer, kv_heads) == 8 &&
              offsetof(wide_flash_attention_layer, scale) == 16 &&
              offsetof(wide_flash_attention_layer, is_causal) == 20 &&
              offsetof(wide_flash_attention_layer, key_lengths) == 24 &&
              offsetof(wide_flash_attention_layer, bias) == 28 &&
              offsetof(wide_flash_attention_layer, window) == 32 &&
              offsetof(wide_flash_attention_layer, soft_cap) == 40 &&
              offsetof(wide_flash_attention_layer, slopes) == 44 &&
              offsetof(wide_flash_attention_layer, aligns_to_lengths) == 48);
static_assert(has_layout<wide_recurrent_layer>(56, 10));
static_assert(offsetof(wide_recurrent_layer, is_gru) == 8 &&
              offsetof(wide_recurrent_layer, has_no_bias) == 12 &&
              offsetof(wide_recurrent_layer, is_reversed) == 16 &&
              offsetof(wide_recurrent_layer, is_bidirectional) == 20 &&
              offsetof(wide_recurrent_layer, suffix) == 24 &&
              offsetof(wide_recurrent_layer, first_hidden) == 32 &&
              offsetof(wide_recurrent_layer, first_cell) == 36 &&
              offsetof(wide_recurrent_layer, last_hidden) == 40 &&
              offsetof(wide_recurrent_layer, last_cell) == 48);
static_assert(has_layout<wide_matmul_layer>(24, 4));
static_assert(offsetof(wide_matmul_layer, transposes_left) == 8 &&
              offsetof(wide_matmul_layer, transposes_right) == 12 &&
              offsetof(wide_matmul_layer, alpha) == 16);
static_assert(has_layout<wide_pointwise_layer>(40, 7));
static_assert(offsetof(wide_pointwise_layer, slope) == 8 &&
              offsetof(wide_pointwise_layer, alpha) == 12 &&
              offsetof(wide_pointwise_layer, beta) == 16 &&
              offsetof(wide_pointwise_layer, low) == 20 &&
              offsetof(wide_pointwise_layer, high) == 24 &&
              offsetof(wide_pointwise_layer, num_slopes) == 32);
static_assert(has_layout<wide_interpolate_layer>(40, 6));
static_assert(offsetof(wide_interpolate_layer, out_height) == 8 &&
              offsetof(wide_interpolate_layer, out_width) == 16 &&
              offsetof(wide_interpolate_layer, row_scale) == 24 &&
              offsetof(wide_interpolate_layer, column_scale) == 28 &&
              offsetof(wide_interpolate_layer, coordinates) == 32);
static_assert(has_layout<wide_pool_layer>(88, 12));
static_assert(offsetof(wide_pool_layer, kernel_height) == 8 &&
              offsetof(wide_pool_layer, kernel_width) == 16 &&
              offsetof(wide_pool_layer, stride_height) == 24 &&
              offsetof(wide_pool_layer, stride_width) == 32 &&
              offsetof(wide_pool_layer, padding_height) == 40 &&
              offsetof(wide_pool_layer, padding_width) == 48 &&
              offsetof(wide_pool_layer, dilation_height) == 56 &&
              offsetof(wide_pool_layer, dilation_width) == 64 &&
              offsetof(wide_pool_layer, is_ceil_mode) == 72 &&
              offsetof(wide_pool_layer, counts_no_padding) == 76 &&
              offsetof(wide_pool_layer, is_channels_last) == 80);

// wide/wide_onnx.h
static_assert(has_layout<wide_onnx_extent>(24, 3));
static_assert(offsetof(wide_onnx_extent, name) == 8 && offsetof(wide_onnx_extent, extent) == 16);
static_assert(has_layout<wide_onnx_fixed_input>(24, 3));
static_assert(offsetof(wide_onnx_fixed_input, name) == 8 &&
              offsetof(wide_onnx_fixed_input, value) == 16);
static_assert(has_layout<wide_onnx_options>(72, 9));
static_assert(offsetof(wide_onnx_options, extents) == 8 &&
              offsetof(wide_onnx_options, num_extents) == 16 &&
              offsetof(wide_onnx_options, shared_inputs) == 24 &&
              offsetof(wide_onnx_options, num_shared_inputs) == 32 &&
              offsetof(wide_onnx_options, fixed_inputs) == 40 &&
              offsetof(wide_onnx_options, num_fixed_inputs) == 48 &&
              offsetof(wide_onnx_options, outputs) == 56 &&
              offsetof(wide_onnx_options, num_outputs) == 64);
static_assert(has_layout<wide_onnx_file>(32, 4));
static_assert(offsetof(wide_onnx_file, data) == 8 && offsetof(wide_onnx_file, bytes) == 16 &&
              offsetof(wide_onnx_file, name) == 24);

#endif

}  // namespace
