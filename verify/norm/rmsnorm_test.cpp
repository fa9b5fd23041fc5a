// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/rmsnorm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/norm/rmsnorm_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/normalised.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download;
using test::uniform;
using test::upload;

namespace {

void run(const Context& context, const RmsnormArguments& arguments, const RmsnormProblem& like,
         const std::string& strategy) {
  test::run_plan(context, make_rmsnorm_plan(context, describe_rmsnorm(arguments, like), {strategy}),
                 arguments);
}

/// Worst error over tolerance of packed rows; infinite for a NaN.
double worst_ratio(const std::vector<double>& x, const std::vector<double>& gamma,
                   const std::vector<double>& y, const RmsnormProblem& p) {
  const auto d = static_cast<size_t>(p.features), n = static_cast<size_t>(p.num_members);
  std::vector<double> expected(d), tolerance(d);
  double worst = 0;
  for (size_t block = 0; block < x.size() / d; ++block) {
    catalog::rmsnorm_reference(p, std::span(x).subspan(block * d, d),
                               std::span(gamma).subspan(block % n * d, d), expected, tolerance);
    for (size_t i = 0; i < d; ++i)
      worst = test::worse_ratio(worst, y[block * d + i], expected[i], tolerance[i]);
  }
  return worst;
}

}  // namespace

TEST_CASE("rmsnorm: a case worked out by hand") {
  for (const Context& context : test::devices_at_hand()) {
    // Rows (1, 7) and (0, 0): mean squares 25 and 0; with epsilon 1/4 the second stays 0.
    Tensor x = upload(context, Dtype::fp32, {1, 4}, {1, 7, 0, 0});
    Tensor gamma = upload(context, Dtype::fp32, {2, 2}, {10, 20, 1, 1});
    Tensor y(context, Dtype::fp32, {1, 4});
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      run(context, {x, gamma, y}, {.epsilon = 0.25f}, strategy);
      const std::vector<double> got = download(context, y);
      CHECK(std::fabs(got[0] - 10 / std::sqrt(25.25)) < 1e-6);
      CHECK(std::fabs(got[1] - 140 / std::sqrt(25.25)) < 1e-5);
      CHECK((got[2] == 0 && got[3] == 0));
      run(context, {x, {}, y}, {.num_members = 2, .epsilon = 0.25f}, strategy);
      CHECK(std::fabs(download(context, y)[1] - 7 / std::sqrt(25.25)) < 1e-6);
    }
  }
}

TEST_CASE("rmsnorm: every path, dtype and odd size stays within its bound") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {1, 3, 31, 33, 255, 257, 1000, 1024, 1025, 4097, 8200, 17000}) {
      if (test::wants_small_cases() && d > 4097) continue;
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        for (const double offset : {0.0, 100.0}) {
          const RmsnormProblem p{.num_members = 3, .rows = 2, .features = d, .dtype = dtype};
          Tensor x = upload(context, dtype, {2, 3 * d}, uniform(6 * d, offset - 1, offset + 1, 1));
          Tensor gamma = upload(context, dtype, {3, d}, uniform(3 * d, -1, 1, 2));
          Tensor y(context, dtype, {2, 3 * d});
          for (const char* strategy : {"sequential", "wide"}) {
            run(context, {x, gamma, y}, p, strategy);
            INFO(to_string(context.device()) << " " << strategy << " " << dtype_name(dtype) << " d "
                                             << d << " offset " << offset);
            CHECK(worst_ratio(download(context, x), download(context, gamma), download(context, y),
                              p) <= 1);
          }
        }
      }
    }
  }
}

TEST_CASE("rmsnorm: the bound refuses a mean of one value less, and a lost epsilon") {
  const RmsnormProblem p{.num_members = 1, .rows = 1, .features = 256};
  const std::vector<double> x = test::uniform_fp32(256, -1, 1, 4), gamma(256, 1.0);
  const auto ratio = [&](double count, double epsilon) {
    return worst_ratio(x, gamma, test::normalised(x, 0, count, epsilon), p);
  };
  const auto epsilon = static_cast<double>(p.epsilon);
  CHECK(ratio(256, epsilon) <= 1);
  CHECK_FALSE(ratio(255, epsilon) <= 1);
  CHECK_FALSE(ratio(256, 0) <= 1);
}

TEST_CASE("rmsnorm: one NaN makes its row NaN, and no other") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {7, 300, 1030}) {
      std::vector<double> values = uniform(3 * d, -1, 1, 3);
      values[static_cast<size_t>(d + 2)] = std::numeric_limits<double>::quiet_NaN();
      Tensor x = upload(context, Dtype::fp32, {3, d}, values), y(context, Dtype::fp32, {3, d});
      run(context, {x, {}, y}, {}, "wide");
      const std::vector<double> got = download(context, y);
      for (size_t i = 0; i < got.size(); ++i) {
        CHECK(std::isnan(got[i]) == (i / static_cast<size_t>(d) == 1));
      }
    }
  }
}

TEST_CASE("rmsnorm: in place, strided and misaligned: the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t n = 3, d = 20, rows = 4, stride = 70;
    const RmsnormProblem p{.num_members = n};
    const std::vector<double> dense = uniform(rows * n * d, -1, 1, 5);
    Tensor plain = upload(context, Dtype::fp32, {rows, n * d}, dense);
    Tensor expected(context, Dtype::fp32, {rows, n * d});
    run(context, {plain, {}, expected}, p, "wide");
    std::vector<double> padded(static_cast<size_t>(1 + rows * stride), 99);
    const auto place = [&](size_t i) {
      const auto at = static_cast<int64_t>(i);
      return static_cast<size_t>(1 + at / (n * d) * stride + at % (n * d));
    };
    for (size_t i = 0; i < dense.size(); ++i) padded[place(i)] = dense[i];
    Tensor storage = upload(context, Dtype::fp32, {1 + rows * stride}, padded);
    const TensorView view(static_cast<float*>(storage.data()) + 1, Dtype::fp32, {rows, n * d},
                          Strides{stride, 1}, context.device());
    run(context, {view, {}, view}, p, "wide");
    const std::vector<double> got = download(context, storage), want = download(context, expected);
    for (size_t i = 0; i < dense.size(); ++i) padded[place(i)] = want[i];
    CHECK(got == padded);  // the gaps are as they were
  }
}

TEST_CASE("rmsnorm: weights are packed and restored, empty problems run") {
  const Context cpu = Context::cpu();
  const RmsnormPlan plan = make_rmsnorm_plan(cpu, {.num_members = 2, .rows = 1, .features = 3});
  Tensor a = upload(cpu, Dtype::fp32, {3}, {1, 2, 3}), b = upload(cpu, Dtype::fp32, {3}, {4, 5, 6});
  Tensor gamma(cpu, Dtype::fp32, {2, 3}), c(cpu, Dtype::fp32, {3}), d(cpu, Dtype::fp32, {3});
  plan.prepare_weights(std::vector<ConstTensorView>{a, b}, gamma, Stream::cpu());
  CHECK(download(cpu, gamma) == std::vector<double>{1, 2, 3, 4, 5, 6});
  plan.restore_weights(gamma, std::vector<TensorView>{c, d}, Stream::cpu());
  CHECK(download(cpu, d) == download(cpu, b));
  for (const Shape& shape : {Shape{0, 8}, Shape{4, 0}}) {
    Tensor x(cpu, Dtype::fp32, shape), y(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {x, {}, y}, {.num_members = 2}, "wide"));
  }
}

TEST_CASE("rmsnorm: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), gamma(cpu, Dtype::fp32, {2, 3}),
      flat(cpu, Dtype::fp32, {6}), half(cpu, Dtype::fp16, {2, 3}), few(cpu, Dtype::fp32, {3, 6});
  const auto refuses = [&](const RmsnormArguments& a, const char* message) {
    CHECK_THROWS_MATCHES(describe_rmsnorm(a), Error, Message(message));
  };
  refuses({x, flat, y}, "rmsnorm: gamma is [6], expected [num_members, features]");
  refuses({x, half, y}, "rmsnorm: gamma is fp16, expected dtype = fp32");
  refuses({x, gamma, few}, "rmsnorm: y is [3, 6], expected the rows of x = [4, 6]");
  CHECK_THROWS_AS(describe_rmsnorm({x, gamma, x.view().narrow(0, 1, 3)}), Error);
  const RmsnormProblem p = describe_rmsnorm({x, gamma, y});
  RmsnormProblem bad = p;
  bad.epsilon = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(make_rmsnorm_plan(cpu, bad), Error);
  CHECK_THROWS_AS(make_rmsnorm_plan(cpu, p, {"wid"}), Error);
  CHECK_THROWS_MATCHES(make_rmsnorm_plan(cpu, p).run({x, {}, y}, {Stream::cpu()}), Error,
                       Message("rmsnorm: gamma is absent, expected one as in the plan's problem"));
}
