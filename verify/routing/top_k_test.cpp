// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/top_k.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "host/routing/top_k_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"

namespace wide::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kGuard = 99;
constexpr int64_t kGuards = 40;

using Doubles = std::vector<double>;

struct Chosen {
  Doubles ids, gates;
};

/// Packed outputs between guards.
class Guarded {
 public:
  Guarded(const Context& context, Dtype dtype, const Shape& shape)
      : context_(context),
        shape_(shape),
        buffer_(upload(context, dtype, {num_elements(shape) + 2 * kGuards},
                       Doubles(static_cast<size_t>(num_elements(shape) + 2 * kGuards), kGuard))) {}

  TensorView view() {
    auto* const data = static_cast<char*>(buffer_.data());
    return TensorView(data + kGuards * dtype_bytes(buffer_.dtype()), buffer_.dtype(), shape_,
                      context_.device());
  }
  Doubles values() const {
    const Doubles all = download(context_, buffer_);
    const auto is_guard = [](double value) { return value == kGuard; };
    CHECK(std::all_of(all.begin(), all.begin() + kGuards, is_guard));
    CHECK(std::all_of(all.end() - kGuards, all.end(), is_guard));
    return {all.begin() + kGuards, all.end() - kGuards};
  }

 private:
  Context context_;
  Shape shape_;
  Tensor buffer_;
};

/// Of scores [rows, N], `shift` elements behind an aligned address and rows of `gap` more.
struct Place {
  int64_t shift = 0, gap = 0;
};

Chosen choose(const Context& context, const TopKProblem& p, const Doubles& scores,
              const std::string& strategy, const Place& place = {}) {
  const int64_t stride = p.num_members + place.gap;
  Doubles placed(static_cast<size_t>(place.shift + p.rows * stride), kNan);
  for (int64_t i = 0; i < p.rows * p.num_members; ++i) {
    const int64_t to = place.shift + i / p.num_members * stride + i % p.num_members;
    placed[static_cast<size_t>(to)] = scores[static_cast<size_t>(i)];
  }
  Tensor all = upload(context, p.dtype, {static_cast<int64_t>(placed.size())}, placed);
  const TensorView view(static_cast<char*>(all.data()) + place.shift * dtype_bytes(p.dtype),
                        p.dtype, {p.rows, p.num_members}, Strides{stride, 1}, context.device());
  Guarded ids(context, p.id_dtype, {p.rows, p.choices});
  Guarded gates(context, Dtype::fp32, {p.rows, p.choices});
  TopKArguments arguments{view, ids.view()};
  if (p.has_gates) arguments.gates = gates.view();
  run_plan(context, make_top_k_plan(context, describe_top_k(arguments, p), {.strategy = strategy}),
           arguments);
  if (p.has_gates) return {ids.values(), gates.values()};
  CHECK(gates.values() == Doubles(static_cast<size_t>(p.rows * p.choices), kGuard));
  return {ids.values(), {}};
}

bool is_same(const Doubles& a, const Doubles& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// By both strategies of every device, which agree bit for bit, against the reference.
void check(const TopKProblem& p, const Doubles& values, const Place& place = {}) {
  const auto n = static_cast<size_t>(p.num_members), k = static_cast<size_t>(p.choices);
  for (const Context& context : devices_at_hand()) {
    INFO(to_string(context.device()) << " " << p.rows << " rows, " << k << " of " << n << " "
                                     << gate_function_name(p.gate) << " " << dtype_name(p.dtype));
    const Doubles scores =
        download(context, upload(context, p.dtype, {p.rows, p.num_members}, values));
    const Chosen chosen = choose(context, p, values, "wide", place);
    const Chosen same = choose(context, p, values, "sequential", place);
    CHECK(same.ids == chosen.ids);
    CHECK(is_same(same.gates, chosen.gates));
    std::vector<int64_t> ids(k);
    Doubles gates(p.has_gates ? k : 0), tolerance(gates.size());
    double worst = 0;
    bool are_right = true;
    for (size_t row = 0; row < static_cast<size_t>(p.rows); ++row) {
      catalog::top_k_reference(p, std::span(scores).subspan(row * n, n), ids, gates, tolerance);
      for (size_t i = 0; i < k; ++i) {
        are_right = are_right && chosen.ids[row * k + i] == static_cast<double>(ids[i]);
        if (!p.has_gates) continue;
        const double got = chosen.gates[row * k + i];
        if (got == gates[i] || (std::isnan(got) && std::isnan(gates[i]))) continue;
        worst = worse_ratio(worst, got, gates[i], tolerance[i]);
      }
    }
    CHECK(are_right);
    CHECK(worst <= 1);
  }
}

}  // namespace

TEST_CASE("top_k: a case worked out by hand") {
  const Doubles scores{1, 3, 2, 3, 0, 0, 0, 0};
  const double e = std::exp(1.0);
  for (const Context& context : devices_at_hand()) {
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      INFO(to_string(context.device()) << " " << strategy);
      TopKProblem p{.num_members = 4, .rows = 2, .choices = 3, .has_gates = true};
      const auto gates_are = [&](GateFunction gate, const Doubles& expected) {
        p.gate = gate;
        const Chosen chosen = choose(context, p, scores, strategy);
        CHECK(chosen.ids == Doubles{1, 3, 2, 0, 1, 2});
        for (size_t i = 0; i < 6; ++i) CHECK(std::fabs(chosen.gates[i] - expected[i]) < 1e-6);
      };
      const double three = 2 + 1 / e, four = three + 1 / (e * e);
      gates_are(GateFunction::softmax,
                {1 / three, 1 / three, 1 / e / three, 1.0 / 3, 1.0 / 3, 1.0 / 3});
      gates_are(GateFunction::softmax_all, {1 / four, 1 / four, 1 / e / four, 0.25, 0.25, 0.25});
      const double of3 = 1 / (1 + std::exp(-3.0)), of2 = 1 / (1 + std::exp(-2.0));
      gates_are(GateFunction::sigmoid, {of3, of3, of2, 0.5, 0.5, 0.5});
      gates_are(GateFunction::none, {3, 3, 2, 0, 0, 0});
    }
  }
}

TEST_CASE("top_k: NaN comes first, all NaN are equal, and so are both zeros") {
  const Doubles scores{-0.0, kNan, 0.0, kInfinity, -kInfinity, -kNan, -1e-45, 1e-45};
  for (const Context& context : devices_at_hand()) {
    for (const char* strategy : {"sequential", "wide"}) {
      INFO(to_string(context.device()) << " " << strategy);
      TopKProblem p{.num_members = 8, .rows = 1, .choices = 8, .has_gates = true};
      p.gate = GateFunction::none;
      const Chosen chosen = choose(context, p, scores, strategy);
      CHECK(chosen.ids == Doubles{1, 5, 3, 7, 0, 2, 6, 4});
      CHECK(is_same(chosen.gates, {kNan, kNan, kInfinity, 0x1p-149, 0, 0, -0x1p-149, -kInfinity}));
    }
  }
}

TEST_CASE("top_k: a softmax is NaN by NaN and infinities, and 0 by what is masked") {
  const Doubles nan{kNan, kNan};
  for (const Context& context : devices_at_hand()) {
    for (const char* strategy : {"sequential", "wide"}) {
      for (const GateFunction gate : {GateFunction::softmax, GateFunction::softmax_all}) {
        INFO(to_string(context.device()) << " " << strategy << " " << gate_function_name(gate));
        const auto gates = [&](const Doubles& scores) {
          const TopKProblem p{
              .num_members = 3, .rows = 1, .choices = 2, .has_gates = true, .gate = gate};
          return choose(context, p, scores, strategy).gates;
        };
        CHECK(is_same(gates({1, kNan, 2}), nan));
        CHECK(is_same(gates({1, kInfinity, 2}), nan));
        CHECK(is_same(gates({-kInfinity, -kInfinity, -kInfinity}), nan));
        CHECK(is_same(gates({-kInfinity, 5, -kInfinity}), {1, 0}));
        CHECK(is_same(gates({3e38, 3e38, -3e38}), {0.5, 0.5}));
      }
    }
  }
}

TEST_CASE("top_k: any number of members and choices, with many equals, at any place") {
  std::mt19937_64 random(3);
  int64_t turn = 0;
  for (const int64_t n : {1, 2, 31, 33, 255, 256, 257, 600, 2100}) {
    for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{32}, int64_t{33}, int64_t{70}, n}) {
      if (k > n || (n > 600 && k == n)) continue;
      if (wants_small_cases() && (k > 70 || (n == 2100 && k > 33))) continue;
      TopKProblem p{.num_members = n, .rows = 1 + turn % 6, .choices = k, .has_gates = true};
      p.dtype = turn % 3 == 0 ? Dtype::fp32 : turn % 3 == 1 ? Dtype::fp16 : Dtype::bf16;
      p.id_dtype = turn % 2 == 0 ? Dtype::int64 : Dtype::int32;
      p.gate = kAllGateFunctions[static_cast<size_t>(turn / 2 % 4)];
      p.has_gates = turn % 7 != 3;
      Doubles scores(static_cast<size_t>(p.rows * n));
      for (double& score : scores) score = static_cast<double>(random() % 9) - 4;
      check(p, scores, {.shift = turn % 5, .gap = turn % 4});
      if (p.dtype == Dtype::fp32) check(p, uniform(p.rows * n, -4, 4, random()));
      ++turn;
    }
  }
}

TEST_CASE("top_k: few and many choices among NaN, infinities and both zeros, wherever they are") {
  const Doubles special{-0.0, kNan, 0.0, kInfinity, -kInfinity, -kNan, 1, -1};
  std::mt19937_64 random(4);
  for (const int64_t n : {70, 1100}) {
    for (const int64_t k : {3, 32, 33, 70}) {
      // Rare, as few as are chosen, or nothing else.
      for (const uint64_t one_in : {50, 20, 1}) {
        TopKProblem p{.num_members = n, .rows = 2, .choices = k, .has_gates = true};
        p.gate = GateFunction::none;
        Doubles scores = uniform(p.rows * n, -4, 4, random());
        for (double& score : scores) {
          if (random() % one_in == 0) score = special[random() % special.size()];
        }
        check(p, scores);
        check(p, Doubles(scores.size(), scores.back()));
        check(p, Doubles(scores.size(), kNan));
      }
    }
  }
}

TEST_CASE("top_k: rows that do not fit in registers, in either order of scores") {
  const int64_t n = 8200;
  for (const bool ascends : {false, true}) {
    TopKProblem p{.num_members = n, .rows = 2, .choices = 34, .has_gates = true};
    p.gate = ascends ? GateFunction::softmax_all : GateFunction::softmax;
    if (wants_small_cases()) p.choices = ascends ? 2 : 34;
    Doubles scores(static_cast<size_t>(2 * n));
    for (size_t i = 0; i < scores.size(); ++i) {
      const auto place = static_cast<double>(i / 3);
      scores[i] = (ascends ? place : -place) / 1024;
    }
    check(p, scores);
  }
}

TEST_CASE("top_k: many rows, each with its own") {
  TopKProblem p{.num_members = 6, .rows = wants_small_cases() ? 300 : 5000, .choices = 2};
  p.has_gates = true;
  check(p, uniform(p.rows * p.num_members, -4, 4, 5));
  p.rows = 0;
  check(p, {});
}

TEST_CASE("top_k: the bound refuses a softmax over the others, and one member off") {
  TopKProblem p{.num_members = 5, .rows = 1, .choices = 2, .has_gates = true};
  const Doubles scores{0.5, 1, -1, 2, -3};
  std::vector<int64_t> ids(2);
  Doubles of_chosen(2), of_all(2), tolerance(2), ignored(2);
  catalog::top_k_reference(p, scores, ids, of_chosen, tolerance);
  CHECK(ids == std::vector<int64_t>{3, 1});
  CHECK(std::fabs(of_chosen[0] - 1 / (1 + std::exp(-1.0))) < 1e-15);
  p.gate = GateFunction::softmax_all;
  catalog::top_k_reference(p, scores, ids, of_all, ignored);
  CHECK_FALSE(worse_ratio(0, of_all[0], of_chosen[0], tolerance[0]) <= 1);
  CHECK_FALSE(worse_ratio(0, of_chosen[0] * (1 + 0x1p-17), of_chosen[0], tolerance[0]) <= 1);
}

}  // namespace wide::test
