// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/pointwise.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "host/core/wide_strategy.hpp"
#include "host/pointwise/pointwise_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void run(const Context& context, const PointwiseArguments& arguments, const PointwiseProblem& like,
         const std::string& strategy) {
  test::run_plan(context,
                 make_pointwise_plan(context, describe_pointwise(arguments, like), {strategy}),
                 arguments);
}

/// The function of values, in fp32, by both strategies, which must agree to the bit.
std::vector<double> apply(const Context& context, const PointwiseProblem& like,
                          const std::vector<double>& values) {
  const auto count = static_cast<int64_t>(values.size());
  Tensor x = upload(context, Dtype::fp32, {1, count}, values);
  Tensor y(context, Dtype::fp32, {1, count}), again(context, Dtype::fp32, {1, count});
  run(context, {x, {}, y}, like, "wide");
  run(context, {x, {}, again}, like, "sequential");
  const std::vector<double> got = download(context, y), other = download(context, again);
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK((got[i] == other[i] || (std::isnan(got[i]) && std::isnan(other[i]))));
  }
  return got;
}

PointwiseProblem with(PointwiseFunction function) {
  PointwiseProblem problem;
  problem.function = function;
  return problem;
}

constexpr int64_t kCodes = 1 << 16;

Tensor every_code(const Context& context, Dtype dtype) {
  std::vector<uint16_t> codes(kCodes);
  std::iota(codes.begin(), codes.end(), uint16_t{0});
  Tensor tensor(context, dtype, {1, kCodes});
  const OwnedStream stream(context);
  copy(ConstTensorView(codes.data(), dtype, {1, kCodes}, Device{}), tensor, stream.get());
  context.synchronize(stream.get());
  return tensor;
}

/// The first value whose result is not near enough, nor the function's limit at an infinity.
std::string first_wrong(const std::vector<double>& x, const std::vector<double>& got,
                        const std::vector<double>& expected, const std::vector<double>& tolerance) {
  for (size_t i = 0; i < x.size(); ++i) {
    const bool is_right = std::isnan(x[i]) ? std::isnan(got[i])
                          : std::isinf(x[i]) || std::isinf(expected[i])
                              ? got[i] == expected[i]
                              : std::fabs(got[i] - expected[i]) <= tolerance[i];
    if (!is_right) {
      return std::to_string(x[i]) + " gives " + std::to_string(got[i]) + ", expected " +
             std::to_string(expected[i]);
    }
  }
  return "";
}

}  // namespace

TEST_CASE("pointwise: cases worked out by hand") {
  using enum PointwiseFunction;
  const double e = std::exp(1.0);
  const std::vector<std::pair<PointwiseProblem, std::vector<double>>> cases{
      {with(relu), {0, 0, 1, 4}},
      {with(gelu), {-0.158655, 0, 0.841345, 3.999873}},
      {with(gelu_tanh), {-0.158808, 0, 0.841192, 3.99993}},
      {with(silu), {-1 / (1 + e), 0, e / (1 + e), 3.928055}},
      {with(sigmoid), {1 / (1 + e), 0.5, e / (1 + e), 0.982014}},
      {with(tanh), {-0.761594, 0, 0.761594, 0.999329}},
      {{.function = elu, .alpha = 2}, {2 * (1 / e - 1), 0, 1, 4}},
      {{.function = leaky_relu, .slope = 0.25f}, {-0.25, 0, 1, 4}},
      {with(hardswish), {-2.0 / 6, 0, 4.0 / 6, 4}},
      {{.function = softplus, .beta = 2}, {0.0634640, 0.3465736, 1.0634640, 4.0001677}},
      {{.function = clamp, .low = -0.5f, .high = 3}, {-0.5, 0, 1, 3}}};
  for (const Context& context : test::devices_at_hand()) {
    for (const auto& [problem, expected] : cases) {
      const std::vector<double> got = apply(context, problem, {-1, 0, 1, 4});
      for (size_t i = 0; i < expected.size(); ++i) {
        INFO(to_string(context.device())
             << " " << pointwise_function_name(problem.function) << " " << i);
        CHECK(std::fabs(got[i] - expected[i]) < 2e-6);
      }
    }
  }
}

TEST_CASE("pointwise: tails, knees and what is not finite") {
  using enum PointwiseFunction;
  const double inf = static_cast<double>(kInfinity);
  std::vector<double> x{-3.4e38, -200,  -104,       -90,  -88,       -87.4,  -80,    -20,
                        -9,      -5,    -3.0000002, -3,   -1e-3,     -1e-20, -1e-40, -0.0,
                        0.0,     1e-40, 1e-20,      1e-3, 2.9999998, 3,      5,      9,
                        20,      80,    88,         104,  200,       1e19,   3.4e38};
  for (int i = 0; i <= 2000; ++i) x.push_back(i / 62.5 - 16);
  for (const Context& context : test::devices_at_hand()) {
    for (const PointwiseFunction function : kAllPointwiseFunctions) {
      if (function == prelu) continue;
      const PointwiseProblem problem = with(function);
      const std::vector<double> got = apply(context, problem, x);
      std::vector<double> rounded, expected(x.size()), tolerance(x.size());
      for (const double value : x)
        rounded.push_back(static_cast<double>(static_cast<float>(value)));
      catalog::pointwise_reference(problem, rounded, {}, expected, tolerance);
      for (size_t i = 0; i < x.size(); ++i) {
        INFO(to_string(context.device())
             << " " << pointwise_function_name(function) << " of " << x[i] << " is " << got[i]);
        CHECK(std::fabs(got[i] - expected[i]) <= tolerance[i]);
      }
      CHECK(std::isnan(apply(context, problem, {kNan}).front()));
      const double top = apply(context, problem, {inf}).front();
      CHECK(top == (function == sigmoid || function == tanh || function == clamp ? 1 : inf));
    }
    CHECK_FALSE(std::signbit(apply(context, with(relu), {-0.0}).front()));
    // Where beta x overflows, softplus does not.
    PointwiseProblem steep = with(softplus);
    for (const float beta : {3e38f, 1e20f, 4.0f}) {
      steep.beta = beta;
      const auto large = static_cast<double>(3e38f), middle = static_cast<double>(1e19f);
      CHECK(apply(context, steep, {-inf, -large, middle, large, inf}) ==
            std::vector<double>{0, 0, middle, large, inf});
    }
    PointwiseProblem open = with(clamp);
    open.low = -kInfinity;
    CHECK(apply(context, open, {-3e38, 2}) == std::vector<double>{static_cast<double>(-3e38f), 1});
  }
}

TEST_CASE("pointwise: every function of every value of 16 bits") {
  std::vector<double> expected(kCodes), tolerance(kCodes);
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
      const Tensor x = every_code(context, dtype);
      Tensor y(context, dtype, {1, kCodes});
      const std::vector<double> values = download(context, x);
      for (const PointwiseFunction function : kAllPointwiseFunctions) {
        if (function == PointwiseFunction::prelu) continue;  // leaky_relu with an operand's slope
        PointwiseProblem problem = with(function);
        problem.dtype = dtype;
        run(context, {x, {}, y}, problem, "wide");
        catalog::pointwise_reference(problem, values, {}, expected, tolerance);
        const std::vector<double> got = download(context, y);
        INFO(to_string(context.device())
             << " " << pointwise_function_name(function) << " " << dtype_name(dtype));
        CHECK(first_wrong(values, got, expected, tolerance) == "");
      }
      // Nothing but the conversions there and back.
      PointwiseProblem open = with(PointwiseFunction::clamp);
      open.low = -kInfinity, open.high = kInfinity;
      run(context, {x, {}, y}, open, "wide");
      CHECK(first_wrong(values, download(context, y), values, std::vector<double>(kCodes)) == "");
    }
  }
}

TEST_CASE("pointwise: the bound refuses forms that cancel") {
  std::vector<double> expected(1), tolerance(1);
  const auto passes = [&](PointwiseFunction function, double x, float value) {
    catalog::pointwise_reference(with(function), std::vector{x}, {}, expected, tolerance);
    return std::fabs(static_cast<double>(value) - expected[0]) <= tolerance[0];
  };
  const float x = -5;
  CHECK(passes(PointwiseFunction::gelu, -5, 0.5f * x * std::erfc(5 * 0.70710678f)));
  CHECK_FALSE(passes(PointwiseFunction::gelu, -5, 0.5f * x * (1 + std::erf(x * 0.70710678f))));
  // Where the result is x but for rounding: however large x is, no error grows with it.
  for (const auto function :
       {PointwiseFunction::gelu, PointwiseFunction::gelu_tanh, PointwiseFunction::softplus}) {
    CHECK(passes(function, 500, 500 * (1 + 0x1p-21f)));
    CHECK_FALSE(passes(function, 500, 500 * (1 + 0x1p-18f)));
    CHECK_FALSE(passes(function, 500, 0));
  }
  const float small = -1e-4f;
  const double exact = static_cast<double>(small);
  CHECK(passes(PointwiseFunction::elu, exact, std::expm1(small)));
  CHECK_FALSE(passes(PointwiseFunction::elu, exact, std::exp(small) - 1));
}

TEST_CASE("pointwise: what is chosen, and not computed, passes as it is alone") {
  using enum PointwiseFunction;
  std::vector<double> expected(1), tolerance(1);
  const auto bound_of = [&](PointwiseProblem problem, Dtype dtype, double x) {
    problem.dtype = dtype;
    catalog::pointwise_reference(problem, std::vector{x}, {}, expected, tolerance);
    return tolerance[0];
  };
  const double odd = 1 + 0x1p-7, tiny = 0x1p-133;  // the last places of bf16
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    for (const PointwiseFunction function : {relu, leaky_relu, prelu, elu}) {
      for (const double x : {odd, tiny, 0x1.fep127}) {
        INFO(pointwise_function_name(function) << " of " << x);
        CHECK(bound_of(with(function), dtype, x) == 0);
        CHECK(expected[0] == x);
      }
    }
    for (const double x : {-odd, -0.0, 0.0}) CHECK(bound_of(with(relu), dtype, x) == 0);
    for (const double x : {-odd, -tiny, 0.0, odd}) CHECK(bound_of(with(clamp), dtype, x) == 0);
    for (const double x : {-4.0, -3.0}) CHECK(bound_of(with(hardswish), dtype, x) == 0);
    CHECK(bound_of(with(leaky_relu), dtype, -1) > 0);
    CHECK(bound_of(with(elu), dtype, -1) > 0);
    for (const double x : {2.0, 4.0}) CHECK(bound_of(with(hardswish), dtype, x) > 0);
  }
  // A bound that bf16 does not hold is rounded, once.
  PointwiseProblem tenth = with(clamp);
  tenth.high = 0.1f;
  CHECK(bound_of(tenth, Dtype::fp32, 1) == 0);
  CHECK(bound_of(tenth, Dtype::bf16, 1) ==
        0x1p-8 * static_cast<double>(0.1f) + min_subnormal(Dtype::bf16));
  for (const Context& context : test::devices_at_hand()) {
    const Tensor x = upload(context, Dtype::bf16, {1, 3}, {-1, 0.0625, 1});
    Tensor y(context, Dtype::bf16, {1, 3});
    run(context, {x, {}, y}, tenth, "wide");
    const auto nearest = static_cast<double>(bf16_to_float(float_to_bf16(0.1f)));
    CHECK(download(context, y) == std::vector<double>{-1, 0.0625, nearest});
  }
}

TEST_CASE(
    "pointwise: packed, padded, misaligned and member-explicit tensors, slopes of all kinds") {
  using enum PointwiseFunction;
  constexpr int64_t rows = 3, members = 4;
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      for (const int64_t d : {1, 3, 8, 20, 33, 1030}) {
        for (const int64_t num_slopes : {int64_t{0}, int64_t{1}, d}) {
          PointwiseProblem problem = with(num_slopes == 0 ? hardswish : prelu);
          problem.num_members = members;
          const std::vector<double> dense = test::uniform(rows * members * d, -4, 4, 5);
          const int64_t stored = std::max<int64_t>(num_slopes, 1);
          const Tensor slopes =
              upload(context, dtype, {members, stored}, test::uniform(members * stored, -1, 1, 6));
          const ConstTensorView slope =
              num_slopes == 0 ? ConstTensorView() : ConstTensorView(slopes);
          Tensor x = upload(context, dtype, {rows, members * d}, dense);
          Tensor y(context, dtype, {rows, members * d});
          run(context, {x, slope, y}, problem, "wide");
          const std::vector<double> want = download(context, y);
          std::vector<double> expected(static_cast<size_t>(d)), tolerance(expected.size());
          const std::vector<double> exact = download(context, x),
                                    factors = download(context, slopes);
          for (int64_t block = 0; block < rows * members; ++block) {
            const int64_t member = block % members;
            problem.dtype = dtype;
            catalog::pointwise_reference(
                problem, std::span(exact).subspan(static_cast<size_t>(block * d), expected.size()),
                std::span(factors).subspan(static_cast<size_t>(member * num_slopes),
                                           static_cast<size_t>(num_slopes)),
                expected, tolerance);
            for (size_t i = 0; i < expected.size(); ++i) {
              CHECK(std::fabs(want[static_cast<size_t>(block * d) + i] - expected[i]) <=
                    tolerance[i]);
            }
          }
          // In place, in rows with gaps, from an odd address on, members apart.
          for (const auto& [first, row_gap, member_gap] :
               {std::tuple<int64_t, int64_t, int64_t>{1, 0, 0},
                {0, 8, 0},
                {3, 5, 0},
                {0, 8, 8},
                {0, 0, 3}}) {
            const int64_t member_stride = d + member_gap;
            const int64_t row_stride = members * member_stride + row_gap;
            std::vector<double> padded(static_cast<size_t>(first + rows * row_stride), 99);
            std::vector<double> result = padded;
            for (int64_t i = 0; i < rows * members * d; ++i) {
              const auto at = static_cast<size_t>(first + i / (members * d) * row_stride +
                                                  i / d % members * member_stride + i % d);
              padded[at] = exact[static_cast<size_t>(i)];
              result[at] = want[static_cast<size_t>(i)];
            }
            Tensor storage = upload(context, dtype, {static_cast<int64_t>(padded.size())}, padded);
            const TensorView view(static_cast<char*>(storage.data()) + first * dtype_bytes(dtype),
                                  dtype, {rows, members, d}, Strides{row_stride, member_stride, 1},
                                  context.device());
            problem.features = d;
            run(context, {view, slope, view}, problem, "wide");
            INFO(to_string(context.device()) << " d " << d << " slopes " << num_slopes << " first "
                                             << first << " gaps " << row_gap << " " << member_gap);
            CHECK(download(context, storage) == result);
            problem.features = 0;
          }
        }
      }
    }
  }
}

TEST_CASE("pointwise: empty problems run, and weights go there and back") {
  const Context cpu = Context::cpu();
  for (const Shape& shape : {Shape{0, 8}, Shape{4, 0}}) {
    Tensor x(cpu, Dtype::fp32, shape), y(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {x, {}, y}, {.num_members = 2}, "wide"));
  }
  PointwiseProblem problem{.num_members = 2, .rows = 1, .features = 3};
  problem.function = PointwiseFunction::prelu;
  problem.num_slopes = 3;
  const PointwisePlan plan = make_pointwise_plan(cpu, problem);
  const Tensor a = upload(cpu, Dtype::fp32, {3}, {1, 2, 3}),
               b = upload(cpu, Dtype::fp32, {3}, {4, 5, 6});
  Tensor slope(cpu, Dtype::fp32, {2, 3}), c(cpu, Dtype::fp32, {3}), d(cpu, Dtype::fp32, {3});
  const ConstTensorView members[] = {a, b};
  plan.prepare_weights(members, slope, Stream::cpu());
  CHECK(download(cpu, slope) == std::vector<double>{1, 2, 3, 4, 5, 6});
  const TensorView back[] = {c, d};
  plan.restore_weights(slope, back, Stream::cpu());
  CHECK(download(cpu, d) == std::vector<double>{4, 5, 6});
}

TEST_CASE("pointwise: each wrong operand is named, with what was got and expected") {
  using enum PointwiseFunction;
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), few(cpu, Dtype::fp32, {3, 6}),
      slope(cpu, Dtype::fp32, {2, 2}), ints(cpu, Dtype::int32, {4, 6}),
      half(cpu, Dtype::fp16, {2, 3});
  const auto describe = [](const PointwiseArguments& a, PointwiseProblem like,
                           int64_t members = 2) {
    like.num_members = members;
    return describe_pointwise(a, like);
  };
  CHECK_THROWS_MATCHES(describe({x, {}, y}, {}, 5), Error,
                       Message("pointwise: x is [4, 6], expected [.., num_members * features] with "
                               "num_members = 5"));
  CHECK_THROWS_MATCHES(describe({x, {}, few}, {}), Error,
                       Message("pointwise: y is [3, 6], expected the rows of x = [4, 6]"));
  CHECK_THROWS_MATCHES(describe({ints, {}, ints}, {}), Error,
                       Message("pointwise: dtype is int32, expected fp32, fp16 or bf16"));
  CHECK_THROWS_MATCHES(describe({x, slope, y}, {}), Error,
                       Message("pointwise: slope is present, expected none for relu"));
  CHECK_THROWS_MATCHES(describe({x, {}, y}, with(prelu)), Error,
                       Message("pointwise: slope is absent, expected one for prelu"));
  CHECK_THROWS_MATCHES(describe({x, slope, y}, with(prelu)), Error,
                       Message("pointwise: slope is [2, 2], expected [num_members, 1] or "
                               "[num_members, features] = [2, 3]"));
  CHECK_THROWS_MATCHES(describe({x, half, y}, with(prelu)), Error,
                       Message("pointwise: slope is fp16, expected dtype = fp32"));
  CHECK_THROWS_MATCHES(describe({x.view().narrow(0, 0, 3), {}, x.view().narrow(0, 1, 3)}, {}),
                       Error,
                       Message("pointwise: y overlaps x, expected x itself or memory of its own"));
  PointwiseProblem bad{.num_members = 2, .rows = 4, .features = 3};
  bad.beta = 0x1.fffffcp-127f;
  CHECK_THROWS_MATCHES(
      make_pointwise_plan(cpu, bad), Error,
      Message("pointwise: beta is 1.1754942e-38, expected a finite number, 2^-126 or more"));
  bad.beta = 1, bad.low = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(make_pointwise_plan(cpu, bad), Error);
  bad.low = 0, bad.alpha = kInfinity;
  CHECK_THROWS_AS(make_pointwise_plan(cpu, bad), Error);
  bad.alpha = 1, bad.num_slopes = 1;
  CHECK_THROWS_MATCHES(make_pointwise_plan(cpu, bad), Error,
                       Message("pointwise: num_slopes is 1, expected 0: relu has none"));
  const PointwisePlan plan = make_pointwise_plan(cpu, describe({x, {}, y}, {}));
  CHECK_THROWS_MATCHES(plan.run({few, {}, few}, {Stream::cpu()}), Error,
                       Message("pointwise: the operands' rows is 3, expected the plan's = 4"));
  CHECK_THROWS_AS(make_pointwise_plan(cpu, plan.problem(), {"wid"}), Error);
}

TEST_CASE("pointwise: AUTO takes a verified kernel only, and says why") {
  const DeviceInfo& gpu = test::kA100;
  const auto choose = [&](const DeviceInfo& device, bool is_verified) {
    return choose_wide_strategy("pointwise", device, "auto", is_verified);
  };
  CHECK(choose(gpu, true).strategy == WideStrategy::wide);
  CHECK(choose(gpu, false).explain ==
        "sequential: a launch per member of wide, which is unverified on compute capability 80; "
        "no vendor's library can run it");
  CHECK(choose(DeviceInfo{}, false).strategy == WideStrategy::wide);
}
