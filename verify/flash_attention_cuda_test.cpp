// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention's kernels on CUDA: every padded width, tiles that the ring wraps around, blocks
// that see nothing, alignment. Skipped without a device; sizes suit a simulated one.
#include <cuda_runtime_api.h>
#include <catch2/generators/catch_generators_all.hpp>

#include "kernels/attention/flash_attention.hpp"
#include "verify/flash_attention_case.hpp"

namespace wide::test {
namespace {

std::string kernel_for(Dtype dtype) {
  return dtype == Dtype::fp32 ? "simt" : "tensor_core";
}

TEST_CASE("flash_attention on CUDA: every width, whole and not, with keys for a ring's turn") {
  const Context context = require_cuda();
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const int64_t head_dim = GENERATE(8, 31, 32, 48, 64, 80, 96, 104, 128, 160, 192, 200, 256);
  AttentionCase made{{.batch = 1, .seq = 40, .head_dim = head_dim, .dtype = dtype}};
  made.problem.kv_seq = 230;  // of 64 keys four tiles, more than any ring has stages for
  made.spread = 4;
  INFO(dtype_name(dtype) << ", head_dim " << head_dim);
  check_attention(context, made, kernel_for(dtype));
}

TEST_CASE(
    "flash_attention on CUDA: short in every size of keys, blocks of many tiles and of units") {
  const Context context = require_cuda();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  struct Size {
    int64_t head_dim, kv_seq, seq, batch;
  };
  // Queries for several rounds of a block's warps; for two blocks of a unit; for several units of a
  // block, the last block's not all there.
  const Size size = GENERATE(Size{20, 100, 70, 1}, Size{32, 230, 40, 1}, Size{64, 128, 300, 1},
                             Size{40, 197, 70, 1}, Size{128, 97, 70, 1}, Size{200, 60, 40, 1},
                             Size{256, 64, 16, 1}, Size{16, 33, 5, 3}, Size{31, 20, 17, 5});
  AttentionCase made{{.num_members = 1,
                      .batch = size.batch,
                      .seq = size.seq,
                      .heads = 2,
                      .kv_heads = size.seq == 70 ? 1 : 2,
                      .head_dim = size.head_dim,
                      .dtype = dtype}};
  made.problem.kv_seq = size.kv_seq;
  made.problem.is_causal = GENERATE(false, true);
  made.problem.window = made.problem.is_causal ? 25 : 0;
  made.spread = 4;
  INFO(dtype_name(dtype) << ", head_dim " << size.head_dim << ", " << size.seq << " queries, "
                         << size.kv_seq << " keys, causal " << made.problem.is_causal);
  check_attention(context, made, "short");
}

TEST_CASE("flash_attention on CUDA: blocks of queries that see all keys, some, and none") {
  const Context context = require_cuda();
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16);
  struct Size {
    int64_t seq, kv_seq;
  };
  const Size size = GENERATE(Size{129, 129}, Size{300, 70}, Size{70, 300}, Size{1, 200});
  AttentionCase made{{.num_members = 2,
                      .batch = 1,
                      .seq = size.seq,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = 16,
                      .dtype = dtype}};
  made.problem.kv_seq = size.kv_seq;
  made.problem.is_causal = GENERATE(false, true);
  made.problem.window = GENERATE(0, 33);
  INFO(dtype_name(dtype) << ", " << size.seq << " queries, " << size.kv_seq << " keys, causal "
                         << made.problem.is_causal << ", window " << made.problem.window);
  check_attention(context, made, kernel_for(dtype));
}

TEST_CASE("flash_attention on CUDA: refuses what no grid can hold") {
  kernels::FlashAttentionParams params{};
  params.seq = params.kv_seq = params.head_dim = 1;
  params.heads = params.kv_heads = params.batch = 1 << 16;
  params.num_members = 1;
  CHECK(kernels::launch_flash_attention_simt(params, nullptr) == cudaErrorInvalidConfiguration);
  CHECK(kernels::launch_flash_attention_bf16(params, nullptr) == cudaErrorInvalidConfiguration);
  CHECK(kernels::launch_flash_attention_short_fp16(params, nullptr) ==
        cudaErrorInvalidConfiguration);
  params.kv_seq = 257;
  CHECK(kernels::launch_flash_attention_short_bf16(params, nullptr) == cudaErrorInvalidValue);
  params.head_dim = 257;
  CHECK(kernels::launch_flash_attention_fp16(params, nullptr) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace wide::test
