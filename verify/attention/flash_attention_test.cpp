// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention on every device at hand: exact cases worked out by hand, masks, layouts and
// edges.
#include <catch2/generators/catch_generators_all.hpp>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "verify/attention/flash_attention_case.hpp"

namespace wide::test {
namespace {

/// y of one batch row; rows of q are `dim` wide, those of k and v where heads share them less.
Reals attend(const Context& context, const std::string& strategy, FlashAttentionProblem problem,
             int64_t dim, const Reals& q, const Reals& k, const Reals& v) {
  const auto tensor = [&](const Reals& values, int64_t width) {
    const auto rows = static_cast<int64_t>(values.size()) / width;
    return upload(context, problem.dtype, {1, rows, width}, values);
  };
  const int64_t kv_dim = problem.kv_heads == 0 ? dim : dim / problem.heads * problem.kv_heads;
  Tensor q_there = tensor(q, dim), k_there = tensor(k, kv_dim), v_there = tensor(v, kv_dim),
         y(context, problem.dtype, q_there.shape());
  const FlashAttentionArguments arguments{q_there, k_there, v_there, {}, {}, y};
  run_plan(context,
           make_flash_attention_plan(context, describe_flash_attention(arguments, problem),
                                     {.strategy = strategy}),
           arguments);
  return download(context, y);
}

template <class F>
void on_every_kernel(const F& f) {
  for (const Context& context : devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      const FlashAttentionProblem problem{.dtype = dtype};
      const AttentionCase narrow{{.head_dim = 1, .dtype = dtype}};
      for (const std::string& strategy : strategies_for(context, narrow)) {
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
      Tensor k = upload(context, dtype, {1, kKeys, 8}, keys),
             q = upload(context, dtype, {1, 3, 8}, Reals(24, 1.0)), y(context, dtype, {1, 3, 8});
      for (const auto& [stored, first, second] :
           {std::tuple{Reals{3, 0}, 0.25, 0.0}, {Reals{1, -5}, 0.25, 0.0}}) {
        Tensor lengths = upload(context, Dtype::int32, {2, 1}, stored);
        const FlashAttentionArguments arguments{q, k, k, lengths, {}, y};
        run_plan(context,
                 make_flash_attention_plan(context,
                                           describe_flash_attention(arguments, {.num_members = 2})),
                 arguments);
        const Reals got = download(context, y);
        for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == (i % 8 < 4 ? first : second));
      }
    }
  }
}

TEST_CASE("flash_attention: rows at different places of their caches see what each has") {
  const auto nan = std::nan("");
  // Of two rows' slots three and four are used; a window of two keys: the means of the last two.
  const Reals values{1, 2, 8, nan, 16, 32, 64, 128};
  for (const Context& context : devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      AttentionCase made{{.batch = 2, .seq = 1, .head_dim = 1, .dtype = dtype}};
      made.problem.kv_seq = 4;
      for (const std::string& strategy : strategies_for(context, made)) {
        INFO(to_string(context.device()) << " " << strategy << " " << dtype_name(dtype));
        Tensor q = upload(context, dtype, {2, 1, 1}, {0, 0}),
               v = upload(context, dtype, {2, 4, 1}, values), y(context, dtype, {2, 1, 1}),
               lengths = upload(context, Dtype::int32, {2}, {3, 4});
        const FlashAttentionArguments arguments{q, v, v, lengths, {}, y};
        const auto run = [&](bool is_causal, int64_t window) {
          const FlashAttentionProblem like{
              .is_causal = is_causal, .window = window, .aligns_to_lengths = true};
          run_plan(context,
                   make_flash_attention_plan(context, describe_flash_attention(arguments, like),
                                             {.strategy = strategy}),
                   arguments);
          return download(context, y);
        };
        CHECK(run(false, 2) == Reals{5, 96});
        CHECK(run(true, 1) == Reals{8, 128});
        CHECK(run(true, 4)[1] == 60);
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
  SECTION("lengths that positions follow") {
    made.lengths = {40, 5, 99, 0};  // some of fewer keys than queries
    made.problem.aligns_to_lengths = true;
    made.problem.window = GENERATE(0, 9);
    made.slopes = {0.5, 0, 0.125, 2};
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

TEST_CASE("flash_attention: heads and sequences around the sizes of blocks") {
  for (const int64_t head_dim : {1, 31, 33, 72, 256}) {
    for (const int64_t seq : {1, 33}) {
      AttentionCase made{{.num_members = 2, .batch = 1, .seq = seq, .head_dim = head_dim}};
      made.problem.kv_seq = 65;
      check_everywhere(made);
      made.problem.dtype = Dtype::fp16;
      check_everywhere(made);
    }
  }
}

TEST_CASE("flash_attention: few queries of heads that share keys, with masks and biases") {
  for (const int64_t seq : {1, 3}) {
    AttentionCase made{{.num_members = 2,
                        .batch = 2,
                        .seq = seq,
                        .heads = 6,
                        .kv_heads = 2,
                        .head_dim = 24,
                        .dtype = Dtype::fp16}};
    made.problem.kv_seq = 37;
    check_everywhere(made);
    made.bias = {2, 2, 6};
    made.slopes = {0.5, 0, -0.125, 2, 1, 0.25, 0.5, 0, 1, -0.125, 2, 0.25};
    made.lengths = {30, 8, 2, 37};
    made.problem.is_causal = true;
    made.problem.window = 20;
    check_everywhere(made);
  }
}

TEST_CASE("flash_attention: on the CPU a head has the bits that it has alone") {
  constexpr int64_t kDim = 40, kKeys = 70;
  const Context cpu = Context::cpu();
  const Reals k = uniform(kKeys * kDim, -1, 1, 2), v = uniform(kKeys * kDim, -1, 1, 3);
  for (const int64_t seq : {1, 3, 8, 16, 17, 33}) {
    for (const int64_t heads : {2, 7, 17}) {
      INFO(heads << " heads of " << seq << " queries");
      Reals q = uniform(seq * heads * kDim, -4, 4, 1);
      q[static_cast<size_t>(kDim)] = std::nan("");  // the second head's
      FlashAttentionProblem p{.dtype = Dtype::bf16};
      p.is_causal = seq > 1;
      p.heads = heads, p.kv_heads = 1;
      const Reals together = attend(cpu, "wide", p, heads * kDim, q, k, v);
      p.heads = 1;
      bool is_same = true;
      for (int64_t head = 0; head < heads; ++head) {
        const auto place = [&](int64_t i) {  // of element i of the head
          return static_cast<size_t>((i / kDim * heads + head) * kDim + i % kDim);
        };
        Reals own(static_cast<size_t>(seq * kDim));
        for (size_t i = 0; i < own.size(); ++i) own[i] = q[place(static_cast<int64_t>(i))];
        const Reals alone = attend(cpu, "wide", p, kDim, own, k, v);
        for (size_t i = 0; i < own.size(); ++i) {
          const double got = together[place(static_cast<int64_t>(i))];
          is_same = is_same && (got == alone[i] || (std::isnan(got) && std::isnan(alone[i])));
        }
      }
      CHECK(is_same);
    }
  }
}

TEST_CASE(
    "flash_attention: NaN and infinities of a query stay its own, those of a key its head's") {
  constexpr int64_t kSeq = 9, kDim = 4;
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Reals q = uniform(kSeq * kDim, -1, 1, 1), k = uniform(kSeq * kDim, -1, 1, 2);
    const Reals v = uniform(kSeq * kDim, -1, 1, 3);
    const Context cpu = Context::cpu();
    const Reals clean = attend(cpu, "wide", {}, kDim, q, k, v);
    q[7 * kDim] = bad;
    const Reals got = attend(cpu, "wide", {}, kDim, q, k, v);
    for (size_t i = 0; i < got.size(); ++i) CHECK(std::isfinite(got[i]) == (i / kDim != 7));
    k[8 * kDim] = std::nan("");
    for (const double value : attend(cpu, "wide", {}, kDim, q, k, v)) CHECK(std::isnan(value));
    Reals pair_q, pair_k, pair_v;  // [1, 9, 2 members * 4]: the second member is clean
    const Reals own = uniform(kSeq * kDim, -1, 1, 1);
    const Reals keys = uniform(kSeq * kDim, -1, 1, 2);
    for (size_t i = 0; i < static_cast<size_t>(kSeq); ++i) {
      const auto add = [&](Reals& to, const Reals& first, const Reals& second) {
        to.insert(to.end(), &first[i * kDim], &first[i * kDim] + kDim);
        to.insert(to.end(), &second[i * kDim], &second[i * kDim] + kDim);
      };
      add(pair_q, q, own), add(pair_k, k, keys), add(pair_v, v, v);
    }
    const Reals both = attend(cpu, "wide", {.num_members = 2}, 2 * kDim, pair_q, pair_k, pair_v);
    for (size_t i = 0; i < clean.size(); ++i) {
      CHECK(both[i / kDim * 2 * kDim + kDim + i % kDim] == clean[i]);
    }
  }
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
    Tensor q = dense(0), k = dense(1), v = dense(2);
    Tensor y(context, Dtype::fp16, {kBatch, kSeq, kMembers * kDim}),
        expected(context, Dtype::fp16, {kBatch, kSeq, kMembers * kDim});
    for (const FlashAttentionArguments& arguments :
         {FlashAttentionArguments{part(0), part(1), part(2), {}, {}, y},
          FlashAttentionArguments{q, k, v, {}, {}, expected}}) {
      run_plan(context,
               make_flash_attention_plan(
                   context, describe_flash_attention(arguments, {.num_members = kMembers})),
               arguments);
    }
    CHECK(download(context, y) == download(context, expected));
  }
}

TEST_CASE("flash_attention: empty problems run, and no keys give zeros") {
  for (const Context& context : devices_at_hand()) {
    const Tensor none(context, Dtype::fp32, {2, 0, 8}),
        one = upload(context, Dtype::fp32, {2, 1, 8}, Reals(16, 1.0));
    for (const auto& [q, k] : {std::pair{&none, &none}, {&none, &one}, {&one, &none}}) {
      Tensor y = upload(context, Dtype::fp32, q->shape(),
                        Reals(static_cast<size_t>(q->num_elements()), std::nan("")));
      const FlashAttentionArguments arguments{*q, *k, *k, {}, {}, y};
      run_plan(context,
               make_flash_attention_plan(
                   context, describe_flash_attention(arguments, {.num_members = 2, .heads = 2})),
               arguments);
      for (const double value : download(context, y)) CHECK(value == 0);
    }
  }
}

TEST_CASE("flash_attention: a bias of every score, and one for all of an axis; -infinity hides") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16}) {
    AttentionCase made{{.num_members = 2, .batch = 2, .seq = 5, .heads = 2, .head_dim = 8}};
    made.problem.dtype = dtype;
    made.problem.kv_seq = 9;
    for (const Shape& axes : {Shape{2, 2, 2}, {1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}}) {
      made.bias = axes;
      check_everywhere(made);
    }
    made.problem.is_causal = true;
    made.problem.soft_cap = 2;
    made.slopes = {0.5, 1, 0.25, 2};
    made.lengths = {7, 9};
    check_everywhere(made);
  }
  on_every_kernel([](const Context& context, const std::string& strategy,
                     const FlashAttentionProblem& like) {
    // Masks of any shape: the second key only, all but it, none at all.
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    Tensor q = upload(context, like.dtype, {1, 3, 1}, {1, 1, 1}),
           k = upload(context, like.dtype, {1, 3, 1}, {0, 0, 0}),
           v = upload(context, like.dtype, {1, 3, 1}, {1, 2, 5}), y(context, like.dtype, {1, 3, 1}),
           bias = upload(context, like.dtype, {1, 1, 1, 3, 3},
                         {kHidden, 0, kHidden, 1, kHidden, 1, kHidden, kHidden, kHidden});
    const FlashAttentionArguments arguments{q, k, v, {}, {}, y, bias};
    run_plan(context,
             make_flash_attention_plan(context, describe_flash_attention(arguments, like),
                                       {.strategy = strategy}),
             arguments);
    CHECK(download(context, y) == Reals{2, 3, 0});
    // The lowest number hides a key beside others; where there are no others it hides none.
    if (like.dtype != Dtype::fp32) return;
    constexpr double kLowest = std::numeric_limits<float>::lowest();
    Tensor lowest =
        upload(context, like.dtype, {1, 1, 1, 3, 3},
               {kLowest, 0, kLowest, kLowest, kLowest, kLowest, kHidden, kLowest, kLowest});
    const FlashAttentionArguments masked{q, k, v, {}, {}, y, lowest};
    run_plan(context,
             make_flash_attention_plan(context, describe_flash_attention(masked, like),
                                       {.strategy = strategy}),
             masked);
    const Reals means = download(context, y);
    CHECK(means[0] == 2);
    CHECK(std::abs(means[1] - 8.0 / 3) < 1e-6);
    CHECK(std::abs(means[2] - 3.5) < 1e-6);
  });
}

}  // namespace wide::test
