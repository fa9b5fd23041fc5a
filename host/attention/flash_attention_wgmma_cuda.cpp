// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Encoding tensor maps is host arithmetic: it is done at every call, and nothing is allocated or
// uploaded; the maps are passed as kernel parameters.
#include "host/attention/flash_attention_wgmma_cuda.hpp"

#include "host/core/cuda_check.hpp"
#include "host/core/tensor_map.hpp"
#include "kernels/attention/flash_attention_wgmma.hpp"

namespace wide {

namespace {

/// An operand of `batch` times `seq` rows, in boxes of some positions of a head.
struct HeadsMap {
  const void* data;
  int64_t heads, seq;
  RowStrides strides;
  int64_t box_rows;
};

void encode(const FlashAttentionProblem& p, const HeadsMap& map, CUtensorMap& encoded) {
  // A stride that nothing steps along must be valid all the same.
  const int64_t features = map.heads * p.head_dim;
  const int64_t member = map.strides.member == 0 ? features : map.strides.member;
  const int64_t row = p.batch * map.seq > 1 ? map.strides.row : features;
  encode_tile_map({.data = map.data,
                   .dtype = p.dtype,
                   .rank = 5,
                   .extent = {p.head_dim, map.heads, map.strides.member == 0 ? 1 : p.num_members,
                              map.seq, p.batch},
                   .stride = {1, p.head_dim, member, row, map.seq * row},
                   .box = {kernels::kAttentionPanel, 1, 1, map.box_rows, 1},
                   .swizzle = TileSwizzle::bytes_128},
                  encoded);
}

}  // namespace

bool has_flash_attention_maps(const FlashAttentionArguments& a) {
  return a.k.num_elements() > 0 && is_on_16_bytes(a.q.data) && is_on_16_bytes(a.k.data) &&
         is_on_16_bytes(a.v.data) && is_on_16_bytes(a.y.data);
}

void run_flash_attention_wgmma(const DeviceInfo& device, const FlashAttentionProblem& p,
                               const kernels::FlashAttentionParams& params,
                               const FlashAttentionArguments& arguments, cudaStream_t stream) {
  const int64_t queries = kernels::kAttentionBoxQueries;
  const int64_t keys = kernels::attention_wgmma_keys(p.head_dim);
  kernels::FlashAttentionWgmmaParams wgmma{};
  wgmma.attention = params;
  wgmma.num_multiprocessors = device.num_multiprocessors;
  wgmma.q_is_shared = p.q.member == 0;
  wgmma.k_is_shared = p.k.member == 0;
  wgmma.v_is_shared = p.v.member == 0;
  encode(p, {arguments.q.data, p.heads, p.seq, p.q, queries}, wgmma.q);
  encode(p, {arguments.k.data, p.kv_heads, *p.kv_seq, p.k, keys}, wgmma.k);
  encode(p, {arguments.v.data, p.kv_heads, *p.kv_seq, p.v, keys}, wgmma.v);
  encode(p, {arguments.y.data, p.heads, p.seq, p.y, queries}, wgmma.y);
  WIDE_CHECK_CUDA(kernels::launch_flash_attention_wgmma(wgmma, p.dtype, stream));
}

}  // namespace wide
