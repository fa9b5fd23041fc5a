// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention's wgmma: widths, rings that come round, turns, masks, what nobody may look at.
// Simulated devices have two multiprocessors here, so that blocks of the kernel go on from queries
// to queries. Skipped without a device of compute capability 9.0.
#include <algorithm>

#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "verify/attention/flash_attention_case.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;

Context require_hopper() {
  const Context context = require_cuda();
  if (context.info().compute_capability != 90) SKIP("wgmma needs compute capability 9.0");
  return context;
}

TEST_CASE("flash_attention by wgmma: every width, whole and not, over several blocks of queries") {
  const Context context = require_hopper();
  const Dtype dtype = GENERATE(Dtype::fp16, Dtype::bf16);
  const int64_t head_dim = GENERATE(8, 64, 72, 80, 96, 104, 128, 136, 160, 192, 200, 256);
  if (dtype == Dtype::fp16 && head_dim % 32 != 0) return;  // the same kernels
  // Of 128 keys three tiles, of 64 five; the last one's are not all there.
  AttentionCase made{{.num_members = 2,
                      .batch = 1,
                      .seq = 140,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = head_dim,
                      .dtype = dtype}};
  made.problem.kv_seq = 300;
  made.spread = 4;
  INFO(dtype_name(dtype) << ", head_dim " << head_dim);
  check_attention(context, made, "wgmma");
}

TEST_CASE("flash_attention by wgmma: queries that see all keys, some, and none") {
  const Context context = require_hopper();
  struct Size {
    int64_t seq, kv_seq, window;
  };
  const Size size = GENERATE(Size{129, 129, 0}, Size{300, 70, 0}, Size{300, 280, 33},
                             Size{70, 400, 0}, Size{1, 200, 5}, Size{128, 128, 0});
  const int64_t head_dim = GENERATE(16, 136, 200);
  AttentionCase made{{.num_members = 2,
                      .batch = 1,
                      .seq = size.seq,
                      .heads = 2,
                      .head_dim = head_dim,
                      .dtype = Dtype::fp16}};
  made.problem.kv_seq = size.kv_seq;
  made.problem.window = size.window;
  made.problem.is_causal = GENERATE(false, true);
  INFO(size.seq << " queries, " << size.kv_seq << " keys, head_dim " << head_dim << ", causal "
                << made.problem.is_causal << ", window " << size.window);
  check_attention(context, made, "wgmma");
}

TEST_CASE("flash_attention by wgmma: key lengths, with NaN behind them, and scores that are bent") {
  const Context context = require_hopper();
  const int64_t head_dim = GENERATE(64, 96, 128, 192, 256);
  AttentionCase made{{.num_members = 2,
                      .batch = 3,
                      .seq = 20,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = head_dim,
                      .dtype = Dtype::bf16}};
  made.problem.kv_seq = 260;
  made.lengths = {260, 129, 0, 1, 64, 200};
  made.has_nan_behind_lengths = true;
  made.problem.is_causal = GENERATE(false, true);
  if (made.problem.is_causal) {
    made.problem.soft_cap = 3;
    made.slopes = {0.5, 0.25, 0.125, 1};
    made.problem.scale = -0.25f;
    made.problem.aligns_to_lengths = head_dim != 128;
    made.spread = 3;
  }
  INFO("head_dim " << head_dim << ", causal and bent " << made.problem.is_causal);
  check_attention(context, made, "wgmma");
}

TEST_CASE("flash_attention by wgmma: keys that members share, and addresses without a map") {
  const Context context = require_hopper();
  constexpr int64_t kMembers = 3, kSeq = 40, kDim = 32;
  const Shape own{1, kSeq, kMembers, kDim};
  const Reals queries = uniform(num_elements(own), -2, 2, 1);
  Tensor q = upload(context, Dtype::fp16, own, queries);
  const Tensor one =
      upload(context, Dtype::fp16, {1, kSeq + 1, 1, kDim}, uniform((kSeq + 1) * kDim, -1, 1, 2));
  // The same keys by stride 0, and written down for each member; then one element on.
  for (const int64_t offset : {0, 1}) {
    ConstTensorView shared(static_cast<const uint16_t*>(one.data()) + offset, Dtype::fp16, own,
                           context.device());
    shared.strides = {kSeq * kDim, kDim, 0, 1};
    const Reals values = download(context, one);
    Reals repeated;
    for (int64_t i = 0; i < kSeq; ++i) {
      for (int64_t n = 0; n < kMembers; ++n) {
        const auto from = values.begin() + i * kDim + offset;
        repeated.insert(repeated.end(), from, from + kDim);
      }
    }
    const Tensor copies = upload(context, Dtype::fp16, own, repeated);
    const auto attend = [&](const ConstTensorView& keys) {
      Tensor y(context, Dtype::fp16, own);
      const FlashAttentionArguments arguments{q, keys, keys, {}, {}, y};
      const FlashAttentionProblem like{.num_members = kMembers};
      const FlashAttentionPlan plan = make_flash_attention_plan(
          context, describe_flash_attention(arguments, like), {.strategy = "wgmma"});
      CHECK_THAT(plan.explain(), ContainsSubstring("by tensor_core where operands are not"));
      run_plan(context, plan, arguments);
      return download(context, y);
    };
    const Reals by_stride = attend(shared), by_copy = attend(copies);
    double worst = 0;
    for (size_t i = 0; i < by_copy.size(); ++i) {
      worst = std::max(worst, std::fabs(by_stride[i] - by_copy[i]));
    }
    CHECK(worst <= (offset == 0 ? 0 : 0.004));  // tensor_core stands in: other bits
  }
}

}  // namespace
}  // namespace wide::test
