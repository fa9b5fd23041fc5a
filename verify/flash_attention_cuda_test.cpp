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
  params.head_dim = 257;
  CHECK(kernels::launch_flash_attention_fp16(params, nullptr) == cudaErrorInvalidValue);
}

}  // namespace
}  // namespace wide::test
