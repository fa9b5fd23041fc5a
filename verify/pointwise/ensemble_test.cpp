// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/ensemble.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "host/pointwise/ensemble_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void run(const Context& context, const EnsembleArguments& arguments, const EnsembleProblem& like,
         const std::string& strategy = "wide") {
  test::run_plan(context,
                 make_ensemble_plan(context, describe_ensemble(arguments, like), {strategy}),
                 arguments);
}

/// Equal, NaN to NaN.
bool is_same(const std::vector<double>& a, const std::vector<double>& b, double tolerance = 0) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::fabs(a[i] - b[i]) <= tolerance)) return false;
  }
  return true;
}

/// y of values that are the packed x [rows, N*D], by both strategies, which agree bit for bit.
std::vector<double> ensemble(const Context& context, const EnsembleProblem& p,
                             const std::vector<double>& values,
                             const std::vector<double>& mask = {}) {
  Tensor x = upload(context, p.dtype, {p.rows, p.num_members * p.features}, values);
  const Tensor own = mask.empty() ? Tensor() : upload(context, Dtype::uint8, {p.num_members}, mask);
  const ConstTensorView view = mask.empty() ? ConstTensorView() : ConstTensorView(own);
  Tensor y(context, p.dtype, {p.rows, p.features}), same(context, p.dtype, y.shape());
  run(context, {x, view, y}, p);
  run(context, {x, view, same}, p, "sequential");
  const std::vector<double> got = download(context, y);
  CHECK(is_same(download(context, same), got));
  return got;
}

/// Of a packed x, as it is after rounding.
double worst_ratio(const EnsembleProblem& p, const std::vector<double>& x,
                   const std::vector<double>& y, const std::vector<double>& mask = {}) {
  const auto d = static_cast<size_t>(p.features), n = static_cast<size_t>(p.num_members);
  std::vector<double> expected(d), tolerance(d);
  double worst = 0;
  for (size_t row = 0; row < static_cast<size_t>(p.rows); ++row) {
    std::vector<std::span<const double>> members;
    for (size_t m = 0; m < n; ++m) {
      if (mask.empty() || mask[m] != 0)
        members.push_back(std::span(x).subspan((row * n + m) * d, d));
    }
    catalog::ensemble_reference(p, members, expected, tolerance);
    for (size_t i = 0; i < d; ++i) {
      if (y[row * d + i] == expected[i]) continue;
      worst = test::worse_ratio(worst, y[row * d + i], expected[i], tolerance[i]);
    }
  }
  return worst;
}

EnsembleProblem problem(EnsembleFunction function, int64_t members, int64_t rows, int64_t features,
                        Dtype dtype = Dtype::fp32) {
  return {.num_members = members,
          .rows = rows,
          .features = features,
          .function = function,
          .dtype = dtype};
}

}  // namespace

TEST_CASE("ensemble: a case worked out by hand") {
  // Members (1, 5, 5), (2, 9, 2) and (6, 1, 2); without the second (1, 5, 5) and (6, 1, 2).
  const std::vector<double> x{1, 5, 5, 2, 9, 2, 6, 1, 2};
  const std::vector<double> masks[] = {{}, {1, 0, 255}, {0, 1, 0}, {0, 0, 0}};
  const double e = std::log((1 + std::exp(1.0) + std::exp(5.0)) / 3) + 1;
  const std::vector<double> means[] = {{3, 5, 3}, {3.5, 3, 3.5}, {2, 9, 2}, {kNan, kNan, kNan}};
  const std::vector<double> variances[] = {
      {7, 16, 3}, {12.5, 8, 4.5}, {kNan, kNan, kNan}, {kNan, kNan, kNan}};
  const std::vector<double> sums[] = {{9, 15, 9}, {7, 6, 7}, {2, 9, 2}, {0, 0, 0}};
  const std::vector<double> votes[] = {
      {1.0 / 3, 2.0 / 3, 0}, {0.5, 0.5, 0}, {0, 1, 0}, {kNan, kNan, kNan}};
  for (const Context& context : test::devices_at_hand()) {
    for (size_t i = 0; i < 4; ++i) {
      INFO(to_string(context.device()) << " mask " << i);
      const auto of = [&](EnsembleFunction function) {
        return ensemble(context, problem(function, 3, 1, 3), x, masks[i]);
      };
      CHECK(is_same(of(EnsembleFunction::mean), means[i]));
      CHECK(is_same(of(EnsembleFunction::sum), sums[i]));
      CHECK(is_same(of(EnsembleFunction::variance), variances[i], 1e-6));
      CHECK(is_same(of(EnsembleFunction::vote), votes[i], 1e-7));
      const std::vector<double> got = of(EnsembleFunction::log_mean_exp);
      if (i == 0) CHECK(std::fabs(got[0] - e) < 1e-6);
      if (i == 2) CHECK(is_same(got, means[2]));
      if (i == 3) CHECK(is_same(got, means[3]));
    }
  }
}

TEST_CASE("ensemble: every path, dtype, odd size and mask stays within its bound") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {1, 3, 8, 31, 64, 65, 257, 1000, 1024, 2049, 4104}) {
      if (test::wants_small_cases() && d > 257 && d != 1024 && d != 2049) continue;
      for (const int64_t members : {1, 5, 35, 300}) {  // of the last several parts are staged
        if (members > 5 && d > 65) continue;
        if (members > 35 && d != 31) continue;
        const std::vector<double> values = test::uniform(3 * members * d, -4, 4, 1);
        std::vector<double> some;
        for (int64_t n = 0; n < members; ++n) some.push_back(n % 4 == 2 ? 0 : 1);
        for (const EnsembleFunction function : kAllEnsembleFunctions) {
          for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
            const EnsembleProblem p = problem(function, members, 3, d, dtype);
            INFO(to_string(context.device())
                 << " " << ensemble_function_name(function) << " " << dtype_name(dtype) << " d "
                 << d << " n " << members);
            const std::vector<double> x =
                download(context, upload(context, dtype, {3, members * d}, values));
            if (members > 1 || function != EnsembleFunction::variance)
              CHECK(worst_ratio(p, x, ensemble(context, p, values)) <= 1);
            if (members > 1)
              CHECK(worst_ratio(p, x, ensemble(context, p, values, some), some) <= 1);
          }
        }
      }
    }
  }
}

TEST_CASE("ensemble: several short rows a block, and a last block of fewer") {
  constexpr int64_t rows = 799, members = 8, d = 3;
  for (const Context& context : test::devices_at_hand()) {
    const EnsembleProblem p = problem(EnsembleFunction::mean, members, rows, d);
    const std::vector<double> values = test::uniform(rows * members * d, -4, 4, 8);
    const std::vector<double> x =
        download(context, upload(context, p.dtype, {rows, members * d}, values));
    const std::vector<double> some{1, 1, 0, 1, 0, 0, 1, 1};
    CHECK(worst_ratio(p, x, ensemble(context, p, values)) <= 1);
    CHECK(worst_ratio(p, x, ensemble(context, p, values, some), some) <= 1);
  }
}

TEST_CASE("ensemble: an offset of all members costs the variance no digit") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t members : {2, 6}) {
      for (const int64_t d : {24, 37}) {
        // Eighths: exact beside any of these offsets.
        std::vector<double> small = test::uniform(2 * members * d, -4, 4, 2);
        for (double& v : small) v = std::round(v * 8) / 8;
        const EnsembleProblem p = problem(EnsembleFunction::variance, members, 2, d);
        const std::vector<double> plain = ensemble(context, p, small);
        CHECK(worst_ratio(p, small, plain) <= 1);
        for (const double offset : {100.0, 1000.0, 1e6}) {
          std::vector<double> shifted = small;
          for (double& v : shifted) v += offset;
          INFO(to_string(context.device()) << " offset " << offset);
          CHECK(is_same(ensemble(context, p, shifted), plain));
        }
      }
    }
  }
}

TEST_CASE("ensemble: infinities and NaN go where the formulas say") {
  const double big = 3e38;
  for (const Context& context : test::devices_at_hand()) {
    const auto of = [&](EnsembleFunction function, const std::vector<double>& members) {
      const auto n = static_cast<int64_t>(members.size());
      return ensemble(context, problem(function, n, 1, 1), members).front();
    };
    const EnsembleFunction lme = EnsembleFunction::log_mean_exp;
    CHECK(of(lme, {-kInfinity, -kInfinity}) == -kInfinity);
    CHECK(std::fabs(of(lme, {-kInfinity, 3}) - (3 - std::log(2.0))) < 1e-6);
    CHECK(std::fabs(of(lme, {3, -kInfinity}) - (3 - std::log(2.0))) < 1e-6);
    CHECK(of(lme, {kInfinity, 1, kInfinity}) == kInfinity);
    CHECK(std::isnan(of(lme, {1, kNan, 2})));
    CHECK(std::isnan(of(lme, {-kInfinity, kNan})));
    CHECK(of(lme, {1000, 1000, 1000}) == 1000);
    CHECK(std::fabs(of(lme, {-1e4, -1e4 + 1}) - (-1e4 + std::log((1 + std::exp(1.0)) / 2))) < 1e-3);
    CHECK(of(EnsembleFunction::mean, {kInfinity, 1}) == kInfinity);
    CHECK(std::isnan(of(EnsembleFunction::mean, {kInfinity, -kInfinity})));
    CHECK(of(EnsembleFunction::mean, {big, big}) == kInfinity);  // sums are fp32's
    CHECK(of(EnsembleFunction::sum, {-kInfinity, 1}) == -kInfinity);
    CHECK(std::isnan(of(EnsembleFunction::sum, {kInfinity, -kInfinity})));
    CHECK(std::isnan(of(EnsembleFunction::sum, {1, kNan})));
    CHECK(std::isnan(of(EnsembleFunction::variance, {1, 2, kInfinity})));
    CHECK(std::isnan(of(EnsembleFunction::variance, {kInfinity, 2, 3})));
  }
}

TEST_CASE("ensemble: votes go to the first of equals, and to the first NaN") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {6, 40, 300, 2500}) {
      for (const int64_t at : {int64_t{0}, int64_t{5}, d / 2 + 1, d - 2}) {
        if (at < 0 || at > d - 2) continue;
        std::vector<double> x(static_cast<size_t>(5 * d), -2.0);
        const auto member = [&](int64_t n) { return x.begin() + n * d; };
        std::fill_n(member(0) + at, d - at, 7.0);  // equals from there on
        member(1)[at] = kNan;
        member(1)[d - 1] = kNan;
        member(1)[0] = at == 0 ? kNan : kInfinity;
        std::fill_n(member(2), d, -kInfinity);  // the first of all
        std::fill_n(member(3), d, -0.0);
        member(3)[at] = 0.0;  // no larger than -0
        std::fill_n(member(4), d, -kInfinity);
        member(4)[d - 1] = -1e30;
        std::vector<double> expected(static_cast<size_t>(d), 0.0);
        for (const int64_t winner : {at, at, int64_t{0}, int64_t{0}, d - 1})
          expected[static_cast<size_t>(winner)] += 0.2;
        INFO(to_string(context.device()) << " d " << d << " at " << at);
        CHECK(is_same(ensemble(context, problem(EnsembleFunction::vote, 5, 1, d), x), expected,
                      1e-6));
      }
    }
  }
}

TEST_CASE("ensemble: the bound refuses one-pass variance, N for N - 1, and a member that is lost") {
  std::vector<double> x;
  for (const double v : test::uniform(8, -1, 1, 4))
    x.push_back(static_cast<double>(static_cast<float>(v + 100)));
  EnsembleProblem p = problem(EnsembleFunction::variance, 8, 1, 1);
  float sum = 0, squares = 0;
  double mean = 0, exact = 0;
  for (const double v : x) {
    sum += static_cast<float>(v);
    squares += static_cast<float>(v) * static_cast<float>(v);
    mean += v / 8;
  }
  for (const double v : x) exact += (v - mean) * (v - mean);
  CHECK(worst_ratio(p, x, {exact / 7}) <= 1e-3);
  CHECK_FALSE(worst_ratio(p, x, {static_cast<double>((squares - sum * sum / 8) / 7)}) <= 1);
  CHECK_FALSE(worst_ratio(p, x, {exact / 8}) <= 1);
  p.function = EnsembleFunction::mean;
  CHECK_FALSE(worst_ratio(p, x, {(mean * 8 - x[7]) / 7}) <= 1);
  CHECK_FALSE(worst_ratio(p, x, {mean * (1 + 0x1p-19)}) <= 1);
  p.function = EnsembleFunction::sum;
  CHECK(worst_ratio(p, x, {mean * 8}) <= 1e-3);
  CHECK_FALSE(worst_ratio(p, x, {mean * 8 * (1 + 0x1p-19)}) <= 1);
  p.function = EnsembleFunction::log_mean_exp;
  double power = 0;
  for (const double v : x) power += std::exp(v - 100);
  CHECK(worst_ratio(p, x, {100 + std::log(power / 8)}) <= 1e-3);
  CHECK_FALSE(worst_ratio(p, x, {100 + std::log((power - std::exp(x[7] - 100)) / 8)}) <= 1);
}

TEST_CASE("ensemble: padded, misaligned, member-explicit, member-major, and one x for all") {
  constexpr int64_t rows = 3, members = 9;
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {20, 33, 264, 2056}) {
      if (test::wants_small_cases() && d == 264) continue;
      const std::vector<double> dense = test::uniform(rows * members * d, -4, 4, 5);
      for (const EnsembleFunction function : kAllEnsembleFunctions) {
        const EnsembleProblem p = problem(function, members, rows, d, Dtype::bf16);
        const std::vector<double> want = ensemble(context, p, dense);
        // First element; strides of members and rows; what y's rows are apart.
        for (const auto& [first, member_stride, row_stride, y_gap] :
             {std::tuple<int64_t, int64_t, int64_t, int64_t>{1, d, members * d, 0},
              {0, d + 8, members * (d + 8), 8},
              {3, d + 3, members * (d + 3) + 5, 1},
              {8, rows * (d + 8), d + 8, 16}}) {
          const int64_t end = first + (members - 1) * member_stride + (rows - 1) * row_stride + d;
          std::vector<double> placed(static_cast<size_t>(end), 99);
          for (int64_t i = 0; i < rows * members * d; ++i) {
            const int64_t row = i / (members * d), n = i / d % members;
            placed[static_cast<size_t>(first + row * row_stride + n * member_stride + i % d)] =
                dense[static_cast<size_t>(i)];
          }
          Tensor x = upload(context, Dtype::bf16, {end}, placed);
          const TensorView view(static_cast<char*>(x.data()) + first * 2, Dtype::bf16,
                                {rows, members, d}, Strides{row_stride, member_stride, 1},
                                context.device());
          const int64_t y_stride = d + y_gap;
          const std::vector<double> untouched(static_cast<size_t>(first + rows * y_stride), 99);
          Tensor y =
              upload(context, Dtype::bf16, {static_cast<int64_t>(untouched.size())}, untouched);
          std::vector<double> expected = untouched;
          for (int64_t i = 0; i < rows * d; ++i) {
            expected[static_cast<size_t>(first + i / d * y_stride + i % d)] =
                want[static_cast<size_t>(i)];
          }
          const TensorView to(static_cast<char*>(y.data()) + first * 2, Dtype::bf16, {rows, d},
                              Strides{y_stride, 1}, context.device());
          run(context, {view, {}, to}, p);
          INFO(to_string(context.device())
               << " " << ensemble_function_name(function) << " d " << d << " first " << first
               << " member stride " << member_stride);
          CHECK(download(context, y) == expected);
        }
      }
      Tensor x = upload(context, Dtype::fp32, {rows, d}, test::uniform(rows * d, -4, 4, 6));
      const TensorView shared(x.data(), Dtype::fp32, {rows, members, d}, Strides{d, 0, 1},
                              context.device());
      Tensor y(context, Dtype::fp32, {rows, d});
      run(context, {shared, {}, y}, problem(EnsembleFunction::variance, members, rows, d));
      CHECK(download(context, y) == std::vector<double>(static_cast<size_t>(rows * d), 0.0));
      run(context, {shared, {}, y}, problem(EnsembleFunction::log_mean_exp, members, rows, d));
      CHECK(is_same(download(context, y), download(context, x)));
    }
  }
}

TEST_CASE("ensemble: what is left out is never looked at") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {24, 33, 300}) {
      for (const EnsembleFunction function : kAllEnsembleFunctions) {
        const EnsembleProblem p = problem(function, 6, 2, d, Dtype::fp16);
        const std::vector<double> x = test::uniform(12 * d, -4, 4, 7), mask{1, 0, 1, 1, 0, 1};
        std::vector<double> poisoned = x;
        for (int64_t i = 0; i < 12 * d; ++i) {
          const int64_t member = i / d % 6;
          if (member == 1 || member == 4) poisoned[static_cast<size_t>(i)] = kNan;
        }
        INFO(to_string(context.device()) << " " << ensemble_function_name(function) << " d " << d);
        const std::vector<double> clean = ensemble(context, p, x, mask);
        CHECK(ensemble(context, p, poisoned, mask) == clean);
        CHECK(ensemble(context, p, x) != clean);
      }
    }
  }
}

TEST_CASE("ensemble: empty problems run, and each wrong operand is named") {
  const Context cpu = Context::cpu();
  for (const Shape& shape : {Shape{0, 8}, Shape{4, 0}}) {
    Tensor x(cpu, Dtype::fp32, {shape[0], 2 * shape[1]}), y(cpu, Dtype::fp32, shape);
    for (const EnsembleFunction function : kAllEnsembleFunctions) {
      CHECK_NOTHROW(run(cpu, {x, {}, y}, {.num_members = 2, .function = function}));
    }
  }
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 3}), few(cpu, Dtype::fp32, {3, 3}),
      half(cpu, Dtype::fp16, {4, 3}), ids(cpu, Dtype::int32, {4, 6}),
      sums(cpu, Dtype::int32, {4, 3}), mask(cpu, Dtype::uint8, {2}), masks(cpu, Dtype::uint8, {3}),
      floats(cpu, Dtype::fp32, {2});
  const EnsembleProblem two{.num_members = 2};
  const auto refuses = [&](const EnsembleArguments& arguments, const std::string& message,
                           int64_t members = 2) {
    CHECK_THROWS_MATCHES(describe_ensemble(arguments, {.num_members = members}), Error,
                         Message("ensemble: " + message));
  };
  refuses({x, {}, y}, "num_members is 0, expected >= 1", 0);
  refuses({x, {}, y},
          "x is [4, 6], expected [.., num_members * features] = [.., 15] or [.., num_members, "
          "features] = [.., 5, 3]",
          5);
  refuses({x, {}, few}, "y is [3, 3], expected the rows of x = [4, 6]");
  refuses({x, {}, half}, "y is fp16, expected dtype = fp32");
  refuses({ids, {}, sums}, "dtype is int32, expected fp32, fp16 or bf16");
  refuses({x, masks, y}, "mask is [3], expected [num_members] = [2]");
  refuses({x, floats, y}, "mask is fp32, expected dtype = uint8");
  refuses({x, {}, x.view().narrow(1, 0, 3)}, "y overlaps x, expected memory of its own");
  const TensorView apart(masks.data(), Dtype::uint8, {2}, Strides{2}, cpu.device());
  refuses({x, apart, y}, "mask has strides [2], expected members side by side: stride 1");

  const EnsemblePlan plan = make_ensemble_plan(cpu, describe_ensemble({x, {}, y}, two));
  CHECK_THROWS_MATCHES(plan.run({x.view().narrow(0, 0, 3), {}, few}, {Stream::cpu()}), Error,
                       Message("ensemble: the operands' rows is 3, expected the plan's = 4"));
  CHECK_THROWS_MATCHES(
      plan.run({x, mask, y}, {Stream::cpu()}), Error,
      Message("ensemble: mask is present, expected none as in the plan's problem"));
  CHECK_THROWS_AS(make_ensemble_plan(cpu, plan.problem(), {"wid"}), Error);
  const EnsemblePlan votes = make_ensemble_plan(
      cpu, describe_ensemble({x, {}, y}, {.num_members = 2, .function = EnsembleFunction::vote}));
  CHECK_THROWS_MATCHES(votes.run({x, {}, y}, {Stream::cpu()}), Error,
                       Message("ensemble: workspace is 0 bytes, expected workspace_bytes = 256"));
  CHECK_THROWS_MATCHES(make_ensemble_plan(cpu, problem(EnsembleFunction::vote, 4097, 1, 3)), Error,
                       Message("ensemble: vote of 4097 members on 3 features, expected up to 4096 "
                               "and 2147483647"));
  for (const EnsembleFunction function : kAllEnsembleFunctions)
    CHECK(parse_ensemble_function(ensemble_function_name(function)) == function);
  CHECK_FALSE(parse_ensemble_function("median").has_value());
}

TEST_CASE("ensemble: long rows have the same bits however many threads share them") {
  for (const EnsembleFunction function : kAllEnsembleFunctions) {
    for (const int64_t rows : {1, 3}) {
      const EnsembleProblem p{
          .num_members = 7, .rows = rows, .features = 20011, .function = function};
      std::vector<double> values(static_cast<size_t>(rows * p.num_members * p.features));
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
      const auto of_threads = [&](int count) {
        return ensemble(Context::cpu({.num_threads = count, .allocator = nullptr}), p, values);
      };
      CHECK(is_same(of_threads(1), of_threads(4)));
    }
  }
}
