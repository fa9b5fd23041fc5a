// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// attention on every device at hand: cases worked out by hand, its parts put together by other
// means, weights that are packed and restored, layouts, edges, and what is refused.
#include "wide/attention.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "host/attention/attention_reference.hpp"
#include "host/attention/attention_strategy.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

using Reals = std::vector<double>;

/// What runs without cuBLAS.
std::vector<std::string> strategies_for(const Context& context) {
  if (context.device().type == DeviceType::cpu) return {"sequential", "wide"};
  return {"fused"};
}

void run(const Context& context, const AttentionArguments& arguments, const AttentionProblem& like,
         const std::string& strategy) {
  test::run_plan(
      context,
      make_attention_plan(context, describe_attention(arguments, like), {.strategy = strategy}),
      arguments);
}

template <class F>
void on_every_strategy(const F& f) {
  for (const Context& context : test::devices_at_hand()) {
    for (const std::string& strategy : strategies_for(context)) {
      INFO(to_string(context.device()) << " " << strategy);
      f(context, strategy);
    }
  }
}

/// Rows of the matrix that takes feature `from[i]` times `factor` to i.
Reals selects(const std::vector<int>& from, double factor, size_t features) {
  Reals matrix(from.size() * features);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0) matrix[i * features + static_cast<size_t>(from[i])] = factor;
  }
  return matrix;
}

Reals joined(std::initializer_list<Reals> parts) {
  Reals all;
  for (const Reals& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

TEST_CASE("attention: heads, thirds of the weight and biases are where they should be, by hand") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    // D = 4, two heads of two features, two positions, two members; the second sees the first's x
    // exchanged. Queries and keys are 0: every query takes the mean of the values it sees.
    Tensor x =
        upload(context, Dtype::fp32, {1, 2, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8, 1, 2, 3, 4});
    const Reals none = selects({-1, -1, -1, -1}, 0, 4);
    const Reals swap = selects({1, 0, 3, 2}, 1, 4), twice = selects({0, 1, 2, 3}, 2, 4);
    Tensor qkv =
        upload(context, Dtype::fp32, {2, 12, 4}, joined({none, none, swap, none, none, twice}));
    const Tensor out = upload(context, Dtype::fp32, {2, 4, 4},
                              joined({selects({3, 2, 1, 0}, 1, 4), selects({0, 1, 2, 3}, 1, 4)}));
    Tensor y(context, Dtype::fp32, {1, 2, 8});
    AttentionArguments a;
    a.x = x, a.y = y;
    a.parameters.qkv_weight = qkv, a.parameters.out_weight = out;
    const AttentionProblem like{.num_members = 2, .heads = 2};
    run(context, a, like, strategy);
    CHECK(download(context, y) == Reals{5, 6, 3, 4, 6, 8, 10, 12, 5, 6, 3, 4, 6, 8, 10, 12});
    AttentionProblem causal = like;
    causal.is_causal = true;
    run(context, a, causal, strategy);
    CHECK(download(context, y) == Reals{3, 4, 1, 2, 10, 12, 14, 16, 5, 6, 3, 4, 6, 8, 10, 12});
    // Biases: of values by head and feature, of the output.
    const Tensor qkv_bias = upload(context, Dtype::fp32, {2, 12},
                                   joined({Reals(8, 9.0), {10, 20, 30, 40}, Reals(12, 0.0)}));
    const Tensor out_bias = upload(context, Dtype::fp32, {2, 4}, {0.5, 0, 0, 0, 0, 0, 0, 0.25});
    a.parameters.qkv_bias = qkv_bias, a.parameters.out_bias = out_bias;
    run(context, a, like, strategy);
    const Reals row{45.5, 36, 23, 14, 6, 8, 10, 12.25};
    CHECK(download(context, y) == joined({row, row}));
  });
}

TEST_CASE("attention: a query that matches one key takes its value; keys behind a length hide") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    // Cross: one query e0 of feature width 2; three keys of one feature, values of three.
    Tensor x = upload(context, Dtype::fp32, {1, 1, 2}, {1, 0});
    Tensor key = upload(context, Dtype::fp32, {1, 3, 1}, {1, 100, 300});
    Tensor value = upload(context, Dtype::fp32, {1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    Tensor q = upload(context, Dtype::fp32, {1, 2, 2}, {8, 0, 0, 8});
    const Tensor k = upload(context, Dtype::fp32, {1, 2, 1}, {8, 0});
    const Tensor v = upload(context, Dtype::fp32, {1, 2, 3}, {1, 0, 0, 0, 0, 1});
    const Tensor out = upload(context, Dtype::fp32, {1, 2, 2}, {1, 0, 0, 1});
    Tensor y(context, Dtype::fp32, {1, 1, 2});
    AttentionArguments a;
    a.x = x, a.key = key, a.value = value, a.y = y;
    a.parameters.q_weight = q, a.parameters.k_weight = k, a.parameters.v_weight = v;
    a.parameters.out_weight = out;
    const auto is_near = [&](const Reals& expected) {
      const Reals got = download(context, y);
      return std::fabs(got[0] - expected[0]) < 1e-5 && std::fabs(got[1] - expected[1]) < 1e-5;
    };
    run(context, a, {}, strategy);
    CHECK(is_near({7, 9}));
    for (const auto& [length, expected] :
         {std::pair{2.0, Reals{4, 6}}, {1.0, Reals{1, 3}}, {0.0, Reals{0, 0}}}) {
      const Tensor lengths = upload(context, Dtype::int32, {1}, {length});
      a.key_lengths = lengths;
      run(context, a, {}, strategy);
      CHECK(is_near(expected));
    }
  });
}

TEST_CASE("attention: weights are packed by member, and restored bit for bit") {
  for (const Context& context : test::devices_at_hand()) {
    const OwnedStream stream(context);
    for (const bool is_cross : {false, true}) {
      AttentionProblem p{.num_members = 2, .batch = 1, .seq = 1, .features = 4, .heads = 2};
      p.is_cross = is_cross, p.key_features = is_cross ? 3 : 0, p.has_bias = true;
      const AttentionPlan plan = make_attention_plan(context, p);
      std::vector<Tensor> own;
      const auto some = [&](const Shape& shape, bool is_there) -> TensorView {
        if (!is_there) return {};
        own.push_back(upload(context, Dtype::fp32, shape,
                             test::uniform(num_elements(shape), -1, 1, own.size())));
        return own.back();
      };
      const auto parameters = [&](auto shape_of) {
        BasicAttentionParameters<TensorView> views;
        views.qkv_weight = some(shape_of(12, 4), !is_cross);
        views.q_weight = some(shape_of(4, 4), is_cross);
        views.k_weight = some(shape_of(4, 3), is_cross);
        views.v_weight = some(shape_of(4, 4), is_cross);
        views.qkv_bias = some(shape_of(12, 0), true);
        views.out_weight = some(shape_of(4, 4), true);
        views.out_bias = some(shape_of(4, 0), true);
        return views;
      };
      const auto inputs = [](const BasicAttentionParameters<TensorView>& v) {
        return AttentionParameters{v.qkv_weight, v.q_weight,   v.k_weight, v.v_weight,
                                   v.qkv_bias,   v.out_weight, v.out_bias};
      };
      const auto of_member = [](int64_t rows, int64_t columns) {
        return columns == 0 ? Shape{rows} : Shape{rows, columns};
      };
      const auto packed = parameters([](int64_t rows, int64_t columns) {
        return columns == 0 ? Shape{2, rows} : Shape{2, rows, columns};
      });
      const size_t num_packed = own.size();
      const AttentionParameters members[] = {inputs(parameters(of_member)),
                                             inputs(parameters(of_member))};
      const size_t num_members = own.size();
      const BasicAttentionParameters<TensorView> back[] = {parameters(of_member),
                                                           parameters(of_member)};
      plan.prepare_weights(members, packed, stream.get());
      plan.restore_weights(inputs(packed), back, stream.get());
      context.synchronize(stream.get());
      for (size_t i = num_packed; i < num_members; ++i) {
        CHECK(download(context, own[i]) == download(context, own[i + num_members - num_packed]));
      }
      const AttentionParameters wrong[] = {members[0], {}};
      CHECK_THROWS_AS(plan.prepare_weights(wrong, packed, stream.get()), Error);
      CHECK_THROWS_MATCHES(plan.prepare_weights({}, packed, stream.get()), Error,
                           Message("attention: members has 0 entries, expected num_members = 2"));
    }
  }
}

TEST_CASE("attention: nothing to do, no keys at all, and workspaces by the byte") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    const auto tensor = [&](const Shape& shape, double value) {
      return upload(context, Dtype::fp32, shape,
                    Reals(static_cast<size_t>(num_elements(shape)), value));
    };
    Tensor weight = tensor({1, 4, 4}, 1), thrice = tensor({1, 12, 4}, 1), bias = tensor({1, 12}, 3),
           out_bias = tensor({1, 4}, 2);
    Tensor x = tensor({1, 3, 4}, 1), none = tensor({1, 0, 4}, 1), y = tensor({1, 3, 4}, 7);
    AttentionArguments cross;
    cross.x = x, cross.key = none, cross.value = none, cross.y = y;
    cross.parameters = {{}, weight, weight, weight, bias, weight, out_bias};
    run(context, cross, {}, strategy);
    CHECK(download(context, y) == Reals(12, 2.0));
    AttentionArguments empty;
    empty.x = none, empty.y = tensor({1, 0, 4}, 1);
    empty.parameters = {thrice, {}, {}, {}, bias, weight, out_bias};
    run(context, empty, {}, strategy);

    AttentionProblem p{.num_members = 3, .batch = 2, .seq = 5, .features = 12, .heads = 2};
    const int64_t members = strategy == "sequential" ? 1 : 3;
    const auto slot = [&](int64_t rows, int64_t features) {
      return (rows * members * features * 4 + 255) / 256 * 256;
    };
    CHECK(make_attention_plan(context, p, {.strategy = strategy}).workspace_bytes() ==
          slot(10, 36) + slot(10, 12));
    p.is_cross = true, p.kv_seq = 7, p.value_features = 3;
    CHECK(make_attention_plan(context, p, {.strategy = strategy}).workspace_bytes() ==
          slot(10, 12) + 2 * slot(14, 12) + slot(10, 12));
  });
}

TEST_CASE("attention: the reference refuses a lost bias, a swapped third and a wrong scale") {
  AttentionProblem p{.num_members = 1, .batch = 1, .seq = 9, .features = 32, .heads = 2};
  p.kv_seq = 9, p.key_features = p.value_features = 32, p.has_bias = true;
  p.dtype = Dtype::bf16;
  const Reals x = test::uniform(9 * 32, -1, 1, 1), qkv = test::uniform(3 * 32 * 32, -0.7, 0.7, 2),
              bias = test::uniform(96, -1, 1, 3), out = test::uniform(32 * 32, -0.7, 0.7, 4),
              out_bias = test::uniform(32, -1, 1, 5);
  const auto third = [&](size_t i) { return std::span(qkv).subspan(i * 1024, 1024); };
  const catalog::AttentionReferenceMember right{x,        x,    x,   third(0), third(1),
                                                third(2), bias, out, out_bias};
  Reals y(32), tolerance(32);
  const auto judge = [&](const catalog::AttentionReferenceMember& member) {
    Reals values(32), allowed(32);
    const auto keys = catalog::attention_reference_keys(p, member, 0, 9);
    catalog::judge_attention_row(p, member, keys, 4, values, allowed);
    if (tolerance[0] == 0) y = values, tolerance = allowed;
    double worst = 0;
    for (size_t i = 0; i < 32; ++i) {
      worst = test::worse_ratio(worst, values[i], y[i], tolerance[i]);
    }
    return worst;
  };
  CHECK(judge(right) == 0);
  CHECK(*std::max_element(tolerance.begin(), tolerance.end()) < 0.2);
  auto wrong = right;
  wrong.out_bias = {};
  CHECK(judge(wrong) > 1);
  wrong = right, wrong.qkv_bias = {};
  CHECK(judge(wrong) > 1);
  wrong = right, std::swap(wrong.q_weight, wrong.v_weight);
  CHECK(judge(wrong) > 1);
  Reals louder(third(0).begin(), third(0).end());
  for (double& value : louder) value *= 1.5;
  wrong = right, wrong.q_weight = louder;
  CHECK(judge(wrong) > 1);
}

TEST_CASE("attention: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  const auto tensor = [&](const Shape& shape) { return Tensor(cpu, Dtype::fp32, shape); };
  Tensor x = tensor({2, 3, 16}), y = tensor({2, 3, 16}), memory = tensor({2, 5, 12}),
         qkv = tensor({2, 24, 8}), square = tensor({2, 8, 8}), k = tensor({2, 8, 6}),
         qkv_bias = tensor({2, 24}), bias = tensor({2, 8}), lengths = tensor({2});
  const AttentionProblem like{.num_members = 2, .heads = 2};
  AttentionArguments right;
  right.x = x, right.y = y;
  right.parameters.qkv_weight = qkv, right.parameters.out_weight = square;
  REQUIRE_NOTHROW(describe_attention(right, like));
  const auto refused = [&](auto change, const std::string& message) {
    AttentionArguments arguments = right;
    change(arguments);
    CHECK_THROWS_MATCHES(describe_attention(arguments, like), Error,
                         Message("attention: " + message));
  };
  refused([&](auto& a) { a.x = bias; },
          "x is [2, 8], expected [batch, positions, num_members * features] with num_members = 2, "
          "or with members explicit");
  refused([&](auto& a) { a.y = memory; },
          "y is [2, 5, 12], expected [batch, positions, num_members * features] = [2, 3, 16], or "
          "with members explicit");
  refused([&](auto& a) { a.key = memory; }, "value is absent, expected one as key");
  refused([&](auto& a) { a.key = a.value = memory; },
          "qkv_weight is [2, 24, 8], expected none: keys and values have inputs of their own");
  refused([&](auto& a) { a.parameters.qkv_weight = square; },
          "qkv_weight is [2, 8, 8], expected [num_members, out, in] = [2, 24, 8]");
  refused([&](auto& a) { a.parameters.k_weight = k; },
          "k_weight is [2, 8, 6], expected none: keys and values come from x, as qkv_weight does");
  refused([&](auto& a) { a.parameters.qkv_bias = qkv_bias; },
          "out_bias is absent, expected one: qkv_bias is present");
  refused([&](auto& a) { a.parameters.out_bias = bias; },
          "out_bias is present, expected none: qkv_bias is absent");
  refused([&](auto& a) { a.key_lengths = lengths; }, "key_lengths is fp32, expected dtype = int32");
  refused([&](auto& a) { a.y = x; }, "y overlaps x, expected memory of its own");

  const AttentionProblem fine{.batch = 1, .seq = 2, .features = 12, .heads = 3};
  const auto illegal = [&](auto change, const std::string& message) {
    AttentionProblem p = fine;
    change(p);
    CHECK_THROWS_MATCHES(make_attention_plan(cpu, p), Error, Message("attention: " + message));
  };
  illegal([](auto& p) { p.heads = 5; }, "heads is 5, expected a divisor of features = 12");
  illegal([](auto& p) { p.features = 771; },
          "features is 771, expected at most 256 for each of 3 heads");
  illegal([](auto& p) { p.dtype = Dtype::int32; }, "dtype is int32, expected fp32, fp16 or bf16");
  illegal([](auto& p) { p.kv_seq = 3; },
          "keys are of 3 positions and 12 features, values of 12, expected x's = 2 and 12: not "
          "is_cross");
  illegal([](auto& p) { p.needs_weights = true; },
          "no strategy for \"auto\"; wide, sequential: needs_weights is true: the weights of "
          "attention are never in memory, and writing Tq Tk of them per head is what "
          "flash_attention avoids");
  const AttentionPlan plan = make_attention_plan(cpu, describe_attention(right, like));
  CHECK_THROWS_MATCHES(plan.run(right, {Stream::cpu()}), Error,
                       Message("attention: workspace is 0 bytes, expected workspace_bytes = " +
                               std::to_string(plan.workspace_bytes())));
  CHECK_THROWS_MATCHES(
      make_attention_plan(cpu, fine).run(right, {Stream::cpu()}), Error,
      Message("attention: x is [2, 3, 16], expected [batch, positions, num_members "
              "* features] = [2, 3, 8], or with members explicit") ||
          Message("attention: the operands' batch is 2, expected the plan's = 1") ||
          Message("attention: qkv_weight is [2, 24, 8], expected [num_members, "
                  "out, in] = [1, 48, 16]"));
}

TEST_CASE("attention: AUTO takes fused where it is verified, else the vendor's GEMMs") {
  DeviceInfo gpu = test::kH200;
  AttentionProblem p{.num_members = 4, .batch = 8, .seq = 128, .features = 256, .heads = 8};
  p.dtype = Dtype::bf16;
  p = make_attention_plan(Context::cpu(), p).problem();
  const VerifiedStrategy proved[] = {{"attention", "fused", 90}};
  using enum AttentionStrategy;
  CHECK(choose_attention_strategy(p, gpu, "auto", proved).strategy == fused);
  CHECK(choose_attention_strategy(p, gpu, "auto", {}).strategy == cublas_batched);
  CHECK(choose_attention_strategy(p, gpu, "auto", {}).explain ==
        "cublas_batched: one vendor call a product; fused: unverified on compute capability 90");
  CHECK(choose_attention_strategy(p, DeviceInfo{}, "auto", {}).strategy == wide);
  const auto parts = [&](const AttentionProblem& problem) {
    return attention_part_strategies(fused, attention_parts(problem, problem.num_members), gpu);
  };
  CHECK(parts(p).projections == std::vector<std::string>{"wgmma"});
  CHECK(parts(p).output == "wgmma");
  CHECK(parts(p).core == "wgmma");
  p.batch = 1, p.seq = p.kv_seq.emplace(40);
  CHECK(parts(p).output == "small_m");
  CHECK(parts(p).core == "short");
  p.seq = p.kv_seq.emplace(64);  // half a tile of wgmma's
  CHECK(parts(p).core == "tensor_core");
  p.seq = p.kv_seq.emplace(40);
  gpu.compute_capability = 80, p.batch = 8;
  CHECK(parts(p).output == "tensor_core");
  p.dtype = Dtype::fp32;
  CHECK(parts(p).projections == std::vector<std::string>{"simt"});
  gpu.compute_capability = 75;
  CHECK_THROWS_AS(choose_attention_strategy(p, gpu, "fused", {}), Error);
}
