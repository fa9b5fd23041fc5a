// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention on every device at hand: exact cases worked out by hand, masks, layouts, edges,
// and what is refused.
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "host/attention/flash_attention_strategy.hpp"
#include "verify/flash_attention_case.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::Message;

/// y of one head, member and batch row.
Reals attend(const Context& context, const std::string& strategy, FlashAttentionProblem problem,
             int64_t dim, const Reals& q, const Reals& k, const Reals& v) {
  const auto rows = [&](const Reals& values) { return static_cast<int64_t>(values.size()) / dim; };
  const auto tensor = [&](const Reals& values) {
    return upload(context, problem.dtype, {1, rows(values), dim}, values);
  };
  const Tensor q_there = tensor(q), k_there = tensor(k), v_there = tensor(v),
               y(context, problem.dtype, {1, rows(q), dim});
  const FlashAttentionArguments arguments{q_there, k_there, v_there, {}, {}, y};
  const OwnedStream stream(context);
  make_flash_attention_plan(context, describe_flash_attention(arguments, problem),
                            {.strategy = strategy})
      .run(arguments, {stream.get()});
  context.synchronize(stream.get());
  return download(context, y);
}

template <class F>
void on_every_kernel(const F& f) {
  for (const Context& context : devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      const FlashAttentionProblem problem{.dtype = dtype};
      for (const std::string& strategy : strategies_for(context, problem)) {
        INFO(to_string(context.device()) << " " << strategy << " " << dtype_name(dtype));
        f(context, strategy, problem);
      }
    }
  }
}

}  // namespace

TEST_CASE("flash_attention: equal scores give the mean of what is seen, exactly") {
  on_every_kernel(
      [](const Context& context, const std::string& strategy, FlashAttentionProblem problem) {
        const Reals nothing(8, 0.0), values{1, 2, 3, 6, 9, 10, 11, 18};
        CHECK(attend(context, strategy, problem, 2, nothing, nothing, values) ==
              Reals{6, 9, 6, 9, 6, 9, 6, 9});
        problem.is_causal = true;  // 1, 2, 3 and 4 keys
        const Reals causal = attend(context, strategy, problem, 2, nothing, nothing, values);
        CHECK(Reals(causal.begin(), causal.begin() + 4) == Reals{1, 2, 2, 4});
        CHECK(Reals(causal.begin() + 6, causal.end()) == Reals{6, 9});
        // The last of two queries stands at the last of four keys, the first at the third.
        const Reals late = attend(context, strategy, problem, 2, {0, 0, 0, 0}, nothing, values);
        CHECK(Reals(late.begin() + 2, late.end()) == Reals{6, 9});
        CHECK(std::fabs(late[0] - 13.0 / 3) < 0.03);
        // Of four queries the first two stand before the first of two keys.
        CHECK(attend(context, strategy, problem, 2, nothing, {0, 0, 0, 0}, {1, 2, 3, 6}) ==
              Reals{0, 0, 0, 0, 1, 2, 2, 4});
        problem.is_causal = false;
        problem.window = 1;
        CHECK(attend(context, strategy, problem, 2, nothing, nothing, values) == values);
      });
}

TEST_CASE("flash_attention: a score far above the others picks its value, however large it is") {
  on_every_kernel(
      [](const Context& context, const std::string& strategy, FlashAttentionProblem problem) {
        problem.scale = 1;
        const Reals k{100, 0, 0, 100, -100, 0, 0, -100}, v{1, 2, 3, 4, 5, 6, 7, 8};
        const Reals got =
            attend(context, strategy, problem, 2, {100, 1, 1, 100, -100, 1, 1, -100}, k, v);
        for (size_t i = 0; i < v.size(); ++i) CHECK(std::fabs(got[i] - v[i]) <= 1e-6 * v[i]);
        problem.scale = -1;  // the smallest product wins
        CHECK(attend(context, strategy, problem, 2, {100, 1, 1, 100}, k, v) == Reals{5, 6, 7, 8});
      });
}

TEST_CASE(
    "flash_attention: keys behind a length are never looked at, a query without keys gives 0") {
  for (const Context& context : devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      constexpr int64_t kKeys = 70;
      Reals keys(kKeys * 2 * 4, std::nan(""));  // [1, 70, 2 members * 4]
      for (size_t i = 0; i < 3 * 8; ++i) keys[i] = 0.25;
      const Tensor k = upload(context, dtype, {1, kKeys, 8}, keys),
                   q = upload(context, dtype, {1, 3, 8}, Reals(24, 1.0)),
                   y(context, dtype, {1, 3, 8});
      for (const auto& [stored, first, second] :
           {std::tuple{Reals{3, 0}, 0.25, 0.0}, {Reals{1, -5}, 0.25, 0.0}}) {
        const Tensor lengths = upload(context, Dtype::int32, {2, 1}, stored);
        const FlashAttentionArguments arguments{q, k, k, lengths, {}, y};
        const OwnedStream stream(context);
        make_flash_attention_plan(context, describe_flash_attention(arguments, {.num_members = 2}))
            .run(arguments, {stream.get()});
        context.synchronize(stream.get());
        const Reals got = download(context, y);
        for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == (i % 8 < 4 ? first : second));
      }
    }
  }
}

TEST_CASE("flash_attention: masks, heads and lengths within the bound") {
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::bf16);
  AttentionCase made{{.num_members = 2,
                      .batch = 2,
                      .seq = 37,
                      .heads = 2,
                      .kv_heads = 1,
                      .head_dim = 20,
                      .dtype = dtype}};
  made.problem.kv_seq = GENERATE(90, 11);
  made.problem.is_causal = GENERATE(false, true);
  SECTION("plain") {}
  SECTION("two key heads") {
    made.problem.heads = 4, made.problem.kv_heads = 2;
  }
  SECTION("window") {
    made.problem.window = GENERATE(1, 40, int64_t{1} << 40);
  }
  SECTION("sharp") {
    made.spread = 40;
  }
  SECTION("soft cap") {
    made.problem.soft_cap = 2;
    made.spread = 8;
  }
  SECTION("negative scale") {
    made.problem.scale = -0.5f;
  }
  SECTION("lengths of their own") {
    made.lengths = {0, 5, 99, 10};
  }
  SECTION("shared lengths") {
    made.lengths = {7, 1};
  }
  SECTION("slopes") {
    made.slopes = {0.5, 0, -0.125, 4};
  }
  SECTION("everything") {
    made.lengths = {30, 8, 2, 11};
    made.slopes = {0.5, 0, -0.125, 2};
    made.problem.soft_cap = 5;
    made.problem.window = 9;
  }
  check_everywhere(made);
}

TEST_CASE("flash_attention: a wrong mask, scale or softmax is out of bounds") {
  // What the judge must refuse: each is the right result of a problem that differs in one thing.
  FlashAttentionProblem p{.batch = 1, .seq = 8, .head_dim = 4};
  p.is_causal = true;
  const Reals q = uniform(32, -1, 1, 1), k = uniform(32, -1, 1, 2), v = uniform(32, -1, 1, 3);
  const auto row = [&](int64_t query) {
    return catalog::FlashAttentionReferenceRow{
        std::span(q).subspan(static_cast<size_t>(query) * 4, 4), k, v, query, 0, 8, 0};
  };
  FlashAttentionProblem uncausal = p, shifted = p, scaled = p, windowed = p, capped = p;
  uncausal.is_causal = false;
  shifted.kv_seq = 7;
  scaled.scale = 0.501f;
  windowed.window = 3;
  capped.soft_cap = 3;
  for (const FlashAttentionProblem& wrong : {uncausal, shifted, scaled, windowed, capped}) {
    Reals expected(4), tolerance(4), got(4), unused(4);
    catalog::judge_flash_attention_row(complete_flash_attention_problem(p), row(5), expected,
                                       tolerance);
    catalog::judge_flash_attention_row(complete_flash_attention_problem(wrong), row(5), got,
                                       unused);
    double worst = 0;
    for (size_t d = 0; d < 4; ++d)
      worst = std::fmax(worst, std::fabs(got[d] - expected[d]) / tolerance[d]);
    CHECK(worst > 5);
  }
}

TEST_CASE("flash_attention: views of one tensor that holds q, k and v of all members") {
  for (const Context& context : devices_at_hand()) {
    constexpr int64_t kMembers = 2, kBatch = 2, kSeq = 5, kDim = 8;
    const Shape packed{kBatch, kSeq, kMembers, 3 * kDim};
    const Reals values = uniform(num_elements(packed), -1, 1, 9);
    const Tensor qkv = upload(context, Dtype::fp16, packed, values);
    const auto part = [&](int64_t i) { return qkv.view().narrow(3, i * kDim, kDim); };
    const auto dense = [&](int64_t i) {
      Reals own;
      for (size_t at = 0; at < values.size(); ++at) {
        if (static_cast<int64_t>(at) / kDim % 3 == i) own.push_back(values[at]);
      }
      return upload(context, Dtype::fp16, {kBatch, kSeq, kMembers * kDim}, own);
    };
    const Tensor q = dense(0), k = dense(1), v = dense(2);
    const Tensor y(context, Dtype::fp16, {kBatch, kSeq, kMembers * kDim}),
        expected(context, Dtype::fp16, {kBatch, kSeq, kMembers * kDim});
    const OwnedStream stream(context);
    for (const FlashAttentionArguments& arguments :
         {FlashAttentionArguments{part(0), part(1), part(2), {}, {}, y},
          FlashAttentionArguments{q, k, v, {}, {}, expected}}) {
      make_flash_attention_plan(context,
                                describe_flash_attention(arguments, {.num_members = kMembers}))
          .run(arguments, {stream.get()});
    }
    context.synchronize(stream.get());
    CHECK(download(context, y) == download(context, expected));
  }
}

TEST_CASE("flash_attention: empty problems run, and no keys give zeros") {
  for (const Context& context : devices_at_hand()) {
    const Tensor none(context, Dtype::fp32, {2, 0, 8}),
        one = upload(context, Dtype::fp32, {2, 1, 8}, Reals(16, 1.0));
    const OwnedStream stream(context);
    for (const auto& [q, k] : {std::pair{&none, &none}, {&none, &one}, {&one, &none}}) {
      const Tensor y = upload(context, Dtype::fp32, q->shape(),
                              Reals(static_cast<size_t>(q->num_elements()), std::nan("")));
      const FlashAttentionArguments arguments{*q, *k, *k, {}, {}, y};
      make_flash_attention_plan(context,
                                describe_flash_attention(arguments, {.num_members = 2, .heads = 2}))
          .run(arguments, {stream.get()});
      context.synchronize(stream.get());
      for (const double value : download(context, y)) CHECK(value == 0);
    }
  }
}

TEST_CASE("flash_attention: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  const auto tensor = [&](Dtype dtype, const Shape& shape) { return Tensor(cpu, dtype, shape); };
  const Tensor q = tensor(Dtype::fp32, {2, 3, 16}), k = tensor(Dtype::fp32, {2, 5, 16}),
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
  illegal(bad, "soft_cap is nan, expected a finite number >= 0; 0: none");
  bad = fine, bad.scale = INFINITY, illegal(bad, "scale is inf, expected a finite number");
  CHECK_THROWS_MATCHES(
      make_flash_attention_plan(cpu, fine).run(right, {Stream::cpu()}), Error,
      Message("flash_attention: v is [2, 5, 16], expected [.., num_members * features] = [.., 16] "
              "or [.., num_members, features] = [.., 1, 16]") ||
          Message("flash_attention: the operands' batch is 2, expected the plan's = 1"));
}

TEST_CASE("flash_attention: AUTO takes a verified kernel only, and says why") {
  DeviceInfo gpu;
  gpu.device = {DeviceType::cuda, 0};
  gpu.compute_capability = 90;
  using enum FlashAttentionStrategy;
  const auto choose = [&](Dtype dtype, const DeviceInfo& device, std::string_view name,
                          std::span<const VerifiedStrategy> verified = {}, int64_t keys = 1,
                          int64_t head_dim = 1) {
    FlashAttentionProblem problem{.kv_seq = keys, .head_dim = head_dim, .dtype = dtype};
    return choose_flash_attention_strategy(problem, device, name, verified);
  };
  const VerifiedStrategy proved[] = {{"flash_attention", "tensor_core", 90}};
  CHECK(choose(Dtype::bf16, gpu, "auto", proved).strategy == tensor_core);
  const VerifiedStrategy both[] = {{"flash_attention", "tensor_core", 90},
                                   {"flash_attention", "short", 90}};
  CHECK(choose(Dtype::bf16, gpu, "auto", both).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 129, 128).strategy == tensor_core);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 256, 64).strategy == short_keys);
  CHECK(choose(Dtype::bf16, gpu, "auto", both, 64, 256).strategy == short_keys);
  CHECK_THROWS_MATCHES(choose(Dtype::bf16, gpu, "short", both, 257, 64), Error,
                       Message("flash_attention: short takes up to 256 keys of heads of 64 "
                               "elements, kv_seq is 257"));
  CHECK_THROWS_MATCHES(choose(Dtype::fp32, gpu, "short"), Error,
                       Message("flash_attention: short takes fp16 and bf16, not fp32"));
  CHECK(choose(Dtype::fp32, gpu, "auto", proved).explain ==
        "sequential: simt is unverified on compute capability 90");
  CHECK(choose(Dtype::fp16, DeviceInfo{}, "auto").strategy == wide);
  CHECK(choose(Dtype::fp32, gpu, "simt").strategy == simt);
  CHECK_THROWS_MATCHES(choose(Dtype::fp32, gpu, "tensor_core"), Error,
                       Message("flash_attention: tensor_core takes fp16 and bf16, not fp32"));
  CHECK_THROWS_AS(choose(Dtype::fp32, gpu, "wide"), Error);
  gpu.compute_capability = 75;
  CHECK_THROWS_MATCHES(
      choose(Dtype::fp16, gpu, "tensor_core"), Error,
      Message("flash_attention: tensor_core needs compute capability 80, the device has 75"));
}

}  // namespace wide::test
