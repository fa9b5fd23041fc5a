// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models as large as numbers go: planned, counted or refused by name, and never slowly.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <ctime>
#include <limits>

#include "verify/support/model_run.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

const Context kCpu = Context::cpu({.num_threads = 1, .allocator = nullptr});

}  // namespace

TEST_CASE("model: what is larger than plans can be described is refused by name") {
  const Graph vit = make_named_model("vit"), mlp = make_named_model("mlp");
  CHECK(make_model_plan(kCpu, vit, {.num_members = 1 << 21}).memory().input_bytes ==
        (int64_t{1} << 21) * 224 * 224 * 3 * 4);
  CHECK_THROWS_WITH(make_model_plan(kCpu, mlp, {.num_members = int64_t{1} << 40}),
                    ContainsSubstring("model: mlp: x of 1099511627776 members of 1 rows needs "
                                      "281474976710656 bytes, expected fewer than 17592186044416"));
  CHECK_THROWS_WITH(make_model_plan(kCpu, mlp, {.num_members = kMost, .batch = kMost}),
                    ContainsSubstring("model: mlp: x of"));
  const ModelPlan plan = make_model_plan(kCpu, mlp, {.num_members = 2});
  const OwnedParameters owned = random_parameters(mlp, 1, 0);
  const MemberParameters member(owned.begin(), owned.end());
  const Model model(kCpu, plan, std::vector<MemberParameters>{member, member});
  CHECK_THROWS_WITH(model.with_batch(int64_t{1} << 50), ContainsSubstring("expected fewer than"));
  CHECK_THROWS_WITH(model.with_batches({int64_t{1} << 62, 1}),
                    ContainsSubstring("expected fewer than"));
}
