// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What pointwise, binary, dropout and softmax refuse of x and y, by operands that one check alone
// refuses; and how the CPU's threads share packed rows.
#include "host/pointwise/packed_rows.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "host/core/rows.hpp"
#include "host/core/slices.hpp"
#include "verify/support/refusals.hpp"
#include "wide/binary.hpp"
#include "wide/concat.hpp"
#include "wide/context.hpp"
#include "wide/layernorm.hpp"
#include "wide/pointwise.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::Refusal;

namespace {

const PackedRows kGood{
    .num_members = 2, .rows = 4, .features = 3, .dtype = Dtype::fp32, .x = {6, 3}, .y = {6, 3}};

}  // namespace

TEST_CASE("packed rows: sizes that are none are refused by name") {
  const Refusal<PackedRows> refusals[] = {
      {[](PackedRows& p) { p.num_members = 0; }, "p: num_members is 0, expected >= 1"},
      {[](PackedRows& p) { p.rows = -1; }, "p: rows is -1, expected >= 0"},
      {[](PackedRows& p) { p.features = -3; }, "p: features is -3, expected >= 0"},
      {[](PackedRows& p) { p.dtype = Dtype::int32; },
       "p: dtype is int32, expected fp32, fp16 or bf16"}};
  test::check_refusals(kGood, refusals, [](const PackedRows& p) { require_legal_rows("p", p); });
  PackedRows huge = kGood;
  huge.rows = int64_t{1} << 62;
  CHECK_THROWS_AS(require_legal_rows("p", huge), Error);
}

TEST_CASE("packed rows: slices of members are told from packed rows, or refused") {
  const Tensor whole(Context::cpu(), Dtype::fp32, {3, 12});
  const auto features_of = [&](int64_t count, int64_t known) {
    const ConstTensorView part = slice(operands::softmax_x, whole, 2, 0, count);
    REQUIRE(part.shape == Shape{3, 2, count});
    return member_features("p", "x", part, 2, known);
  };
  for (const int64_t count : {1, 3, 5}) CHECK(features_of(count, 0) == count);
  for (const int64_t count : {2, 4, 6}) CHECK(features_of(count, count) == count);
  CHECK_THROWS_MATCHES(features_of(4, 0), Error,
                       Message("p: x is [3, 2, 4] with strides [12, 6, 1], which fits [.., "
                               "num_members, features] and padded rows [.., num_members * "
                               "features]: expected `features` in the problem"));
  const auto of = [](const Shape& shape, int64_t num_members, int64_t known = 0) {
    return member_features("p", "x", Tensor(Context::cpu(), Dtype::fp32, shape), num_members,
                           known);
  };
  CHECK(of({3, 2, 6}, 2) == 3);  // as many positions as members
  CHECK(of({3, 2, 6}, 2, 6) == 6);
  CHECK(of({3, 2, 6}, 2, 3) == 3);
  CHECK(of({3, 1, 6}, 1) == 6);
  CHECK(of({2, 6}, 2) == 3);
  const auto padded = ConstTensorView(whole).narrow(1, 0, 6);  // a batch of as many as members
  CHECK(member_features("p", "x", padded, 3, 0) == 2);
  CHECK_THROWS_AS(of({3, 5}, 2), Error);
}

TEST_CASE("packed rows: operands of another problem than the plan's are told apart") {
  const Refusal<PackedRows> refusals[] = {
      {[](PackedRows& p) { p.rows = 5; }, "p: the operands' rows is 5, expected the plan's = 4"},
      {[](PackedRows& p) { p.features = 4; },
       "p: the operands' features is 4, expected the plan's = 3"},
      {[](PackedRows& p) { p.dtype = Dtype::bf16; },
       "p: the operands' dtype is bf16, expected the plan's = fp32"},
      {[](PackedRows& p) { p.x.row = 7; },
       "p: the operands' stride of x is {row 7, member 3}, expected the plan's = {row 6, member "
       "3}"},
      {[](PackedRows& p) { p.y.member = 4; },
       "p: the operands' stride of y is {row 6, member 4}, expected the plan's = {row 6, member "
       "3}"}};
  test::check_refusals(kGood, refusals,
                       [](const PackedRows& got) { same_rows(SameField("p"), got, kGood); });
}

TEST_CASE("packed rows: x and y that do not fit are named") {
  const Context cpu = Context::cpu();
  const Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}),
      half(cpu, Dtype::fp16, {4, 6}), storage(cpu, Dtype::fp32, {5, 6});
  const auto refuses = [](const ConstTensorView& from, const ConstTensorView& to,
                          int64_t num_members, const char* message) {
    CHECK_THROWS_MATCHES(describe_packed_rows("p", from, to, num_members, 0), Error,
                         Message(message));
  };
  CHECK_NOTHROW(same_rows(SameField("p"), describe_packed_rows("p", x, y, 2, 0), kGood));
  CHECK_NOTHROW(describe_packed_rows("p", x, x, 2, 0));
  refuses(x, y, 0, "p: num_members is 0, expected >= 1");
  refuses(x, y, 5, "p: x is [4, 6], expected [.., num_members * features] with num_members = 5");
  refuses(ConstTensorView(x.data(), Dtype::fp32, Shape{}, cpu.device()), y, 2,
          "p: x is [], expected [.., num_members * features]");
  refuses(x, half, 2, "p: y is fp16, expected dtype = fp32");
  const ConstTensorView all_in_one(y.data(), Dtype::fp32, {4, 6}, Strides{0, 1}, cpu.device());
  CHECK_THROWS_AS(describe_packed_rows("p", x, all_in_one, 2, 0), Error);
  const ConstTensorView elsewhere(x.data(), Dtype::fp32, {4, 6}, Device{DeviceType::cuda, 0});
  refuses(elsewhere, y, 2, "p: x is on cuda:0, expected the plan's device = cpu");
  refuses(storage.view().narrow(0, 0, 4), storage.view().narrow(0, 1, 4), 2,
          "p: y overlaps x, expected x itself or memory of its own");
}

namespace {

struct MemberRowsCase {
  int64_t rows, num_members, at_once, elements;
};

Context cpu_of(int num_threads) {
  return Context::cpu({.num_threads = num_threads, .allocator = nullptr});
}

}  // namespace

TEST_CASE(
    "packed rows: the CPU works on each row of each member once, and on those that lie "
    "together in turn") {
  const MemberRowsCase cases[] = {{5, 3, 3, 8},    {0, 3, 3, 8},         {1, 70, 70, 1000},
                                  {40, 3, 3, 900}, {3, 7, 7, 1 << 20},   {9, 4, 1, 20000},
                                  {1, 1, 1, 1},    {1000, 50, 50, 4000}, {7, 33, 33, 1000}};
  for (const auto& [rows, num_members, at_once, elements] : cases) {
    CAPTURE(rows, num_members, at_once, elements);
    std::vector<std::pair<int64_t, int64_t>> in_turn, expected;
    for_each_member_row(cpu_of(1), rows, num_members, at_once, elements,
                        [&](int64_t row, int64_t member) { in_turn.emplace_back(row, member); });
    for (int64_t first = 0; first < num_members; first += at_once) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t n = first; n < first + at_once; ++n) expected.emplace_back(row, n);
      }
    }
    CHECK(in_turn == expected);
    std::vector<std::atomic<int>> times(static_cast<size_t>(rows * num_members));
    for_each_member_row(cpu_of(4), rows, num_members, at_once, elements,
                        [&](int64_t row, int64_t member) {
                          ++times[static_cast<size_t>(row * num_members + member)];
                        });
    for (const auto& count : times) CHECK(count == 1);
  }
}

TEST_CASE("packed rows: members of a single row are several threads' work") {
  std::atomic<int> arrived = 0;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for_each_member_row(cpu_of(2), 1, 2, 2, 1 << 16, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  CHECK(std::chrono::steady_clock::now() < give_up);  // each waited for the other one
}

TEST_CASE("packed rows: results have the same bits however many threads there are") {
  constexpr int64_t kMembers = 9, kFeatures = 12345;
  for (const int64_t rows : {1, 3}) {
    const Shape shape{rows, kMembers * kFeatures};
    const auto results_of = [&](int num_threads) {
      const Context context = cpu_of(num_threads);
      Tensor x(context, Dtype::fp32, shape), gelu(context, Dtype::fp32, shape),
          normed(context, Dtype::fp32, shape);
      auto* values = static_cast<float*>(x.data());
      for (int64_t i = 0; i < x.num_elements(); ++i) values[i] = std::sin(static_cast<float>(i));
      make_pointwise_plan(context, {.num_members = kMembers,
                                    .rows = rows,
                                    .features = kFeatures,
                                    .function = PointwiseFunction::gelu_tanh})
          .run({.x = x, .slope = {}, .y = gelu}, {Stream::cpu()});
      make_layernorm_plan(context, {.num_members = kMembers,
                                    .rows = rows,
                                    .features = kFeatures,
                                    .has_gamma = false,
                                    .has_beta = false})
          .run({.x = x, .gamma = {}, .beta = {}, .y = normed}, {Stream::cpu()});
      std::vector<std::byte> bytes(static_cast<size_t>(2 * x.bytes()));
      std::memcpy(bytes.data(), gelu.data(), static_cast<size_t>(x.bytes()));
      std::memcpy(bytes.data() + x.bytes(), normed.data(), static_cast<size_t>(x.bytes()));
      return bytes;
    };
    CHECK(results_of(1) == results_of(4));
  }
}

TEST_CASE("packed rows: members are taken together as long as a task holds them") {
  CHECK(members_together(16, 16) == 16);
  CHECK(members_together(16, 15) == 8);
  CHECK(members_together(100, 32) == 25);
  CHECK(members_together(100, 24) == 1);
  CHECK(members_together(7, 6) == 1);
  CHECK(members_together(8, 0) == 1);
}

TEST_CASE("packed rows: members that are taken together have parameters of their own") {
  constexpr int64_t kMembers = 8, kRows = 3;
  const Context context = cpu_of(2);
  for (const int64_t features : {1, 5, 10000}) {  // of the longest, three at a time do not fit
    const Shape shape{kRows, kMembers * features}, own{kMembers, features};
    Tensor x(context, Dtype::fp32, shape), parameters(context, Dtype::fp32, own);
    for (Tensor* tensor : {&x, &parameters}) {
      auto* values = static_cast<float*>(tensor->data());
      for (int64_t i = 0; i < tensor->num_elements(); ++i) {
        values[i] = std::sin(static_cast<float>(i));
      }
    }
    const auto bytes_of = [&](const auto& run) {
      Tensor y(context, Dtype::fp32, shape);
      run(y);
      std::vector<std::byte> bytes(static_cast<size_t>(y.bytes()));
      std::memcpy(bytes.data(), y.data(), bytes.size());
      return bytes;
    };
    const auto prelu_by = [&](const char* strategy) {
      return bytes_of([&](Tensor& y) {
        make_pointwise_plan(context,
                            {.num_members = kMembers,
                             .rows = kRows,
                             .features = features,
                             .function = PointwiseFunction::prelu,
                             .num_slopes = features},
                            {strategy})
            .run({.x = x, .slope = parameters, .y = y}, {Stream::cpu()});
      });
    };
    const auto product_by = [&](const char* strategy) {
      return bytes_of([&](Tensor& y) {
        make_binary_plan(context,
                         {.num_members = kMembers,
                          .rows = kRows,
                          .features = features,
                          .function = BinaryFunction::multiply,
                          .broadcast = Broadcast::rows},
                         {strategy})
            .run({.x = x, .other = parameters, .y = y}, {Stream::cpu()});
      });
    };
    CAPTURE(features);
    CHECK(prelu_by("wide") == prelu_by("sequential"));
    CHECK(product_by("wide") == product_by("sequential"));
  }
}
