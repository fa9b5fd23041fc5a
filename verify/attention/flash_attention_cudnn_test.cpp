// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is asked for as attention, where cuDNN cannot run: the graph is interpreted on the
// host, and cuDNN plans it for devices that are not at hand.
#include <catch2/catch_test_macros.hpp>

#include "host/attention/flash_attention_cudnn.hpp"
#include "host/attention/flash_attention_problem.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/cudnn_interpreter.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;

namespace {

FlashAttentionProblem problem(int64_t seq, int64_t kv_seq, int64_t head_dim, bool is_causal) {
  FlashAttentionProblem p{.num_members = 2, .batch = 3, .seq = seq, .kv_seq = kv_seq};
  p.heads = 4;
  p.kv_heads = 2;
  p.head_dim = head_dim;
  p.dtype = Dtype::fp16;
  p.is_causal = is_causal;
  return complete_flash_attention_problem(p);
}

/// Members one behind the other, [N, B, T, heads*D], instead of side by side.
FlashAttentionProblem member_major(FlashAttentionProblem p) {
  const auto set = [&](RowStrides& s, int64_t seq, int64_t features) {
    s = {features, p.batch * seq * features};
  };
  set(p.q, p.seq, p.heads * p.head_dim);
  set(p.y, p.seq, p.heads * p.head_dim);
  set(p.k, *p.kv_seq, p.kv_heads * p.head_dim);
  set(p.v, *p.kv_seq, p.kv_heads * p.head_dim);
  return p;
}

/// Operands with the problem's strides, always with the same values.
struct Operands {
  Operands(const FlashAttentionProblem& p, const Context& on)
      : context(on),
        q(values(p.batch * p.seq * p.num_members * p.heads * p.head_dim, 1)),
        k(values(p.batch * *p.kv_seq * p.num_members * p.kv_heads * p.head_dim, 2)),
        v(values(k.shape()[0], 3)),
        y(context, Dtype::fp16, q.shape()) {
    const auto view = [&](Tensor& tensor, const RowStrides& s, int64_t seq, int64_t heads) {
      return TensorView(tensor.data(), Dtype::fp16,
                        {p.batch, seq, p.num_members, heads * p.head_dim},
                        Strides{seq * s.row, s.row, s.member, 1}, context.device());
    };
    arguments = {view(q, p.q, p.seq, p.heads),
                 view(k, p.k, *p.kv_seq, p.kv_heads),
                 view(v, p.v, *p.kv_seq, p.kv_heads),
                 {},
                 {},
                 view(y, p.y, p.seq, p.heads)};
  }
  Tensor values(int64_t count, uint64_t seed) const {
    return test::upload(context, Dtype::fp16, {count}, test::uniform(count, -2, 2, seed));
  }

  Context context;
  Tensor q, k, v, y;
  FlashAttentionArguments arguments;
};

double worst_difference(const Operands& a, const Operands& b) {
  return test::worst_difference(test::download(a.context, a.y), test::download(b.context, b.y));
}

constexpr double kTolerance = 4e-3;  // shares and y are rounded to fp16

}  // namespace

TEST_CASE("flash_attention: cuDNN's graph means what the CPU computes") {
  for (const auto& base :
       {problem(5, 5, 8, false), problem(3, 7, 8, true), problem(4, 4, 8, true)}) {
    FlashAttentionProblem single = base;
    single.batch = 1;
    for (const auto& p : {base, member_major(base), member_major(single)}) {
      REQUIRE(flash_attention_cudnn_unsupported_reason(p) == "");
      const Operands ours(p, Context::cpu()), theirs(p, Context::cpu());
      make_flash_attention_plan(ours.context, p).run(ours.arguments, {Stream::cpu()});
      const FlashAttentionCudnnGraph graph = describe_flash_attention_cudnn(p);
      test::interpret(graph.graph, bind_flash_attention_cudnn(graph, theirs.arguments));
      CHECK(worst_difference(ours, theirs) < kTolerance);
    }
  }
}

TEST_CASE("flash_attention: what cuDNN cannot be told of is refused with the reason") {
  const FlashAttentionProblem good = problem(5, 7, 8, true);
  const auto reason = [&](auto change) {
    FlashAttentionProblem p = good;
    change(p);
    return flash_attention_cudnn_unsupported_reason(p);
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  using Problem = FlashAttentionProblem;
  CHECK(reason([](Problem&) {}) == "");
  CHECK(has(reason([](Problem& p) { p.dtype = Dtype::fp32; }), "tf32"));
  CHECK(has(reason([](Problem& p) { p.head_dim = 20; }), "heads are of 20 elements"));
  CHECK(has(reason([](Problem& p) { p.window = 3; }), "no window"));
  CHECK(has(reason([](Problem& p) { p.soft_cap = 3; }), "soft cap"));
  CHECK(has(reason([](Problem& p) { p.has_slopes = true; }), "slopes"));
  CHECK(has(reason([](Problem& p) { p.has_bias = true; }), "or bias"));
  CHECK(has(reason([](Problem& p) { p.key_lengths = KeyLengths::shared; }), "lengths of 0"));
  CHECK(has(reason([](Problem& p) { p.kv_seq = 4; }), "see no key"));
  CHECK(has(reason([](Problem& p) {
              p.kv_seq = 0;
              p.is_causal = false;
            }),
            "see no key"));
  CHECK(has(reason([](Problem& p) { p.v.member += 8; }), "neither side by side"));
}

TEST_CASE("flash_attention: cuDNN plans it for devices that are not at hand") {
  test::require_cudnn_planning();
  // Every plan is a compilation of half a second: few of them.
  const std::pair<CudnnDevice, FlashAttentionProblem> cases[] = {
      {test::kCudnnH200, problem(128, 128, 64, false)},
      {test::kCudnnH200, member_major(problem(64, 64, 128, true))},
      {test::kCudnnA100, problem(19, 37, 72, true)}};
  for (const auto& [device, p] : cases) {
    const FlashAttentionCudnn plan(device, p, FlashAttentionCudnn::Calls::one);
    INFO(plan.explain() << ", " << plan.workspace_bytes() << " bytes");
    CHECK(plan.explain().starts_with("engine "));
    CHECK(plan.workspace_bytes() < 4096);  // nothing grows with Tq Tk
    const Operands operands(p, Context::cpu());
    FlashAttentionArguments odd = operands.arguments;
    odd.k.data = static_cast<const std::byte*>(odd.k.data) + 2;
    CHECK(flash_attention_cudnn_unsupported_reason(odd) ==
          "k is aligned to 2 bytes, expected cuDNN's = 16");
    CHECK_THROWS_AS(plan.run(operands.arguments, {Stream::cpu()}), Error);  // no handle
  }
}

TEST_CASE("flash_attention: cuDNN on CUDA does what the CPU does", "[gpu]") {
  const Context context = test::require_cuda();
  const VendorHandles handles(context);
  if (handles.cudnn() == nullptr) SKIP("no cuDNN: " << handles.cudnn_unavailable_reason());
  const OwnedStream stream(context);
  for (const auto& base : {problem(65, 65, 64, false), problem(19, 37, 72, true)}) {
    for (const auto& p : {base, member_major(base)}) {
      const Operands ours(p, Context::cpu()), theirs(p, context);
      make_flash_attention_plan(ours.context, p).run(ours.arguments, {Stream::cpu()});
      const auto plan = make_flash_attention_plan(context, p, {.strategy = "cudnn"});
      Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
      plan.run(theirs.arguments, {stream.get(), {scratch.data(), scratch.bytes()}, &handles});
      context.synchronize(stream.get());
      CHECK(worst_difference(ours, theirs) < kTolerance);
    }
  }
}
