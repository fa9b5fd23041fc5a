// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/layernorm.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "host/core/wide_strategy.hpp"
#include "host/norm/layernorm_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/known_devices.hpp"
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

void run(const Context& context, const LayernormArguments& arguments, const LayernormProblem& like,
         const std::string& strategy) {
  test::run_plan(context,
                 make_layernorm_plan(context, describe_layernorm(arguments, like), {strategy}),
                 arguments);
}

/// Worst error over tolerance of packed rows; infinite for a NaN.
double worst_ratio(const std::vector<double>& x, const std::vector<double>& gamma,
                   const std::vector<double>& beta, const std::vector<double>& y,
                   const LayernormProblem& p) {
  const auto d = static_cast<size_t>(p.features), n = static_cast<size_t>(p.num_members);
  std::vector<double> expected(d), tolerance(d);
  double worst = 0;
  for (size_t block = 0; block < x.size() / d; ++block) {
    const size_t member = block % n;
    const auto part = [&](const std::vector<double>& from) {
      return from.empty() ? std::span<const double>() : std::span(from).subspan(member * d, d);
    };
    catalog::layernorm_reference(p, std::span(x).subspan(block * d, d), part(gamma), part(beta),
                                 expected, tolerance);
    for (size_t i = 0; i < d; ++i) {
      worst = test::worse_ratio(worst, y[block * d + i], expected[i], tolerance[i]);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("layernorm: a case worked out by hand") {
  for (const Context& context : test::devices_at_hand()) {
    // Rows (1, 3) and (10, 10): means 2 and 10, variances 1 and 0; epsilon 0 is legal with the
    // first.
    Tensor x = upload(context, Dtype::fp32, {1, 4}, {1, 3, 10, 10});
    Tensor gamma = upload(context, Dtype::fp32, {2, 2}, {2, 4, 1, 1});
    Tensor beta = upload(context, Dtype::fp32, {2, 2}, {0.5, 0.5, 7, 8});
    Tensor y(context, Dtype::fp32, {1, 4});
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      run(context, {x, gamma, beta, y}, {.epsilon = 0x1p-20f}, strategy);
      const std::vector<double> got = download(context, y);
      CHECK(std::fabs(got[0] - (-1.5)) < 1e-5);
      CHECK(std::fabs(got[1] - 4.5) < 1e-5);
      CHECK(got[2] == 7);  // a constant row gives beta exactly
      CHECK(got[3] == 8);
    }
  }
}

TEST_CASE("layernorm: without parameters, members may stand on an axis of their own") {
  for (const Context& context : test::devices_at_hand()) {
    Tensor x = upload(context, Dtype::fp32, {1, 2, 4}, {1, 1, 3, 3, 10, 30, 30, 10});
    Tensor y(context, Dtype::fp32, {1, 2, 4});
    for (const char* strategy : {"sequential", "wide"}) {
      run(context, {x, {}, {}, y}, {.num_members = 2, .features = 4, .epsilon = 0x1p-20f},
          strategy);
      const std::vector<double> got = download(context, y);
      for (const size_t i : {0, 1, 4, 7}) CHECK(std::fabs(got[i] + 1) < 1e-5);
      for (const size_t i : {2, 3, 5, 6}) CHECK(std::fabs(got[i] - 1) < 1e-5);
    }
  }
}

TEST_CASE("layernorm: a row has the same bits among few as among many") {
  constexpr int64_t kMany = 8200, kFew = 9;  // in blocks of four warps, and of one
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {33, 64}) {
      const LayernormProblem p{.num_members = 1, .rows = kMany, .features = d};
      const std::vector<double> values = uniform(kMany * d, -1, 1, 1);
      const std::vector<double> last(values.end() - kFew * d, values.end());
      Tensor x = upload(context, Dtype::fp32, {kMany, d}, values);
      Tensor few = upload(context, Dtype::fp32, {kFew, d}, last);
      Tensor y(context, Dtype::fp32, {kMany, d}), of_few(context, Dtype::fp32, {kFew, d});
      run(context, {x, {}, {}, y}, {.num_members = 1}, "wide");
      run(context, {few, {}, {}, of_few}, {.num_members = 1}, "wide");
      const std::vector<double> got = download(context, y);
      INFO(to_string(context.device()) << " d " << d);
      CHECK(worst_ratio(download(context, x), {}, {}, got, p) <= 1);
      CHECK(std::vector<double>(got.end() - kFew * d, got.end()) == download(context, of_few));
    }
  }
}

TEST_CASE("layernorm: every path, dtype and odd size stays within its bound, whatever the offset") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t d : {1,   3,   7,   31,   33,   64,   72,   128,  129,   255,
                            257, 512, 513, 1000, 1024, 1025, 4097, 8200, 12200, 17000}) {
      if (test::wants_small_cases() && d > 4097) continue;
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        for (const double offset : {0.0, 100.0, 1000.0}) {
          LayernormProblem p{.num_members = 3, .rows = 2, .features = d, .dtype = dtype};
          const int64_t count = 6 * d;
          Tensor x = upload(context, dtype, {2, 3 * d}, uniform(count, offset - 1, offset + 1, 1));
          Tensor gamma = upload(context, dtype, {3, d}, uniform(3 * d, -1, 1, 2));
          Tensor beta = upload(context, dtype, {3, d}, uniform(3 * d, -1, 1, 3));
          Tensor y(context, dtype, {2, 3 * d});
          for (const char* strategy : {"sequential", "wide"}) {
            run(context, {x, gamma, beta, y}, p, strategy);
            INFO(to_string(context.device()) << " " << strategy << " " << dtype_name(dtype) << " d "
                                             << d << " offset " << offset);
            CHECK(worst_ratio(download(context, x), download(context, gamma),
                              download(context, beta), download(context, y), p) <= 1);
          }
        }
      }
    }
  }
}

TEST_CASE("layernorm: what is added up in stretches is the whole row") {
  constexpr int64_t d = (1 << 21) + 7;  // a thread of a long row ends two stretches of 4096 terms
  for (const Context& context : test::devices_at_hand()) {
    const LayernormProblem p{.num_members = 1, .rows = 1, .features = d};
    Tensor x = upload(context, Dtype::fp32, {1, d}, uniform(d, 1, 3, 1));
    Tensor y(context, Dtype::fp32, {1, d});
    run(context, {x, {}, {}, y}, p, "wide");
    INFO(to_string(context.device()));
    CHECK(worst_ratio(download(context, x), {}, {}, download(context, y), p) <= 1);
  }
}

TEST_CASE("layernorm: the bound is tight enough to refuse one-pass statistics") {
  std::vector<double> x = uniform(256, 999, 1001, 4);
  for (double& value : x) value = static_cast<double>(static_cast<float>(value));
  float sum = 0, squares = 0;
  for (const double value : x) {
    const auto v = static_cast<float>(value);
    sum += v;
    squares += v * v;
  }
  const float mean = sum / 256.0f, variance = squares / 256.0f - mean * mean;
  std::vector<double> y;
  for (const double value : x)
    y.push_back(static_cast<double>((static_cast<float>(value) - mean) /
                                    std::sqrt(std::max(variance, 0.0f) + 1e-5f)));
  CHECK_FALSE(worst_ratio(x, {}, {}, y, {.num_members = 1, .rows = 1, .features = 256}) <= 1);
}

TEST_CASE("layernorm: the bound refuses a variance of one value less, and a lost epsilon") {
  const LayernormProblem p{.num_members = 1, .rows = 1, .features = 256};
  const std::vector<double> x = test::uniform_fp32(256, -1, 1, 4);
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / 256;
  const auto ratio = [&](double count, double epsilon) {
    return worst_ratio(x, {}, {}, test::normalised(x, mean, count, epsilon), p);
  };
  const auto epsilon = static_cast<double>(p.epsilon);
  CHECK(ratio(256, epsilon) <= 1);
  CHECK_FALSE(ratio(255, epsilon) <= 1);
  CHECK_FALSE(ratio(256, 0) <= 1);
}

TEST_CASE("layernorm: in place, strided, misaligned and without gamma and beta") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t n = 3, d = 20, rows = 4, row_stride = 70;
    LayernormProblem p{
        .num_members = n, .rows = rows, .features = d, .has_gamma = false, .has_beta = false};
    const std::vector<double> dense = uniform(rows * n * d, -1, 1, 5);
    Tensor plain = upload(context, Dtype::fp32, {rows, n * d}, dense);
    Tensor expected(context, Dtype::fp32, {rows, n * d});
    run(context, {plain, {}, {}, expected}, p, "wide");
    std::vector<double> padded(static_cast<size_t>(1 + rows * row_stride), 99);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < n * d; ++i)
        padded[static_cast<size_t>(1 + r * row_stride + i)] =
            dense[static_cast<size_t>(r * n * d + i)];
    }
    Tensor storage = upload(context, Dtype::fp32, {1 + rows * row_stride}, padded);
    const TensorView view(static_cast<float*>(storage.data()) + 1, Dtype::fp32, {rows, n * d},
                          Strides{row_stride, 1}, context.device());
    run(context, {view, {}, {}, view}, p, "wide");
    const std::vector<double> got = download(context, storage), want = download(context, expected);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0;
           i < row_stride && 1 + r * row_stride + i < static_cast<int64_t>(got.size()); ++i) {
        const double value = got[static_cast<size_t>(1 + r * row_stride + i)];
        CHECK(value == (i < n * d ? want[static_cast<size_t>(r * n * d + i)] : 99));
      }
    }
  }
}

TEST_CASE("layernorm: empty problems run") {
  const Context cpu = Context::cpu();
  for (const Shape& shape : {Shape{0, 8}, Shape{4, 0}}) {
    Tensor x(cpu, Dtype::fp32, shape), y(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {x, {}, {}, y}, {.num_members = 2}, "wide"));
  }
}

TEST_CASE("layernorm: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), gamma(cpu, Dtype::fp32, {2, 3}),
      beta(cpu, Dtype::fp32, {2, 3});
  Tensor flat(cpu, Dtype::fp32, {6}), wide_beta(cpu, Dtype::fp32, {2, 4}),
      half(cpu, Dtype::fp16, {2, 3}), few(cpu, Dtype::fp32, {3, 6});
  Tensor ints(cpu, Dtype::int32, {4, 6});
  CHECK_THROWS_MATCHES(describe_layernorm({x, flat, beta, y}), Error,
                       Message("layernorm: gamma is [6], expected [num_members, features]"));
  CHECK_THROWS_MATCHES(
      describe_layernorm({x, gamma, wide_beta, y}), Error,
      Message("layernorm: beta is [2, 4], expected [num_members, features] = [2, 3]"));
  CHECK_THROWS_MATCHES(describe_layernorm({x, half, beta, y}), Error,
                       Message("layernorm: gamma is fp16, expected dtype = fp32"));
  CHECK_THROWS_MATCHES(describe_layernorm({x, gamma, beta, few}), Error,
                       Message("layernorm: y is [3, 6], expected the rows of x = [4, 6]"));
  CHECK_THROWS_MATCHES(describe_layernorm({ints, {}, {}, ints}, {.num_members = 2}), Error,
                       Message("layernorm: dtype is int32, expected fp32, fp16 or bf16"));
  CHECK_THROWS_MATCHES(
      describe_layernorm({x, {}, {}, y}, {.num_members = 4}), Error,
      Message(
          "layernorm: x is [4, 6], expected [.., num_members * features] with num_members = 4"));
  CHECK_THROWS_AS(describe_layernorm({x, gamma, beta, x.view().narrow(0, 1, 3)}), Error);
  const LayernormProblem p = describe_layernorm({x, gamma, beta, y});
  LayernormProblem bad = p;
  bad.epsilon = -1;
  CHECK_THROWS_AS(make_layernorm_plan(cpu, bad), Error);
  bad.epsilon = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(make_layernorm_plan(cpu, bad), Error);
  CHECK_THROWS_AS(make_layernorm_plan(cpu, p, {"wid"}), Error);
  CHECK_THROWS_MATCHES(make_layernorm_plan(cpu, p).run({x, gamma, {}, y}, {Stream::cpu()}), Error,
                       Message("layernorm: beta is absent, expected one as in the plan's problem"));
}

TEST_CASE("layernorm: AUTO takes a verified kernel only, and says why") {
  const DeviceInfo& gpu = test::kA100;
  CHECK(choose_wide_strategy("layernorm", gpu, "auto", true).strategy == WideStrategy::wide);
  CHECK(choose_wide_strategy("layernorm", gpu, "auto", false).explain ==
        "sequential: a launch per member of wide, which is unverified on compute capability 80; "
        "no vendor's library can run it");
  CHECK(choose_wide_strategy("layernorm", gpu, "sequential", false).explain ==
        "sequential: asked for by name; a launch per member of wide, which is unverified on "
        "compute capability 80");
  CHECK(choose_wide_strategy("layernorm", gpu, "sequential", true).explain ==
        "sequential: asked for by name; a launch per member of wide");
  CHECK(choose_wide_strategy("layernorm", gpu, "wide", false).explain ==
        "wide: asked for by name; unverified on compute capability 80");
  CHECK(choose_wide_strategy("layernorm", DeviceInfo{}, "sequential", false).explain ==
        "sequential: asked for by name");
  CHECK(choose_wide_strategy("layernorm", DeviceInfo{}, "auto", false).strategy ==
        WideStrategy::wide);
}
