// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention's kernels on CUDA: every padded width, tiles that the ring wraps around, blocks
// that see nothing, alignment. Skipped without a device; sizes suit a simulated one.
#include <cuda_runtime_api.h>
#include <catch2/generators/catch_generators_all.hpp>

#include "kernels/attention/flash_attention.hpp"
#include "kernels/attention/flash_attention_decode.hpp"
#include "verify/attention/flash_attention_case.hpp"

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

TEST_CASE("flash_attention on CUDA: decode in every width, in one part and several") {
  const Context context = require_cuda();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  const int64_t head_dim = GENERATE(8, 31, 64, 100, 128, 200, 256);
  // Rounds of 256, 128 and 64 keys, for two turns of a ring and more; the last round is cut.
  struct Size {
    int64_t seq, kv_seq, heads, kv_heads;
  };
  const Size size = GENERATE(Size{1, 900, 2, 2}, Size{1, 1700, 8, 1}, Size{3, 1100, 5, 1});
  if (dtype == Dtype::fp16 && size.heads != 8) return;  // the same kernel
  AttentionCase made{{.num_members = 2,
                      .batch = 1,
                      .seq = size.seq,
                      .heads = size.heads,
                      .kv_heads = size.kv_heads,
                      .head_dim = head_dim,
                      .dtype = dtype}};
  made.problem.kv_seq = size.kv_seq;
  made.spread = 4;
  INFO(dtype_name(dtype) << ", head_dim " << head_dim << ", " << size.seq << " queries of "
                         << size.heads << "/" << size.kv_heads << " heads, " << size.kv_seq);
  check_attention(context, made, "decode");
}

TEST_CASE("flash_attention on CUDA: decode's masks, parts that nobody sees, NaN behind lengths") {
  const Context context = require_cuda();
  AttentionCase made{{.num_members = 2,
                      .batch = 2,
                      .seq = 4,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = 32,
                      .dtype = Dtype::bf16}};
  made.problem.kv_seq = 1600;  // three parts of up to three rounds
  made.lengths = {1600, 0, 3, 777};
  made.has_nan_behind_lengths = true;
  made.problem.is_causal = GENERATE(false, true);
  made.problem.window = GENERATE(0, 700);
  made.problem.aligns_to_lengths = made.problem.window > 0;
  if (made.problem.window == 0) {
    made.slopes = {0.01, 0.5, 0.125, 1, 0.25, 0.02, 0, 0.03};
    made.problem.soft_cap = 3;
    made.bias = Shape{2, 1, 4};
  }
  INFO("causal " << made.problem.is_causal << ", window " << made.problem.window);
  check_attention(context, made, "decode");
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
  kernels::FlashAttentionDecodeParams decode{params, 1, nullptr};
  CHECK(kernels::launch_flash_attention_decode_fp16(decode, nullptr) ==
        cudaErrorInvalidConfiguration);
  decode.attention.batch = 1, decode.num_parts = 1 << 16;
  CHECK(kernels::launch_flash_attention_decode_bf16(decode, nullptr) ==
        cudaErrorInvalidConfiguration);
  decode.attention.seq = 17;
  CHECK(kernels::launch_flash_attention_decode_bf16(decode, nullptr) == cudaErrorInvalidValue);
  params.kv_seq = 257;
  CHECK(kernels::launch_flash_attention_short_bf16(params, nullptr) == cudaErrorInvalidValue);
  params.head_dim = 257;
  CHECK(kernels::launch_flash_attention_fp16(params, nullptr) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace wide::test
