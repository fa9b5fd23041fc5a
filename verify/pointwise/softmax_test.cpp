// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/softmax.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "host/pointwise/softmax_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void run(const Context& context, const SoftmaxArguments& arguments, const SoftmaxProblem& like,
         const std::string& strategy = "wide") {
  test::run_plan(context, make_softmax_plan(context, describe_softmax(arguments, like), {strategy}),
                 arguments);
}

/// Of packed rows; infinite for a NaN.
double worst_ratio(const std::vector<double>& x, const std::vector<double>& y,
                   const SoftmaxProblem& p) {
  const auto d = static_cast<size_t>(p.features);
  std::vector<double> expected(d), tolerance(d);
  double worst = 0;
  for (size_t first = 0; first < x.size(); first += d) {
    catalog::softmax_reference(p, std::span(x).subspan(first, d), expected, tolerance);
    for (size_t i = 0; i < d; ++i) {
      if (y[first + i] == expected[i]) continue;  // -infinity, too
      worst = test::worse_ratio(worst, y[first + i], expected[i], tolerance[i]);
    }
  }
  return worst;
}

/// f(context, dtype, d) for rows of every kernel that have 2^k elements.
template <class F>
void for_each_power_of_two(const F& f) {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {32, 256, 1024, 4096, 16384, 32768}) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        INFO(to_string(context.device()) << " " << dtype_name(dtype) << " d " << d);
        f(context, dtype, d);
      }
    }
  }
}

/// Of rows of two members.
std::vector<double> softmax_of(const Context& context, Dtype dtype, int64_t d,
                               const std::vector<double>& values, bool is_log = false) {
  const Shape shape{static_cast<int64_t>(values.size()) / (2 * d), 2 * d};
  const Tensor x = upload(context, dtype, shape, values);
  Tensor y(context, dtype, shape);
  run(context, {x, y}, {.num_members = 2, .is_log = is_log});
  return download(context, y);
}

}  // namespace

TEST_CASE("softmax: a case worked out by hand") {
  const double e = std::exp(1.0), two = std::log(2.0);
  for (const Context& context : test::devices_at_hand()) {
    // Members (0, log 2, log 5) and (1e4, 1e4, 1e4 - 1): the offset is gone before exp.
    Tensor x = upload(context, Dtype::fp32, {1, 6}, {0, two, std::log(5.0), 1e4, 1e4, 9999});
    Tensor y(context, Dtype::fp32, {1, 6});
    const std::vector<double> expected{0.125,           0.25,           0.625, e / (2 * e + 1),
                                       e / (2 * e + 1), 1 / (2 * e + 1)};
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      for (const bool is_log : {false, true}) {
        run(context, {x, y}, {.num_members = 2, .is_log = is_log}, strategy);
        const std::vector<double> got = download(context, y);
        for (size_t i = 0; i < 6; ++i) {
          CHECK(std::fabs(got[i] - (is_log ? std::log(expected[i]) : expected[i])) < 1e-6);
        }
      }
    }
  }
}

TEST_CASE("softmax: every path, dtype and odd size stays within its bound") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {1, 3, 8, 31, 64, 72, 255, 256, 257, 512, 513, 1000, 1024, 1032, 4097,
                            8192, 8200, 17001}) {
      const bool is_large = d > 1032 && d != 8200;
      if (test::wants_small_cases() && is_large) continue;
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        SoftmaxProblem p{.num_members = 3, .rows = 2, .features = d, .dtype = dtype};
        Tensor x = upload(context, dtype, {2, 3 * d}, test::uniform(6 * d, -30, 30, 1));
        Tensor y(context, dtype, {2, 3 * d}), same(context, dtype, {2, 3 * d});
        for (const bool is_log : {false, true}) {
          p.is_log = is_log;
          run(context, {x, y}, p);
          run(context, {x, same}, p, "sequential");
          INFO(to_string(context.device())
               << " " << dtype_name(dtype) << " d " << d << " log " << is_log);
          const std::vector<double> got = download(context, y);
          CHECK(worst_ratio(download(context, x), got, p) <= 1);
          CHECK(download(context, same) == got);
        }
      }
    }
  }
}

TEST_CASE("softmax: 2^k equal values give 2^-k exactly") {
  for_each_power_of_two([](const Context& context, Dtype dtype, int64_t d) {
    for (const double value : {0.0, -7.25, 96.0}) {
      const std::vector<double> x(static_cast<size_t>(2 * d), value);
      INFO("values " << value);
      CHECK(softmax_of(context, dtype, d, x) ==
            std::vector<double>(x.size(), 1 / static_cast<double>(d)));
    }
  });
}

TEST_CASE("softmax: a row adds up to 1") {
  for_each_power_of_two([](const Context& context, Dtype dtype, int64_t d) {
    // The quotients are of the very exponentials that were added up, whatever their errors are: the
    // sum's order counts, and a few roundings. Less than d u from 32 on.
    const auto n = static_cast<double>(d);
    const double bound = (16 + std::sqrt(n)) * unit_roundoff(Dtype::fp32) + unit_roundoff(dtype) +
                         n * min_subnormal(dtype) / 2;
    for (const double reach : {1.0, 8.0}) {
      const auto y = softmax_of(context, dtype, d, test::uniform(2 * d, -reach, reach, 8));
      for (const int64_t member : {0, 1}) {
        const auto first = y.begin() + member * d;
        const double error = std::fabs(std::accumulate(first, first + d, -1.0));
        INFO("reach " << reach << ", off by " << error << " of " << bound);
        CHECK(error <= bound);
      }
    }
  });
}

TEST_CASE("softmax: what is added to all of a row changes no bit") {
  for_each_power_of_two([](const Context& context, Dtype dtype, int64_t d) {
    // Every dtype holds sixteenths from -12 to 12: values and their differences are exact.
    std::vector<double> x = test::uniform(2 * d, -64, 64, 9);
    for (double& value : x) value = std::floor(value) / 16;
    for (const bool is_log : {false, true}) {
      const std::vector<double> expected = softmax_of(context, dtype, d, x, is_log);
      for (const double shift : {-8.0, 8.0}) {
        std::vector<double> moved = x;
        for (double& value : moved) value += shift;
        INFO("log " << is_log << " shift " << shift);
        CHECK(softmax_of(context, dtype, d, moved, is_log) == expected);
      }
    }
  });
}

TEST_CASE("softmax: what is added up in stretches is the whole row") {
  constexpr int64_t d = (1 << 21) + 7;  // a thread of a long row ends two stretches of 4096 terms
  for (const Context& context : test::devices_at_hand()) {
    const SoftmaxProblem p{.num_members = 1, .rows = 1, .features = d, .dtype = Dtype::fp32};
    Tensor x = upload(context, Dtype::fp32, {1, d}, test::uniform(d, -1, 1, 1));
    Tensor y(context, Dtype::fp32, {1, d});
    run(context, {x, y}, p);
    INFO(to_string(context.device()));
    CHECK(worst_ratio(download(context, x), download(context, y), p) <= 1);
  }
}

TEST_CASE("softmax: many equal terms, whose roundings are the same") {
  constexpr int64_t d = 1 << 17;
  std::vector<double> values(d, -4.875);
  values[0] = 0;
  for (const Context& context : test::devices_at_hand()) {
    SoftmaxProblem p{.num_members = 1, .rows = 1, .features = d, .dtype = Dtype::fp32};
    Tensor x = upload(context, Dtype::fp32, {1, d}, values);
    Tensor y(context, Dtype::fp32, {1, d});
    run(context, {x, y}, p);
    INFO(to_string(context.device()));
    CHECK(worst_ratio(values, download(context, y), p) <= 1);
  }
}

TEST_CASE("softmax: a row that nearly fills what a launch gets of shared memory unasked") {
  constexpr int64_t d = 12230;  // not whole vectors, so staged: 48920 bytes of 49152
  for (const Context& context : test::devices_at_hand()) {
    const SoftmaxProblem p{.num_members = 1, .rows = 1, .features = d, .dtype = Dtype::fp32};
    Tensor x = upload(context, Dtype::fp32, {1, d}, test::uniform(d, -30, 30, 1));
    Tensor y(context, Dtype::fp32, {1, d});
    run(context, {x, y}, p);
    CHECK(worst_ratio(download(context, x), download(context, y), p) <= 1);
  }
}

TEST_CASE("softmax: masked, overflowing and broken rows") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {24, 2000, 9001}) {
      std::vector<double> x = test::uniform(6 * d, -2, 2, 3);
      const auto at = [&](int64_t row, int64_t i) -> double& {
        return x[static_cast<size_t>(row * d + i)];
      };
      for (int64_t i = 0; i < d; ++i) {
        if (i < d - 2) at(0, i) = -kInfinity;  // all but the last two
        if (i % 2 == 0) at(1, i) = -kInfinity;
        at(2, i) = -kInfinity;
        at(3, i) = i == d / 2 ? 1.5e38 : -1.5e38;
      }
      at(4, d - 1) = nan;
      at(5, 1) = kInfinity;
      Tensor in = upload(context, Dtype::fp32, {2, 3 * d}, x);
      Tensor y(context, Dtype::fp32, {2, 3 * d});
      for (const bool is_log : {false, true}) {
        INFO(to_string(context.device()) << " d " << d << " log " << is_log);
        SoftmaxProblem p{.num_members = 3, .rows = 2, .features = d, .is_log = is_log};
        run(context, {in, y}, p);
        const std::vector<double> got = download(context, y);
        const auto rows = [&](const std::vector<double>& from, int64_t first, int64_t count) {
          return std::vector<double>(from.begin() + first * d, from.begin() + (first + count) * d);
        };
        CHECK(worst_ratio(rows(download(context, in), 0, 2), rows(got, 0, 2), p) <= 1);
        CHECK(worst_ratio(rows(download(context, in), 3, 1), rows(got, 3, 1), p) <= 1);
        for (const int64_t row : {2, 4, 5}) {
          for (const double value : rows(got, row, 1)) CHECK(std::isnan(value));
        }
      }
    }
  }
}

TEST_CASE("softmax: the bound refuses bf16 sums and sums that forget an element") {
  const SoftmaxProblem p{.num_members = 1, .rows = 1, .features = 256};
  std::vector<double> x, y(256), tolerance(256);
  for (const double v : test::uniform(256, -1, 1, 4)) {
    x.push_back(static_cast<double>(static_cast<float>(v)));
  }
  catalog::softmax_reference(p, x, y, tolerance);
  std::vector<double> off = y;
  for (double& value : off) value *= 1 + 0x1p-9;
  CHECK(worst_ratio(x, y, p) == 0);
  CHECK_FALSE(worst_ratio(x, off, p) <= 1);
  double rest = 0;
  for (size_t i = 1; i < 256; ++i) rest += y[i];
  for (double& value : off) value /= rest * (1 + 0x1p-9);
  CHECK_FALSE(worst_ratio(x, off, p) <= 1);
}

TEST_CASE("softmax: the bound refuses exponentials of what the maximum was not taken from") {
  const SoftmaxProblem p{.num_members = 1, .rows = 1, .features = 256};
  for (const double around : {-200.0, 0.0, 100.0}) {
    std::vector<double> x, y;
    float sum = 0;
    for (const double v : test::uniform(256, around - 1, around + 1, 4)) {
      x.push_back(static_cast<double>(static_cast<float>(v)));
      sum += std::exp(static_cast<float>(v));
    }
    for (const double v : x)
      y.push_back(static_cast<double>(std::exp(static_cast<float>(v)) / sum));
    INFO("values around " << around);
    CHECK((worst_ratio(x, y, p) <= 1) == (around == 0));
  }
}

TEST_CASE("softmax: in place, padded, misaligned and member-explicit") {
  constexpr int64_t rows = 3, members = 2;
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {20, 33, 1040}) {
      const std::vector<double> dense = test::uniform(rows * members * d, -4, 4, 5);
      SoftmaxProblem p{.num_members = members};
      Tensor x = upload(context, Dtype::bf16, {rows, members * d}, dense);
      Tensor y(context, Dtype::bf16, {rows, members * d});
      run(context, {x, y}, p);
      const std::vector<double> exact = download(context, x), want = download(context, y);
      p.features = d;
      for (const auto& [first, row_gap, member_gap] :
           {std::tuple<int64_t, int64_t, int64_t>{1, 0, 0}, {3, 5, 0}, {0, 8, 8}, {0, 0, 3}}) {
        const int64_t member_stride = d + member_gap,
                      row_stride = members * member_stride + row_gap;
        std::vector<double> padded(static_cast<size_t>(first + rows * row_stride), 99);
        std::vector<double> result = padded;
        for (int64_t i = 0; i < rows * members * d; ++i) {
          const auto at = static_cast<size_t>(first + i / (members * d) * row_stride +
                                              i / d % members * member_stride + i % d);
          padded[at] = exact[static_cast<size_t>(i)];
          result[at] = want[static_cast<size_t>(i)];
        }
        Tensor storage =
            upload(context, Dtype::bf16, {static_cast<int64_t>(padded.size())}, padded);
        const TensorView view(static_cast<char*>(storage.data()) + first * 2, Dtype::bf16,
                              {rows, members, d}, Strides{row_stride, member_stride, 1},
                              context.device());
        run(context, {view, view}, p);
        INFO(to_string(context.device()) << " d " << d << " first " << first);
        CHECK(download(context, storage) == result);
      }
    }
  }
}

TEST_CASE("softmax: x and y that lie differently within 16 bytes") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {101, 301}) {
      const std::vector<double> values = test::uniform(6 * d, -4, 4, 6);
      std::vector<double> behind(values);
      behind.insert(behind.begin(), 99);
      Tensor x = upload(context, Dtype::fp16, {2, 3 * d}, values);
      Tensor storage = upload(context, Dtype::fp16, {6 * d + 1}, behind);
      const TensorView moved(static_cast<char*>(storage.data()) + 2, Dtype::fp16, {2, 3 * d},
                             context.device());
      Tensor y(context, Dtype::fp16, {2, 3 * d}), same(context, Dtype::fp16, {2, 3 * d});
      run(context, {x, y}, {.num_members = 3});
      run(context, {moved, same}, {.num_members = 3});
      INFO(to_string(context.device()) << " d " << d);
      CHECK(download(context, same) == download(context, y));
    }
  }
}

TEST_CASE("softmax: empty problems run, and each wrong operand is named") {
  const Context cpu = Context::cpu();
  for (const Shape& shape : {Shape{0, 8}, Shape{4, 0}}) {
    Tensor x(cpu, Dtype::fp32, shape), y(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {x, y}, {.num_members = 2}));
  }
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), few(cpu, Dtype::fp32, {3, 6}),
      half(cpu, Dtype::fp16, {4, 6}), ids(cpu, Dtype::int32, {4, 6});
  const SoftmaxProblem two{.num_members = 2};
  CHECK_THROWS_MATCHES(describe_softmax({x, y}, {.num_members = 5}), Error,
                       Message("softmax: x is [4, 6], expected [.., num_members * features] with "
                               "num_members = 5"));
  CHECK_THROWS_MATCHES(describe_softmax({x, few}, two), Error,
                       Message("softmax: y is [3, 6], expected the rows of x = [4, 6]"));
  CHECK_THROWS_MATCHES(describe_softmax({x, half}, two), Error,
                       Message("softmax: y is fp16, expected dtype = fp32"));
  CHECK_THROWS_MATCHES(describe_softmax({ids, ids}, two), Error,
                       Message("softmax: dtype is int32, expected fp32, fp16 or bf16"));
  CHECK_THROWS_MATCHES(describe_softmax({x.view().narrow(0, 0, 3), x.view().narrow(0, 1, 3)}, two),
                       Error,
                       Message("softmax: y overlaps x, expected x itself or memory of its own"));
  const SoftmaxPlan plan = make_softmax_plan(cpu, describe_softmax({x, y}, two));
  CHECK_THROWS_MATCHES(plan.run({few, few}, {Stream::cpu()}), Error,
                       Message("softmax: the operands' rows is 3, expected the plan's = 4"));
  CHECK_THROWS_AS(make_softmax_plan(cpu, plan.problem(), {"wid"}), Error);
}
