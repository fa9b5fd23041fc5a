// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// run() names the operand that does not fit the plan, not those that no longer fit this one.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <string>

#include "verify/support/refusals.hpp"
#include "wide/embedding.hpp"
#include "wide/flash_attention.hpp"
#include "wide/linear.hpp"
#include "wide/routing.hpp"
#include "wide/top_k.hpp"

namespace wide::test {
namespace {

const Context kCpu = Context::cpu();

/// Room for every operand of a test: nothing of them is read.
ConstTensorView operand(Dtype dtype, const Shape& shape, int place) {
  alignas(256) static char room[8][4096];
  return {room[place], dtype, shape, Device{}};
}
TensorView output(Dtype dtype, const Shape& shape, int place = 7) {
  return {const_cast<void*>(operand(dtype, shape, place).data), dtype, shape, Device{}};
}

/// What a run of `good` refuses once `spoil` has changed an operand.
template <class Plan, class Arguments>
std::string refused(const Plan& plan, const Arguments& good,
                    const std::function<void(Arguments&)>& spoil) {
  Arguments bad = good;
  spoil(bad);
  return refusal_of([&] { plan.run(bad, {Stream::cpu()}); });
}

TEST_CASE("run names linear's x of other rows or another dtype, not y or the weight") {
  using A = LinearArguments;
  const A good{.x = operand(Dtype::fp32, {3, 8}, 0),
               .weight = operand(Dtype::fp32, {2, 5, 4}, 1),
               .y = output(Dtype::fp32, {3, 10})};
  const LinearPlan plan = make_linear_plan(kCpu, describe_linear(good));
  const auto is = [&](const std::function<void(A&)>& spoil) { return refused(plan, good, spoil); };
  CHECK(is([](A& a) {
          a.x = operand(Dtype::fp32, {4, 8}, 0);
        }) == "linear: x is [4, 8] with 4 rows, expected the plan's batch = 3");
  CHECK(is([](A& a) {
          a.x = operand(Dtype::fp32, {1, 2, 4}, 0);
        }) == "linear: x is [1, 2, 4] with 1 row, expected the plan's batch = 3");
  CHECK(is([](A& a) { a.x.dtype = Dtype::fp16; }) ==
        "linear: x is fp16, expected the plan's dtype = fp32");
  CHECK(is([](A& a) { a.weight.dtype = Dtype::fp16; }) ==
        "linear: weight is fp16, expected dtype = fp32");
  CHECK(is([](A& a) {
          a.y = output(Dtype::fp32, {4, 10});
        }) == "linear: y is [4, 10] with 4 rows per member, expected x's rows = 3");
  CHECK(is([](A& a) {
          a.x.shape[1] = 6;
        }).starts_with("linear: x is [3, 6], expected [.., num_members * features] = [.., 8]"));
}

TEST_CASE("run names routing's ids of other rows or another dtype, not order") {
  using A = RoutingArguments;
  const A good{.ids = operand(Dtype::int64, {3, 2}, 0),
               .first_rows = output(Dtype::int32, {5}, 1),
               .order = output(Dtype::int32, {6})};
  const RoutingPlan plan = make_routing_plan(kCpu, describe_routing(good));
  const auto is = [&](const std::function<void(A&)>& spoil) { return refused(plan, good, spoil); };
  CHECK(is([](A& a) {
          a.ids = operand(Dtype::int64, {4, 2}, 0);
        }) == "routing: ids is [4, 2] with 8 rows, expected the plan's num_rows = 6");
  CHECK(is([](A& a) { a.ids.dtype = Dtype::fp32; }) ==
        "routing: ids is fp32, expected the plan's dtype = int64");
  CHECK(is([](A& a) { a.order.shape[0] = 5; }) ==
        "routing: order is [5], expected [num_rows] = [6]");
}

TEST_CASE("run names top_k's scores of other rows or members, not ids") {
  using A = TopKArguments;
  const A good{.scores = operand(Dtype::fp32, {3, 5}, 0), .ids = output(Dtype::int64, {3, 2})};
  const TopKPlan plan = make_top_k_plan(kCpu, describe_top_k(good));
  const auto is = [&](const std::function<void(A&)>& spoil) { return refused(plan, good, spoil); };
  CHECK(is([](A& a) {
          a.scores = operand(Dtype::fp32, {4, 5}, 0);
        }) == "top_k: scores is [4, 5] with 4 rows, expected the plan's rows = 3");
  CHECK(is([](A& a) {
          a.scores = operand(Dtype::fp32, {3, 1}, 0);
        }) == "top_k: scores is [3, 1], expected the plan's num_members = 5");
  CHECK(is([](A& a) { a.scores.dtype = Dtype::fp16; }) ==
        "top_k: scores is fp16, expected the plan's dtype = fp32");
}

TEST_CASE("run names flash_attention's q and k, not what they measure") {
  using A = FlashAttentionArguments;
  const A good{.q = operand(Dtype::fp32, {2, 3, 16}, 0),
               .k = operand(Dtype::fp32, {2, 5, 16}, 1),
               .v = operand(Dtype::fp32, {2, 5, 16}, 2),
               .y = output(Dtype::fp32, {2, 3, 16})};
  const auto plan = make_flash_attention_plan(
      kCpu, describe_flash_attention(good, {.num_members = 2, .heads = 2}));
  const auto is = [&](const std::function<void(A&)>& spoil) { return refused(plan, good, spoil); };
  const std::string name = "flash_attention: ";
  CHECK(is([](A& a) {
          a.k = operand(Dtype::fp32, {2, 6, 16}, 1);
        }) == name + "k is [2, 6, 16], expected the plan's kv_seq = 5");
  CHECK(is([](A& a) {
          a.q = operand(Dtype::fp32, {1, 3, 16}, 0);
        }) == name + "q is [1, 3, 16], expected the plan's batch = 2");
  CHECK(is([](A& a) {
          a.q = operand(Dtype::fp32, {2, 3, 32}, 0);
        }) == name + "q is [2, 3, 32], expected the plan's features of a row = 16");
  CHECK(is([](A& a) { a.q.dtype = Dtype::bf16; }) ==
        name + "q is bf16, expected the plan's dtype = fp32");
  CHECK(is([](A& a) {
          a.v = operand(Dtype::fp32, {2, 6, 16}, 2);
        }).starts_with(name + "v is [2, 6, 16], expected"));
}

TEST_CASE("run names embedding's ids and table, not y") {
  using A = EmbeddingArguments;
  const A good{.ids = operand(Dtype::int64, {2, 3}, 0),
               .table = operand(Dtype::fp32, {4, 5, 6}, 1),
               .y = output(Dtype::fp32, {2, 3, 24})};
  const auto plan = make_embedding_plan(kCpu, describe_embedding(good));
  const auto is = [&](const std::function<void(A&)>& spoil) { return refused(plan, good, spoil); };
  CHECK(is([](A& a) {
          a.ids = operand(Dtype::int64, {2, 4}, 0);
        }) == "embedding: ids is [2, 4], expected the plan's seq = 3");
  CHECK(is([](A& a) { a.ids.dtype = Dtype::int32; }) ==
        "embedding: ids is int32, expected the plan's dtype = int64");
  CHECK(is([](A& a) {
          a.table = operand(Dtype::fp32, {4, 5, 7}, 1);
        }) ==
        "embedding: table is [4, 5, 7], expected the plan's [num_members, vocab, elements of a "
        "row] = [4, 5, 6]");
  CHECK(is([](A& a) { a.table.dtype = Dtype::fp16; }) ==
        "embedding: table is fp16, expected the plan's dtype = fp32");
}

}  // namespace
}  // namespace wide::test
