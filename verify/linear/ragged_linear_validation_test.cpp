// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every way to misuse ragged_linear, with the message that it gets.
#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <limits>
#include <utility>

#include "verify/linear/ragged_linear_case.hpp"
#include "verify/support/dice.hpp"
#include "verify/support/refusals.hpp"

namespace wide::test {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

std::string refused(const RaggedLinearProblem& problem) {
  return refusal_of([&] { (void)lay_out_ragged_linear(problem); });
}

TEST_CASE("ragged_linear: impossible problems") {
  RaggedLinearProblem p;
  CHECK(refused(p) == "ragged_linear: members is empty, expected at least one");
  p.members = {ragged_member(2, 3, 4), ragged_member(5, 6, 7)};
  RaggedLinearMember& m = p.members[1];
  SECTION("sizes") {
    m.batch = -1;
    CHECK(refused(p) == "ragged_linear: batch of member 1 is -1, expected >= 0");
    m = ragged_member(5, -6, 7);
    CHECK(refused(p) == "ragged_linear: in_features of member 1 is -6, expected >= 0");
    m = ragged_member(5, 6, -7);
    CHECK(refused(p) == "ragged_linear: out_features of member 1 is -7, expected >= 0");
  }
  SECTION("places") {
    m.x.offset = -2;
    CHECK(refused(p) == "ragged_linear: x.offset of member 1 is -2, expected >= -1");
    m.x.offset = 0, m.weight.row = -1;
    CHECK(refused(p) == "ragged_linear: weight.row of member 1 is -1, expected >= 0");
    m.weight.row = 0, m.bias_offset = -3;
    CHECK(refused(p) == "ragged_linear: bias.offset of member 1 is -3, expected >= -1");
    m.bias_offset = -1, m.y.row = 6;
    CHECK(refused(p) == "ragged_linear: y.row of member 1 is 6, expected >= out_features = 7");
  }
  SECTION("what does not fit in 64 bits") {
    m.x = {8, kMost / 4};
    CHECK(refused(p) == "ragged_linear: x of member 1 is [5, 6] at offset 8 with row stride " +
                            std::to_string(kMost / 4) + ", expected an end that fits in 64 bits");
    m = ragged_member(1, 1, kMost / 8), m.weight.offset = kMost / 4;
    CHECK(refused(p).starts_with("ragged_linear: weight of member 1 is [1152921504606846975, 1]"));
    m = ragged_member(1, 0, 1), m.y.offset = kMost;
    CHECK(refused(p).ends_with("expected an end that fits in 64 bits"));
  }
  SECTION("types") {
    p.dtype = Dtype::int32;
    CHECK(refused(p) == "ragged_linear: dtype is int32, expected fp32, fp16 or bf16");
    p.dtype = Dtype::fp32, p.epilogue.alpha = std::numeric_limits<float>::quiet_NaN();
    CHECK(refused(p) == "ragged_linear: alpha is nan, expected a finite factor");
  }
}

TEST_CASE("ragged_linear: outputs that overlap, and those that only seem to") {
  RaggedLinearProblem p;
  p.members = {ragged_member(3, 1, 4), ragged_member(3, 1, 5)};
  RaggedRows &first = p.members[0].y, &second = p.members[1].y;
  const auto overlap = [&](const char* begins) {
    CHECK(refused(p) == "ragged_linear: y of member 1 begins at offset " + std::string(begins) +
                            ", expected outputs apart or interleaved at one row stride");
  };
  first = {0, 10}, second = {4, 10};
  CHECK_NOTHROW(lay_out_ragged_linear(p));
  second.offset = 5;
  CHECK_NOTHROW(lay_out_ragged_linear(p));
  second.offset = 3;
  overlap("3, inside that of member 0");
  second.offset = 6;  // its row's end meets the next row's start
  overlap("6, inside that of member 0");
  second = {14, 10};
  CHECK_NOTHROW(lay_out_ragged_linear(p));
  second = {4, 20};
  overlap("4, inside that of member 0");
  second = {24, 20};  // behind the last row
  CHECK_NOTHROW(lay_out_ragged_linear(p));
  p.members[1].batch = 1, second = {14, 0};  // one row, in a gap
  CHECK_NOTHROW(lay_out_ragged_linear(p));
  second = {16, 0};
  overlap("16, inside that of member 0");
  p.members[0].batch = 1, first = {14, 0};
  CHECK(refused(p).starts_with("ragged_linear: y of member 1 begins at offset 16"));
  p.members[1].batch = 0;
  CHECK_NOTHROW(lay_out_ragged_linear(p));
}

/// What is said of two members' outputs: no element of both, and, where they do not lie apart, one
/// row stride or a single row in a gap of the other's.
bool may_lie_so(const RaggedLinearMember& a, const RaggedLinearMember& b) {
  const auto end = [](const RaggedLinearMember& m) {
    return m.y.offset + (m.batch - 1) * m.y.row + m.out_features;
  };
  if (end(a) <= b.y.offset || end(b) <= a.y.offset) return true;
  const RaggedLinearMember& later = a.y.offset < b.y.offset ? b : a;
  if (a.y.row != b.y.row && later.batch > 1) return false;
  for (int64_t i = 0; i < a.batch; ++i) {
    for (int64_t j = 0; j < b.batch; ++j) {
      const int64_t first = a.y.offset + i * a.y.row, second = b.y.offset + j * b.y.row;
      if (first < second + b.out_features && second < first + a.out_features) return false;
    }
  }
  return true;
}

bool may_lie_so(const RaggedLinearProblem& p) {
  for (size_t i = 0; i < p.members.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!may_lie_so(p.members[i], p.members[j])) return false;
    }
  }
  return true;
}

TEST_CASE("ragged_linear: of random places those are refused that are not allowed, no others") {
  Dice dice(5);
  int allowed = 0, refusals = 0;
  for (int round = 0; round < 20000; ++round) {
    RaggedLinearProblem p;
    const int64_t row = dice.between(4, 16);
    const auto count = dice.between(2, 9);
    for (int64_t i = 0; i < count; ++i) {
      RaggedLinearMember m = ragged_member(dice.between(1, 4), 1, dice.between(1, row < 8 ? 2 : 4));
      const int64_t own = dice.between(0, 19) == 0 ? row + 1 : row;
      m.y = {dice.between(0, 12) * row + dice.between(0, row - 1), m.batch == 1 ? 0 : own};
      p.members.push_back(m);
      // What is not allowed mostly goes again, so that layouts of many members are.
      if (!may_lie_so(p) && dice.between(0, 9) != 0) p.members.pop_back();
    }
    bool is_refused = false;
    try {
      (void)lay_out_ragged_linear(p);
    } catch (const Error&) {
      is_refused = true;
    }
    REQUIRE(is_refused != may_lie_so(p));
    ++(is_refused ? refusals : allowed);
  }
  CHECK(allowed > 2000);
  CHECK(refusals > 2000);
}

TEST_CASE("ragged_linear: of many interleaved outputs each is held against few") {
  constexpr int64_t kMembers = 200000;
  RaggedLinearProblem p;
  for (int64_t i = 0; i < kMembers; ++i) {
    p.members.push_back(ragged_member(3, 1, 1));
    p.members.back().y = {i, kMembers};
  }
  const std::clock_t begin = std::clock();
  CHECK_NOTHROW(lay_out_ragged_linear(p));
  CHECK(std::clock() - begin < 10 * CLOCKS_PER_SEC);  // all against all: a minute and more
  std::swap(p.members.front().y.offset, p.members.back().y.offset);
  CHECK_NOTHROW(lay_out_ragged_linear(p));
  p.members[kMembers / 2].out_features = 2;
  CHECK(refused(p) ==
        "ragged_linear: y of member 100001 begins at offset 100001, inside that of "
        "member 100000, expected outputs apart or interleaved at one row stride");
}

TEST_CASE("ragged_linear: operands that do not fit the plan") {
  TestDevice bench(Context::cpu());
  RaggedLinearProblem problem = small_ragged_problem();
  const auto plan = make_ragged_linear_plan(bench.context(), problem);
  PlacedRagged placed(bench, problem);
  RaggedLinearArguments a = placed.arguments();
  const auto refused_run = [&] { return refusal_of([&] { plan.run(a, {Stream::cpu()}); }); };
  SECTION("absent, of another type, rank, stride or length") {
    a.x = {};
    CHECK(refused_run().starts_with("ragged_linear: x is absent, expected a storage"));
    a = placed.arguments(), a.weight.dtype = Dtype::fp16;
    CHECK(refused_run() == "ragged_linear: weight is fp16, expected dtype = fp32");
    a = placed.arguments(), a.y.shape = {a.y.shape[0], 1}, a.y.strides = {1, 1};
    CHECK(refused_run().ends_with("expected one contiguous axis"));
    a = placed.arguments(), a.bias.strides = {2};
    CHECK(refused_run().starts_with("ragged_linear: bias is ["));
    a = placed.arguments(), --a.x.shape[0];
    const std::string most = std::to_string(placed.arguments().x.shape[0]);
    CHECK(refused_run() == "ragged_linear: x is [" + std::to_string(a.x.shape[0]) +
                               "], expected at least " + most +
                               " elements: ragged_linear_extents()");
  }
  SECTION("what the problem has not") {
    a.residual = a.x;
    CHECK(refused_run() ==
          "ragged_linear: residual is present, expected none: the plan's problem has none");
    a = placed.arguments(), a.bias = {};
    CHECK(refused_run().starts_with("ragged_linear: bias is absent"));
  }
  SECTION("memory") {
    a.x = ConstTensorView(a.y.data, Dtype::fp32, a.x.shape, Device{});
    CHECK(refused_run() == "ragged_linear: y overlaps x, expected memory of its own");
    a = placed.arguments(), a.weight.data = nullptr;
    CHECK(refused_run().find("weight") != std::string::npos);
    a = placed.arguments(), a.y.device = {DeviceType::cuda, 0};
    CHECK(refused_run().find("y") != std::string::npos);
  }
}

TEST_CASE("ragged_linear: strategies, counts of members and rows") {
  const Context context = Context::cpu();
  RaggedLinearProblem problem = small_ragged_problem();
  const auto make = [&](const char* strategy) {
    return make_ragged_linear_plan(context, problem, {.strategy = strategy});
  };
  CHECK(refusal_of([&] { make("wid"); }) ==
        "ragged_linear: strategy is \"wid\", did you mean wide?");
  CHECK(make("sequential").explain() == "sequential: asked for by name");
  const auto plan = make("auto");
  const std::vector<float> storage(4000);
  const TensorView view(const_cast<float*>(storage.data()), Dtype::fp32, {4000}, Device{});
  std::vector<LinearMember> members(3);
  CHECK(refusal_of([&] { plan.prepare_weights(members, view, view, Stream::cpu()); }) ==
        "ragged_linear: members has 3 entries, expected one per member = 6");
  members.resize(6);
  CHECK(refusal_of([&] { plan.prepare_weights(members, view, view, Stream::cpu()); }) ==
        "ragged_linear: bias of member 0 is absent, expected [out]");
  CHECK(refusal_of([&] { plan.prepare_weights(members, view, {}, Stream::cpu()); }) ==
        "ragged_linear: bias is absent, expected a storage");
  CHECK(refusal_of([&] {
          (void)ragged_rows(view, RaggedRows{}, 2, 3);
        }).ends_with("expected those of a problem that is laid out"));
  CHECK_THROWS_AS(ragged_rows(view, RaggedRows{3990, 5}, 2, 6), Error);
  CHECK(ragged_rows(view, RaggedRows{3989, 5}, 2, 6).shape == Shape{2, 6});
}

}  // namespace
}  // namespace wide::test
