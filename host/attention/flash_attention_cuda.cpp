// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/attention/flash_attention_run.hpp"
#include "host/attention/flash_attention_wgmma_cuda.hpp"
#include "host/core/cuda_check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/pointer.hpp"
#include "kernels/attention/flash_attention.hpp"
#include "kernels/attention/flash_attention_decode.hpp"

namespace wide {

namespace {

cudaError_t launch(Dtype dtype, FlashAttentionStrategy strategy,
                   const kernels::FlashAttentionParams& params, cudaStream_t stream) {
  if (strategy == FlashAttentionStrategy::short_keys) {
    return dtype == Dtype::fp16 ? kernels::launch_flash_attention_short_fp16(params, stream)
                                : kernels::launch_flash_attention_short_bf16(params, stream);
  }
  switch (dtype) {
    case Dtype::fp32:
      return kernels::launch_flash_attention_simt(params, stream);
    case Dtype::fp16:
      return kernels::launch_flash_attention_fp16(params, stream);
    case Dtype::bf16:
      return kernels::launch_flash_attention_bf16(params, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

kernels::FlashAttentionParams params_of(const Context& context,
                                        const FlashAttentionProblem& problem,
                                        const FlashAttentionArguments& arguments) {
  kernels::FlashAttentionParams params{};
  params.shared_bytes_per_block = context.info().shared_bytes_per_block;
  params.q = arguments.q.data;
  params.k = arguments.k.data;
  params.v = arguments.v.data;
  params.y = arguments.y.data;
  params.key_lengths = static_cast<const int32_t*>(arguments.key_lengths.data);
  params.slopes = static_cast<const float*>(arguments.slopes.data);
  params.bias = arguments.bias.data;
  params.bias_strides = problem.bias;
  params.num_members = problem.num_members;
  params.batch = problem.batch;
  params.heads = problem.heads;
  params.kv_heads = problem.kv_heads;
  params.seq = static_cast<int32_t>(problem.seq);
  params.kv_seq = static_cast<int32_t>(*problem.kv_seq);
  params.head_dim = static_cast<int32_t>(problem.head_dim);
  params.window = static_cast<int32_t>(problem.window);
  params.q_strides = problem.q;
  params.k_strides = problem.k;
  params.v_strides = problem.v;
  params.y_strides = problem.y;
  params.key_lengths_member_stride = problem.key_lengths_member_stride;
  params.slopes_member_stride = problem.slopes_member_stride;
  params.scale = *problem.scale;
  params.soft_cap = problem.soft_cap;
  params.is_causal = problem.is_causal;
  params.aligns_to_lengths = problem.aligns_to_lengths;
  return params;
}

/// A launch for each member.
void launch_members(const FlashAttentionProblem& problem,
                    const kernels::FlashAttentionParams& params, cudaStream_t stream) {
  const int64_t size = dtype_bytes(problem.dtype);
  kernels::FlashAttentionParams one = params;
  one.num_members = 1;
  for (int64_t n = 0; n < problem.num_members; ++n) {
    one.q = advanced(params.q, n * problem.q.member, size);
    one.k = advanced(params.k, n * problem.k.member, size);
    one.v = advanced(params.v, n * problem.v.member, size);
    one.y = advanced(params.y, n * problem.y.member, size);
    one.key_lengths = advanced(params.key_lengths, n * problem.key_lengths_member_stride, 4);
    one.slopes = advanced(params.slopes, n * problem.slopes_member_stride, 4);
    one.bias = advanced(params.bias, n * problem.bias.member, size);
    WIDE_CHECK_CUDA(launch(problem.dtype, FlashAttentionStrategy::sequential, one, stream));
  }
}

}  // namespace

void run_flash_attention_cuda(const Context& context, const FlashAttentionProblem& problem,
                              FlashAttentionStrategy strategy,
                              const FlashAttentionArguments& arguments,
                              const Execution& execution) {
  const CurrentDevice current(context.device().ordinal);
  const auto native = native_stream(execution.stream);
  const kernels::FlashAttentionParams params = params_of(context, problem, arguments);
  if (strategy == FlashAttentionStrategy::wgmma && has_flash_attention_maps(arguments)) {
    return run_flash_attention_wgmma(context.info(), problem, params, arguments, native);
  }
  if (strategy == FlashAttentionStrategy::decode) {
    const kernels::FlashAttentionDecodeParams decode{params, flash_attention_decode_parts(problem),
                                                     static_cast<float*>(execution.workspace.data)};
    WIDE_CHECK_CUDA(problem.dtype == Dtype::fp16
                        ? kernels::launch_flash_attention_decode_fp16(decode, native)
                        : kernels::launch_flash_attention_decode_bf16(decode, native));
    return;
  }
  if (strategy == FlashAttentionStrategy::sequential) {
    return launch_members(problem, params, native);
  }
  // Where wgmma has no maps, tensor_core's kernel stands in.
  WIDE_CHECK_CUDA(launch(problem.dtype, strategy, params, native));
}

}  // namespace wide
