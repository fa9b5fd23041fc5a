// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/dropout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "host/pointwise/dropout_reference.hpp"
#include "kernels/pointwise/dropout_rate.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

void run(const Context& context, const DropoutArguments& arguments, const DropoutProblem& like,
         const std::string& strategy = "wide") {
  test::run_plan(context, make_dropout_plan(context, describe_dropout(arguments, like), {strategy}),
                 arguments);
}

struct Member {
  double seed, sequence, probability;
};

/// y of x = 1 everywhere, [rows, members, features].
std::vector<double> dropped_ones(const Context& context, const std::vector<Member>& members,
                                 int64_t rows, int64_t features, Dtype dtype = Dtype::fp32,
                                 const std::string& strategy = "wide") {
  const auto count = static_cast<int64_t>(members.size());
  std::vector<double> seeds, probabilities;
  for (const Member& member : members) {
    seeds.insert(seeds.end(), {member.seed, member.sequence});
    probabilities.push_back(member.probability);
  }
  const Shape shape{rows, count * features};
  Tensor x = upload(context, dtype, shape,
                    std::vector<double>(static_cast<size_t>(num_elements(shape)), 1));
  Tensor y(context, dtype, shape);
  Tensor seed = upload(context, Dtype::int64, {count, 2}, seeds);
  Tensor probability = upload(context, Dtype::fp32, {count, 1}, probabilities);
  run(context, {x, seed, probability, y}, {.num_members = count}, strategy);
  return download(context, y);
}

/// Of two sequences of zeros and others: the correlation of being zero.
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  double in_a = 0, in_b = 0, in_both = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    in_a += a[i] == 0;
    in_b += b[i] == 0;
    in_both += a[i] == 0 && b[i] == 0;
  }
  const double pa = in_a / count, pb = in_b / count;
  return (in_both / count - pa * pb) / std::sqrt(pa * (1 - pa) * pb * (1 - pb));
}

}  // namespace

TEST_CASE("dropout: Philox4x32-10 gives the published words") {
  // Random123's known answers (github.com/DEShawResearch/random123, tests/kat_vectors).
  struct Known {
    uint64_t key, counter_low, counter_high;
    uint32_t words[4];
  };
  constexpr uint64_t ones = ~uint64_t{0};
  constexpr Known kAnswers[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {ones, ones, ones, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x299f31d0'a4093822,
       0x85a308d3'243f6a88,
       0x03707344'13198a2e,
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Known& known : kAnswers) {
    const auto got = kernels::philox4x32(known.key, known.counter_low, known.counter_high);
    for (int i = 0; i < 4; ++i) CHECK(got.word[i] == known.words[i]);
  }
  static_assert(kernels::philox4x32(0, 0, 0).word[0] == 0x6627e8d5);
}

TEST_CASE("dropout: a case worked out by hand, and probabilities at the edges") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Context& context : test::devices_at_hand()) {
    // Of key 0 and counter 0: 0.399, 0.881, 0.736, 0.605.
    CHECK(dropped_ones(context, {{0, 0, 0.5}}, 1, 4) == std::vector<double>{0, 2, 2, 2});
    CHECK(dropped_ones(context, {{0, 0, 0.75}}, 1, 4) == std::vector<double>{0, 4, 0, 0});
    CHECK(dropped_ones(context, {{0, 0, 0}}, 1, 4) == std::vector<double>(4, 1));
    CHECK(dropped_ones(context, {{0, 0, 1}}, 1, 4) == std::vector<double>(4, 0));
    for (const double wrong : {-0.1, 1.5, nan}) {
      const auto y = dropped_ones(context, {{0, 0, 0.5}, {0, 0, wrong}}, 1, 4);
      for (size_t i = 0; i < 8; ++i) CHECK(std::isnan(y[i]) == (i >= 4));
    }
  }
  CHECK(kernels::dropout_rate(0x1p-40f).threshold == 1);
  CHECK(kernels::dropout_rate(0x1p-32f).threshold == 1);
  CHECK(kernels::dropout_rate(1).threshold == uint64_t{1} << 32);
}

TEST_CASE("dropout: rates, and members, sequences and neighbours that know nothing of each other") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t count = test::wants_small_cases() ? 4096 : 1 << 16;
    const std::vector<Member> members{{1, 0, 0.1}, {2, 0, 0.5}, {3, 0, 0.5},
                                      {1, 1, 0.5}, {1, 0, 0.5}, {0x1p40, 0, 0.9}};
    std::vector<std::vector<double>> masks(members.size());
    const std::vector<double> y = dropped_ones(context, members, 1, count);
    for (size_t m = 0; m < members.size(); ++m) {
      const auto first = y.begin() + static_cast<int64_t>(m) * count;
      masks[m].assign(first, first + count);
      double dropped = 0;
      for (const double value : masks[m]) dropped += value == 0;
      const double p = members[m].probability, n = static_cast<double>(count);
      INFO("member " << m << ": " << dropped << " of " << n);
      CHECK(std::fabs(dropped - n * p) <= 5 * std::sqrt(n * p * (1 - p)));
    }
    const double bound = 5 / std::sqrt(static_cast<double>(count));
    for (size_t a = 0; a < masks.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool has_same_words =
            members[a].seed == members[b].seed && members[a].sequence == members[b].sequence;
        INFO("members " << a << ", " << b);
        CHECK((std::fabs(correlation(masks[a], masks[b])) <= bound) == !has_same_words);
      }
      for (const int64_t lag : {1, 2, 3, 4, 128}) {
        const std::vector<double> early(masks[a].begin(), masks[a].end() - lag),
            late(masks[a].begin() + lag, masks[a].end());
        CHECK(std::fabs(correlation(early, late)) <= bound * 1.1);
      }
    }
  }
}

TEST_CASE("dropout: a member's mask is its own, whatever the shape, strategy, dtype or device") {
  const std::vector<Member> members{{7, 1, 0.5}, {8, 2, 0.25}, {0x1.23456789abcdp52, 3, 0.5}};
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {1, 4, 5, 7, 12, 24, 33, 136}) {
      const int64_t rows = d == 7 ? 160 : 6;  // more than the CPU takes together, and a rest
      const auto n = static_cast<int64_t>(members.size());
      const std::vector<double> all = dropped_ones(context, members, rows, d);
      const std::vector<double> cpu = dropped_ones(Context::cpu(), members, rows, d);
      INFO(to_string(context.device()) << " d " << d);
      CHECK(all == cpu);
      CHECK(dropped_ones(context, members, rows, d, Dtype::fp32, "sequential") == all);
      for (int64_t m = 0; m < n; ++m) {
        std::vector<double> own;
        for (int64_t i = 0; i < rows * d; ++i) {
          own.push_back(all[static_cast<size_t>((i / d * n + m) * d + i % d)]);
        }
        const std::vector<Member> alone{members[static_cast<size_t>(m)]};
        CHECK(dropped_ones(context, alone, rows, d) == own);
        CHECK(dropped_ones(context, alone, 1, rows * d) == own);
      }
      const std::vector<double> half = dropped_ones(context, members, rows, d, Dtype::fp16);
      for (size_t i = 0; i < all.size(); ++i) CHECK((half[i] == 0) == (all[i] == 0));
    }
  }
}

TEST_CASE("dropout: in place, padded, misaligned and member-explicit, by the reference") {
  constexpr int64_t rows = 5, n = 2;
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16}) {
      for (const int64_t d : {12, 20, 33, 264}) {
        Tensor seeds = upload(context, Dtype::int64, {n, 2}, {5, 6, 7, 8});
        Tensor probabilities = upload(context, Dtype::fp32, {n, 1}, {0.25, 0.4});
        for (const auto& [first, row_gap, member_gap] :
             {std::tuple<int64_t, int64_t, int64_t>{0, 0, 0}, {1, 0, 0}, {0, 8, 4}, {3, 5, 0}}) {
          const int64_t member_stride = d + member_gap, row_stride = n * member_stride + row_gap;
          const auto stored = first + rows * row_stride;
          Tensor storage = upload(context, dtype, {stored}, test::uniform(stored, 0.5, 4, 5));
          const std::vector<double> before = download(context, storage);
          const TensorView view(static_cast<char*>(storage.data()) + first * dtype_bytes(dtype),
                                dtype, {rows, n, d}, Strides{row_stride, member_stride, 1},
                                context.device());
          run(context, {view, seeds, probabilities, view}, {.num_members = n, .features = d});
          const std::vector<double> after = download(context, storage);
          std::vector<double> expected = before, tolerance(before.size());
          for (int64_t block = 0; block < rows * n; ++block) {
            const int64_t row = block / n, m = block % n;
            const auto at = static_cast<size_t>(first + row * row_stride + m * member_stride);
            const auto size = static_cast<size_t>(d);
            catalog::dropout_reference(
                {.num_members = n, .rows = rows, .features = d, .dtype = dtype},
                {5 + 2 * m, 6 + 2 * m, m == 0 ? 0.25 : static_cast<double>(0.4f)}, row,
                std::span(before).subspan(at, size), std::span(expected).subspan(at, size),
                std::span(tolerance).subspan(at, size));
          }
          INFO(to_string(context.device()) << " d " << d << " first " << first);
          int64_t wrong = 0;
          for (size_t i = 0; i < after.size(); ++i) {
            wrong += !(std::fabs(after[i] - expected[i]) <= tolerance[i]);
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("dropout: elements that powers of two scale are exact") {
  constexpr int64_t n = 4, d = 264;
  const std::vector<double> rates{0, 0.5, 0.75, 1 - 0x1p-7};
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      std::vector<double> values = test::uniform(n * d, -4, 4, 9);
      for (size_t i = 0; i < values.size(); i += 5) {
        values[i] = min_subnormal(dtype) * static_cast<double>(i % 7 + 1);
      }
      const Tensor x = upload(context, dtype, {1, n * d}, values);
      const Tensor seeds = upload(context, Dtype::int64, {n, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
      const Tensor probabilities = upload(context, Dtype::fp32, {n, 1}, rates);
      Tensor y(context, dtype, {1, n * d});
      run(context, {x, seeds, probabilities, y}, {.num_members = n});
      const std::vector<double> exact = download(context, x), got = download(context, y);
      std::vector<double> expected(d), tolerance(d);
      for (int64_t m = 0; m < n; ++m) {
        const double rate = rates[static_cast<size_t>(m)];
        const auto own = std::span(exact).subspan(static_cast<size_t>(m * d), d);
        catalog::dropout_reference({.num_members = n, .rows = 1, .features = d, .dtype = dtype},
                                   {1 + 2 * m, 2 + 2 * m, rate}, 0, own, expected, tolerance);
        INFO(to_string(context.device()) << " " << dtype_name(dtype) << " rate " << rate);
        CHECK(tolerance == std::vector<double>(d));
        int64_t wrong = 0, kept = 0;
        for (size_t i = 0; i < d; ++i) {
          kept += expected[i] != 0;
          wrong += got[static_cast<size_t>(m * d) + i] != expected[i] ||
                   (expected[i] != 0 && expected[i] != own[i] / (1 - rate));
        }
        CHECK(wrong == 0);
        CHECK((kept > 0 && (kept == d) == (rate == 0)));
      }
    }
  }
  std::vector<double> expected(1), tolerance(1);
  for (const double rate : {0.1, 0.25, 0x1p-24}) {
    catalog::dropout_reference({.rows = 1, .features = 1}, {0, 0, rate}, 0, std::vector{1.0},
                               expected, tolerance);
    CHECK(expected[0] > 0);
    CHECK(tolerance[0] > 3 * 0x1p-24);
  }
}

TEST_CASE("dropout: empty problems run, weights go there and back, wrong operands are named") {
  const Context cpu = Context::cpu();
  Tensor seeds = upload(cpu, Dtype::int64, {2, 2}, {1, 2, 3, 4});
  Tensor probabilities = upload(cpu, Dtype::fp32, {2, 1}, {0.5, 0.25});
  const DropoutProblem two{.num_members = 2};
  for (const Shape& shape : {Shape{0, 8}, Shape{4, 0}}) {
    Tensor x(cpu, Dtype::fp32, shape), y(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {x, seeds, probabilities, y}, two));
  }
  const DropoutPlan plan = make_dropout_plan(cpu, {.num_members = 2, .rows = 4, .features = 3});
  Tensor seed(cpu, Dtype::int64, {2}), other_seed(cpu, Dtype::int64, {2}), p(cpu, Dtype::fp32, {1}),
      q(cpu, Dtype::fp32, {1});
  const TensorView own_seeds[] = {seed, other_seed}, own[] = {p, q};
  plan.restore_weights(seeds, probabilities, own_seeds, own, Stream::cpu());
  CHECK(download(cpu, other_seed) == std::vector<double>{3, 4});
  Tensor again(cpu, Dtype::int64, {2, 2}), ps(cpu, Dtype::fp32, {2, 1});
  const DropoutMember members[] = {{other_seed, q}, {seed, p}};
  plan.prepare_weights(members, again, ps, Stream::cpu());
  CHECK(download(cpu, again) == std::vector<double>{3, 4, 1, 2});
  CHECK(download(cpu, ps) == std::vector<double>{0.25, 0.5});

  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), few(cpu, Dtype::fp32, {3, 6}),
      ids(cpu, Dtype::int32, {2, 2}), flat(cpu, Dtype::fp32, {2});
  CHECK_THROWS_MATCHES(
      describe_dropout({x, seeds, flat, y}, two), Error,
      Message("dropout: probabilities is [2], expected [num_members, 1] = [2, 1]"));
  CHECK_THROWS_MATCHES(describe_dropout({x, ids, probabilities, y}, two), Error,
                       Message("dropout: seeds is int32, expected dtype = int64"));
  CHECK_THROWS_MATCHES(
      describe_dropout({x, TensorView(seeds.data(), Dtype::int64, {2, 2}, Strides{0, 1}, Device{}),
                        probabilities, y},
                       two),
      Error,
      Message("dropout: seeds has strides [0, 1], expected members of their own: a first stride "
              "above 0"));
  CHECK_THROWS_MATCHES(describe_dropout({x, seeds, probabilities, few}, two), Error,
                       Message("dropout: y is [3, 6], expected the rows of x = [4, 6]"));
  CHECK_THROWS_MATCHES(
      describe_dropout({x, TensorView(again.data(), Dtype::int64, {2, 2}, Strides{1, 2}, Device{}),
                        probabilities, y},
                       two),
      Error, Message("dropout: seeds has strides [1, 2], expected a last stride of 1"));
  const auto elsewhere = [](Tensor& tensor) {
    return TensorView(tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0});
  };
  CHECK_THROWS_MATCHES(describe_dropout({x, elsewhere(seeds), probabilities, y}, two), Error,
                       Message("dropout: seeds is on cuda:0, expected the plan's device = cpu"));
  const TensorView inside(y.data(), Dtype::fp32, {2, 1}, Device{});
  CHECK_THROWS_MATCHES(describe_dropout({x, seeds, inside, y}, two), Error,
                       Message("dropout: y overlaps probabilities, expected memory of its own"));
  CHECK_THROWS_MATCHES(make_dropout_plan(cpu, {.num_members = 0}), Error,
                       Message("dropout: num_members is 0, expected >= 1"));
  CHECK_THROWS_MATCHES(plan.prepare_weights(members, flat, ps, Stream::cpu()), Error,
                       Message("dropout: seeds is [2], expected [num_members, 2] = [2, 2]"));
  CHECK_THROWS_MATCHES(
      plan.prepare_weights(members, again, flat, Stream::cpu()), Error,
      Message("dropout: probabilities is [2], expected [num_members, 1] = [2, 1]"));
  Tensor spread(cpu, Dtype::int64, {2, 3}), spread_ps(cpu, Dtype::fp32, {2, 2});
  CHECK_THROWS_MATCHES(
      plan.run({x, spread.view().narrow(1, 0, 2), probabilities, y}, {Stream::cpu()}), Error,
      Message("dropout: the operands' member stride of seeds is 3, expected the plan's = 2"));
  CHECK_THROWS_MATCHES(
      plan.run({x, seeds, spread_ps.view().narrow(1, 0, 1), y}, {Stream::cpu()}), Error,
      Message(
          "dropout: the operands' member stride of probabilities is 2, expected the plan's = 1"));
  CHECK_THROWS_MATCHES(
      plan.run({elsewhere(x), elsewhere(seeds), elsewhere(probabilities), elsewhere(y)},
               {Stream::cpu()}),
      Error, Message("dropout: y is on cuda:0, expected the plan's device = cpu"));
  CHECK_THROWS_MATCHES(plan.run({few, seeds, probabilities, few}, {Stream::cpu()}), Error,
                       Message("dropout: the operands' rows is 3, expected the plan's = 4"));
  CHECK_THROWS_AS(make_dropout_plan(cpu, plan.problem(), {"wid"}), Error);
}
