// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What flash_attention refuses, and which strategy AUTO takes: no device is needed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>

#include "host/attention/flash_attention_problem.hpp"
#include "host/attention/flash_attention_strategy.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/error.hpp"
#include "wide/flash_attention.hpp"
#include "wide/tensor.hpp"

namespace wide::test {

using Catch::Matchers::Message;

TEST_CASE("flash_attention: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  const auto tensor = [&](Dtype dtype, const Shape& shape) { return Tensor(cpu, dtype, shape); };
  Tensor q = tensor(Dtype::fp32, {2, 3, 16}), k = tensor(Dtype::fp32, {2, 5, 16}),
         y = tensor(Dtype::fp32, {2, 3, 16});
  const FlashAttentionProblem like{.num_members = 2, .heads = 2};
  const auto refused = [&](const FlashAttentionArguments& arguments, const std::string& message) {
    CHECK_THROWS_MATCHES(describe_flash_attention(arguments, like), Error,
                         Message("flash_attention: " + message));
  };
  const FlashAttentionArguments right{q, k, k, {}, {}, y};
  REQUIRE_NOTHROW(describe_flash_attention(right, like));
  const auto with = [&](auto change) {
    FlashAttentionArguments arguments = right;
    change(arguments);
    return arguments;
  };
  const Tensor flat = tensor(Dtype::fp32, {6, 16}), odd = tensor(Dtype::fp32, {2, 3, 15}),
               narrow = tensor(Dtype::fp32, {2, 5, 8}), half = tensor(Dtype::fp16, {2, 5, 16}),
               lengths = tensor(Dtype::int32, {3}), floats = tensor(Dtype::fp32, {2}),
               slopes = tensor(Dtype::fp32, {2, 3});
  refused(with([&](auto& a) { a.q = flat; }),
          "q is [6, 16], expected [batch, positions, num_members * features], or with members "
          "explicit");
  refused(with([&](auto& a) { a.q = odd; }), "q is [2, 3, 15], expected a last axis of 4 heads");
  refused(with([&](auto& a) { a.v = narrow; }),
          "v is [2, 5, 8], expected [.., num_members * features] = [.., 16] or [.., num_members, "
          "features] = [.., 2, 8]");
  refused(with([&](auto& a) { a.v = q; }),
          "v is [2, 3, 16], expected [batch, positions, num_members * features] = [2, 5, 16], or "
          "with members explicit");
  refused(with([&](auto& a) { a.k = half; }), "k is fp16, expected dtype = fp32");
  refused(with([&](auto& a) { a.key_lengths = lengths; }),
          "key_lengths is [3], expected [batch] = [2]");
  refused(with([&](auto& a) { a.key_lengths = floats; }),
          "key_lengths is fp32, expected dtype = int32");
  refused(with([&](auto& a) { a.slopes = slopes; }),
          "slopes is [2, 3], expected [num_members, heads] = [2, 2]");
  const Tensor bias = tensor(Dtype::fp32, {2, 1, 3, 3, 5});
  refused(
      with([&](auto& a) { a.bias = bias; }),
      "bias is [2, 1, 3, 3, 5], expected [num_members or 1, batch or 1, heads or 1, seq, kv_seq] "
      "= [2, 2, 2, 3, 5]");
  refused(
      with([&](auto& a) { a.bias = slopes; }),
      "bias is [2, 3], expected [num_members or 1, batch or 1, heads or 1, seq, kv_seq] = [2, 2, "
      "2, 3, 5]");
  refused(with([&](auto& a) { a.y = q; }), "y overlaps q, expected memory of its own");

  const auto illegal = [&](FlashAttentionProblem p, const std::string& message) {
    CHECK_THROWS_MATCHES(make_flash_attention_plan(cpu, p), Error,
                         Message("flash_attention: " + message));
  };
  const FlashAttentionProblem fine{.batch = 1, .seq = 2, .heads = 4, .head_dim = 8};
  FlashAttentionProblem bad = fine;
  bad.kv_heads = 3, illegal(bad, "kv_heads is 3, expected a divisor of heads = 4");
  bad = fine, bad.head_dim = 257, illegal(bad, "head_dim is 257, expected in [1, 256]");
  bad = fine, bad.window = -1, illegal(bad, "window is -1, expected >= 0");
  bad = fine, bad.seq = (int64_t{1} << 30) + 1,
  illegal(bad, "seq is 1073741825, expected in [0, 1073741824]");
  bad = fine, bad.dtype = Dtype::int32, illegal(bad, "dtype is int32, expected fp32, fp16 or bf16");
  bad = fine, bad.soft_cap = std::nanf(""),
  illegal(bad, "soft_cap is nan, expected a number from 0, which is none, to 65536");
  bad.soft_cap = 1e6f;
  illegal(bad, "soft_cap is 1e+06, expected a number from 0, which is none, to 65536");
  bad = fine, bad.scale = INFINITY, illegal(bad, "scale is inf, expected a finite number");
  CHECK_THROWS_MATCHES(make_flash_attention_plan(cpu, fine).run(right, {Stream::cpu()}), Error,
                       Message("flash_attention: q is [2, 3, 16], expected the plan's batch = 1"));
}

TEST_CASE("flash_attention: AUTO takes a verified kernel only, and says why") {
  DeviceInfo gpu = test::kH200;
  using enum FlashAttentionStrategy;
  std::string refusal = "no engine";
  int asked = 0;
  const auto choose = [&](Dtype dtype, const DeviceInfo& device, std::string_view name,
                          std::span<const VerifiedStrategy> verified = {}, int64_t keys = 1,
                          int64_t head_dim = 8, int64_t seq = 128) {
    FlashAttentionProblem problem{.seq = seq, .kv_seq = keys, .head_dim = head_dim, .dtype = dtype};
    return choose_flash_attention_strategy(problem, device, name, verified, [&](std::string_view) {
      ++asked;
      return refusal;
    });
  };
  const VerifiedStrategy proved[] = {{"flash_attention", "tensor_core", 90}};
  CHECK(choose(Dtype::bf16, gpu, "auto", proved).strategy == tensor_core);
  const VerifiedStrategy both[] = {{"flash_attention", "tensor_core", 90},
                                   {"flash_attention", "short", 90}};
  CHECK(choose(Dtype::bf16, gpu, "auto", both).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 129, 128).strategy == tensor_core);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 256, 64).strategy == tensor_core);  // whole tiles
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 64, 32, 64).strategy == tensor_core);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 240, 64).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 256, 64, 120).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 128, 128).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 64, 256).strategy == short_keys);
  const VerifiedStrategy all[] = {{"flash_attention", "tensor_core", 90},
                                  {"flash_attention", "wgmma", 90}};
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 257, 64).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 257, 40).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 257, 31).strategy == tensor_core);  // half a width
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 257, 32).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 129, 32).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 129, 32, 129).strategy == tensor_core);
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 128, 32).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 257, 65).strategy == tensor_core);
  CHECK(choose(Dtype::bf16, gpu, "auto", all, 257, 64, 16).strategy == wgmma);  // decode is not
  const VerifiedStrategy few[] = {{"flash_attention", "decode", 90},
                                  {"flash_attention", "short", 90},
                                  {"flash_attention", "wgmma", 90}};
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 257, 64, 16).strategy == decode);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 256, 64, 16).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 257, 64, 17).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 256, 64).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 65, 64, 65).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 64, 64).strategy == short_keys);  // half a tile
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 256, 64, 64).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 256, 64, 63).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 256, 32).strategy == wgmma);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 144, 32, 144).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", few, 144, 64, 144).strategy == wgmma);
  CHECK_THROWS_MATCHES(
      choose(Dtype::bf16, gpu, "short", both, 257, 64), Error,
      Message("flash_attention: strategy short cannot run this problem: it takes up "
              "to 256 keys of heads of 64 elements, kv_seq is 257"));
  CHECK_THROWS_MATCHES(choose(Dtype::fp32, gpu, "short"), Error,
                       Message("flash_attention: strategy short cannot run this problem: it takes "
                               "fp16 and bf16, not fp32"));
  CHECK(choose(Dtype::fp32, gpu, "auto", proved).explain ==
        "sequential: member after member; short, decode, tensor_core: it takes fp16 and bf16, not "
        "fp32; simt: unverified on compute capability 90; cudnn: it would multiply fp32 as tf32");
  CHECK((choose(Dtype::bf16, gpu, "cudnn").strategy == cudnn && asked == 0));
  const std::string ours =
      "short, tensor_core: unverified on compute capability 90; decode: it takes up to 16 "
      "queries that share keys, those of 1 head of seq 128 do; simt: it takes fp32, not bf16";
  CHECK(choose(Dtype::bf16, gpu, "auto").explain ==
        "sequential: member after member; " + ours + "; cudnn: no engine");
  refusal = "";
  CHECK(choose(Dtype::bf16, gpu, "auto").strategy == cudnn);
  CHECK(choose(Dtype::bf16, gpu, "auto").explain == "cudnn: one call for all members; " + ours);
  CHECK(asked == 3);
  CHECK(choose(Dtype::fp16, DeviceInfo{}, "auto").strategy == wide);
  CHECK(choose(Dtype::fp32, gpu, "simt").strategy == simt);
  CHECK_THROWS_MATCHES(choose(Dtype::fp32, gpu, "tensor_core"), Error,
                       Message("flash_attention: strategy tensor_core cannot run this problem: it "
                               "takes fp16 and bf16, not fp32"));
  CHECK_THROWS_AS(choose(Dtype::fp32, gpu, "wide"), Error);
  CHECK_THROWS_MATCHES(choose(Dtype::fp32, gpu, "wgmma"), Error,
                       Message("flash_attention: strategy wgmma cannot run this problem: it takes "
                               "fp16 and bf16, not fp32"));
  CHECK_THROWS_MATCHES(choose(Dtype::fp16, gpu, "wgmma", {}, 1, 12), Error,
                       Message("flash_attention: strategy wgmma cannot run this problem: it takes "
                               "heads of whole 16 bytes, head_dim is 12; tensor_core takes any"));
  gpu.compute_capability = 75, gpu.name = "T4";
  CHECK_THROWS_MATCHES(
      choose(Dtype::fp16, gpu, "tensor_core"), Error,
      Message("flash_attention: strategy tensor_core cannot run this problem: it needs compute "
              "capability 8.0 and later, T4 has 7.5"));
  gpu.compute_capability = 100, gpu.name = "B200";
  CHECK_THROWS_MATCHES(
      choose(Dtype::fp16, gpu, "wgmma"), Error,
      Message("flash_attention: strategy wgmma cannot run this problem: wgmma is an "
              "instruction of compute capability 9.0 alone, B200 has 10.0"));
}

TEST_CASE("flash_attention: decode's parts, their memory, and what it refuses") {
  using enum FlashAttentionStrategy;
  const FlashAttentionProblem one = complete_flash_attention_problem({.num_members = 4,
                                                                      .batch = 2,
                                                                      .seq = 1,
                                                                      .kv_seq = 4096,
                                                                      .heads = 8,
                                                                      .kv_heads = 4,
                                                                      .head_dim = 72,
                                                                      .dtype = Dtype::fp16});
  const auto with = [&](auto change) {
    FlashAttentionProblem p = one;
    change(p);
    return flash_attention_decode_parts(p);
  };
  CHECK(flash_attention_decode_parts(one) == 8);
  CHECK(with([](auto& p) { p.num_members = 1; }) == 8);  // a member's bits are its own
  CHECK(with([](auto& p) { p.batch = 1; }) == 8);        // no part of fewer than 512 keys
  CHECK(with([](auto& p) { p.batch = 16; }) == 1);
  CHECK(with([](auto& p) { p.kv_seq = 511; }) == 1);
  CHECK(with([](auto& p) { p.window = 1200; }) == 2);
  // Of each part 16 rows of 128 sums, the largest exponent and the total.
  CHECK(flash_attention_workspace_bytes(decode, one) == int64_t{4} * 2 * 4 * 8 * 16 * 130 * 4);
  CHECK(flash_attention_workspace_bytes(tensor_core, one) == 0);
  DeviceInfo gpu = test::kA100;
  CHECK(flash_attention_unsupported_reason(decode, one, gpu).empty());
  FlashAttentionProblem other = one;
  other.seq = 9;
  CHECK(flash_attention_unsupported_reason(decode, other, gpu) ==
        "it takes up to 16 queries that share keys, those of 2 heads of seq 9 do");
  other = one, other.dtype = Dtype::fp32;
  CHECK(flash_attention_unsupported_reason(decode, other, gpu) ==
        "it takes fp16 and bf16, not fp32");
}

TEST_CASE("flash_attention: 99 KiB of shared memory hold every width") {
  const DeviceInfo gpu = test::gpu("L4", 89, 58, 99 * 1024);
  using enum FlashAttentionStrategy;
  const int64_t head_dim = GENERATE(64, 128, 192, 256);
  const auto problem = [&](Dtype dtype) {
    return FlashAttentionProblem{.seq = 1, .kv_seq = 512, .head_dim = head_dim, .dtype = dtype};
  };
  for (const FlashAttentionStrategy strategy : {tensor_core, decode, sequential}) {
    CHECK(flash_attention_unsupported_reason(strategy, problem(Dtype::bf16), gpu).empty());
  }
  CHECK(flash_attention_unsupported_reason(simt, problem(Dtype::fp32), gpu).empty());
  const VerifiedStrategy all[] = {{"flash_attention", "tensor_core", 89},
                                  {"flash_attention", "decode", 89}};
  CHECK(
      choose_flash_attention_strategy(problem(Dtype::bf16), gpu, "auto", all, [](std::string_view) {
        return "";
      }).strategy == decode);
}

TEST_CASE("flash_attention: wgmma takes what tensor maps describe") {
  DeviceInfo gpu = test::kH200;
  const auto reason = [&](const FlashAttentionProblem& problem) {
    return flash_attention_unsupported_reason(FlashAttentionStrategy::wgmma, problem, gpu);
  };
  const FlashAttentionProblem fine = complete_flash_attention_problem(
      {.num_members = 2, .batch = 3, .seq = 5, .heads = 2, .head_dim = 8, .dtype = Dtype::fp16});
  CHECK(reason(fine).empty());
  FlashAttentionProblem odd = fine;
  odd.has_bias = true;
  CHECK(reason(odd) == "it adds no bias to scores; tensor_core does");
  odd = fine, odd.k.row = 36;
  CHECK(reason(odd) ==
        "k has strides 36 (row) and 16 (member), tensor maps need multiples of 8 elements and rows "
        "apart; tensor_core takes any");
  odd = fine, odd.q.row = 0;
  CHECK(!reason(odd).empty());
  odd = fine, odd.v.member = 0;  // one for all members
  CHECK(reason(odd).empty());
  odd = fine, odd.y.member = 20;
  CHECK(!reason(odd).empty());
}

}  // namespace wide::test
