// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/binary.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "host/pointwise/binary_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"
#include "wide/linear.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void run(const Context& context, const BinaryArguments& arguments, const BinaryProblem& like,
         const std::string& strategy = "wide") {
  test::run_plan(context, make_binary_plan(context, describe_binary(arguments, like), {strategy}),
                 arguments);
}

/// Members of the second operand's packed tensor.
Shape other_shape(Broadcast broadcast, int64_t rows, int64_t members, int64_t features) {
  switch (broadcast) {
    case Broadcast::none:
      return {rows, members * features};
    case Broadcast::rows:
      return {members, features};
    case Broadcast::features:
      return {members};
    case Broadcast::members:
      return {1};
  }
  return {};
}

/// The whole of y by the reference, and whether `got` is within its bound.
bool is_right(const BinaryProblem& p, const std::vector<double>& x,
              const std::vector<double>& other, const std::vector<double>& got) {
  const auto d = static_cast<size_t>(p.features);
  std::vector<double> y(d), tolerance(d);
  double worst = 0;
  for (size_t block = 0; block < x.size() / d; ++block) {
    const size_t member = block % static_cast<size_t>(p.num_members);
    const std::span all(other);
    const auto own = p.broadcast == Broadcast::none       ? all.subspan(block * d, d)
                     : p.broadcast == Broadcast::rows     ? all.subspan(member * d, d)
                     : p.broadcast == Broadcast::features ? all.subspan(member, 1)
                                                          : all;
    catalog::binary_reference(p, std::span(x).subspan(block * d, d), own, y, tolerance);
    for (size_t i = 0; i < d; ++i) {
      worst = test::worse_ratio(worst, got[block * d + i], y[i], tolerance[i]);
    }
  }
  return worst <= 1;
}

}  // namespace

TEST_CASE("binary: cases worked out by hand") {
  using enum BinaryFunction;
  struct Worked {
    BinaryFunction function;
    Broadcast broadcast;
    std::vector<double> expected;
  };
  // Two rows of two members of two features: 1 2 | 3 4, then 5 6 | 7 8.
  const std::vector<Worked> cases{{add, Broadcast::none, {2, 4, 7, 12, 21, 38, 71, 136}},
                                  {subtract, Broadcast::rows, {0, 0, -1, -4, 4, 4, 3, 0}},
                                  {multiply, Broadcast::features, {1, 2, 6, 8, 5, 6, 14, 16}},
                                  {divide, Broadcast::members, {1, 2, 3, 4, 5, 6, 7, 8}}};
  for (const Context& context : test::devices_at_hand()) {
    Tensor x = upload(context, Dtype::fp32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
    Tensor y(context, Dtype::fp32, {2, 4});
    for (const Worked& worked : cases) {
      const Shape shape = other_shape(worked.broadcast, 2, 2, 2);
      std::vector<double> powers;
      for (int64_t i = 0; i < num_elements(shape); ++i) powers.push_back(std::exp2(i));
      Tensor other = upload(context, Dtype::fp32, shape, powers);
      BinaryProblem like{.num_members = 2};
      like.function = worked.function;
      like.broadcast = worked.broadcast;
      for (const char* strategy : {"sequential", "wide", "auto"}) {
        run(context, {x, other, y}, like, strategy);
        INFO(to_string(context.device())
             << " " << binary_function_name(worked.function) << " " << strategy);
        CHECK(download(context, y) == worked.expected);
      }
    }
  }
}

TEST_CASE("binary: zeros, infinities and NaN, and activations of them") {
  for (const Context& context : test::devices_at_hand()) {
    Tensor x = upload(context, Dtype::fp32, {1, 6}, {1, 0, -1, kInfinity, kNan, -0.0});
    Tensor other = upload(context, Dtype::fp32, {1, 6}, {0, 0, 0, kInfinity, 1, -0.0});
    Tensor y(context, Dtype::fp32, {1, 6});
    BinaryProblem like;
    like.function = BinaryFunction::divide;
    run(context, {x, other, y}, like);
    std::vector<double> got = download(context, y);
    CHECK(got[0] == kInfinity);
    CHECK(got[2] == -kInfinity);
    for (const size_t i : {1, 3, 4, 5}) CHECK(std::isnan(got[i]));
    like.function = BinaryFunction::add;
    run(context, {x, other, y}, like);
    CHECK(std::signbit(download(context, y)[5]));
    like.activation = Activation::relu;
    run(context, {x, other, y}, like);
    got = download(context, y);
    CHECK(got[2] == 0);
    CHECK_FALSE(std::signbit(got[5]));
    CHECK(std::isnan(got[4]));
  }
}

TEST_CASE("binary: packed, padded, misaligned, member-explicit, in place, broadcast") {
  constexpr int64_t rows = 5, members = 3;
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      for (const int64_t d : {1, 8, 20, 33, 520}) {
        if (test::wants_small_cases() && d == 520) continue;
        for (const Broadcast broadcast : kAllBroadcasts) {
          BinaryProblem problem{.num_members = members, .rows = rows, .features = d};
          problem.broadcast = broadcast;
          problem.dtype = dtype;
          const Shape shape = other_shape(broadcast, rows, members, d);
          Tensor x = upload(context, dtype, {rows, members * d},
                            test::uniform(rows * members * d, -4, 4, 5));
          Tensor other =
              upload(context, dtype, shape, test::uniform(num_elements(shape), 0.5, 2, 6));
          Tensor y(context, dtype, {rows, members * d});
          run(context, {x, other, y}, problem);
          const std::vector<double> exact = download(context, x), want = download(context, y);
          INFO(to_string(context.device())
               << " " << dtype_name(dtype) << " d " << d << " " << broadcast_name(broadcast));
          CHECK(is_right(problem, exact, download(context, other), want));
          for (const auto& [first, row_gap, member_gap] :
               {std::tuple<int64_t, int64_t, int64_t>{1, 0, 0}, {0, 8, 0}, {3, 5, 0}, {0, 8, 8}}) {
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
            const auto stored = static_cast<int64_t>(padded.size());
            Tensor storage = upload(context, dtype, {stored}, padded);
            const TensorView view(static_cast<char*>(storage.data()) + first * dtype_bytes(dtype),
                                  dtype, {rows, members, d}, Strides{row_stride, member_stride, 1},
                                  context.device());
            run(context, {view, other, view}, problem);
            INFO("first " << first << " gaps " << row_gap << " " << member_gap);
            CHECK(download(context, storage) == result);
          }
          if (broadcast == Broadcast::none) {
            run(context, {x, other, other}, problem);
            CHECK(download(context, other) == want);
          }
        }
      }
    }
  }
}

TEST_CASE("binary: every function and activation is within its bound, which is tight") {
  for (const Context& context : test::devices_at_hand()) {
    for (const BinaryFunction function : kAllBinaryFunctions) {
      for (const Activation activation : kAllActivations) {
        BinaryProblem p{.rows = 4, .features = 250};
        p.function = function;
        p.activation = activation;
        Tensor x = upload(context, Dtype::fp32, {4, 250}, test::uniform(1000, -9, 9, 1));
        Tensor other = upload(context, Dtype::fp32, {4, 250}, test::uniform(1000, -2, 2, 2));
        Tensor y(context, Dtype::fp32, {4, 250});
        run(context, {x, other, y}, p);
        INFO(binary_function_name(function) << " " << activation_name(activation));
        CHECK(is_right(p, download(context, x), download(context, other), download(context, y)));
      }
    }
  }
  BinaryProblem third{.rows = 1, .features = 1};
  third.function = BinaryFunction::divide;
  const float quotient = 1.0f / 3.0f;
  CHECK(is_right(third, {1}, {3}, {static_cast<double>(quotient)}));
  CHECK_FALSE(is_right(third, {1}, {3}, {static_cast<double>(std::nextafter(quotient, 1.0f))}));
}

TEST_CASE("binary: a product with a transposed right side is linear's") {
  // a [N, B, M, K], b [N, B, K', K]: N*B members of linear, whose rows lie behind one another.
  constexpr int64_t products = 2 * 3, m = 4, k = 5, n = 7;
  for (const Context& context : test::devices_at_hand()) {
    const std::vector<double> left = test::uniform(products * m * k, -1, 1, 1),
                              right = test::uniform(products * n * k, -1, 1, 2);
    Tensor a = upload(context, Dtype::fp32, {products * m, k}, left);
    Tensor b = upload(context, Dtype::fp32, {products, n, k}, right);
    Tensor y(context, Dtype::fp32, {products * m, n});
    const auto matrices = [&](Tensor& tensor, int64_t columns) {
      return TensorView(tensor.data(), Dtype::fp32, {m, products, columns},
                        Strides{columns, m * columns, 1}, context.device());
    };
    const LinearArguments arguments{
        .x = matrices(a, k), .weight = b, .bias = {}, .y = matrices(y, n)};
    const OwnedStream stream(context);
    const bool is_cpu = context.device().type == DeviceType::cpu;
    make_linear_plan(context, describe_linear(arguments), {.strategy = is_cpu ? "wide" : "simt"})
        .run(arguments, {stream.get()});
    context.synchronize(stream.get());
    const std::vector<double> got = download(context, y);
    for (int64_t i = 0; i < products * m * n; ++i) {
      const int64_t row = i / n, column = row / m * n + i % n;
      double sum = 0;
      for (int64_t j = 0; j < k; ++j) {
        sum += left[static_cast<size_t>(row * k + j)] * right[static_cast<size_t>(column * k + j)];
      }
      CHECK(std::fabs(got[static_cast<size_t>(i)] - sum) < 1e-6);
    }
  }
}

TEST_CASE("binary: empty problems run, and each wrong operand is named") {
  const Context cpu = Context::cpu();
  for (const Shape& shape : {Shape{0, 8}, Shape{4, 0}}) {
    Tensor x(cpu, Dtype::fp32, shape), y(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {x, x, y}, {.num_members = 2}));
  }
  Tensor x(cpu, Dtype::fp32, {4, 6}), y(cpu, Dtype::fp32, {4, 6}), few(cpu, Dtype::fp32, {3, 6}),
      half(cpu, Dtype::fp16, {4, 6}), two(cpu, Dtype::fp32, {2});
  const auto describe = [](const BinaryArguments& a, Broadcast broadcast) {
    BinaryProblem like{.num_members = 2};
    like.broadcast = broadcast;
    return describe_binary(a, like);
  };
  using enum Broadcast;
  CHECK_THROWS_MATCHES(describe({x, few, y}, none), Error,
                       Message("binary: other is [3, 6], expected the rows of x: 4"));
  CHECK_THROWS_MATCHES(describe({x, two, y}, rows), Error,
                       Message("binary: other is [2], expected [num_members, features] = [2, 3]"));
  CHECK_THROWS_MATCHES(describe({x, few, y}, features), Error,
                       Message("binary: other is [3, 6], expected [num_members] = [2]"));
  CHECK_THROWS_MATCHES(describe({x, two, y}, members), Error,
                       Message("binary: other is [2], expected [1], of all members = [1]"));
  CHECK_THROWS_MATCHES(describe({x, half, y}, none), Error,
                       Message("binary: other is fp16, expected dtype = fp32"));
  CHECK_THROWS_MATCHES(
      describe({x, TensorView(two.data(), Dtype::fp32, {2}, Strides{0}, Device{}), y}, features),
      Error,
      Message("binary: other has strides [0], expected members of their own: a first stride above "
              "0"));
  Tensor long_storage(cpu, Dtype::fp32, {5, 6});
  CHECK_THROWS_MATCHES(
      describe({x, long_storage.view().narrow(0, 0, 4), long_storage.view().narrow(0, 1, 4)}, none),
      Error, Message("binary: y overlaps other, expected other itself or memory of its own"));
  BinaryProblem bad{.num_members = 2, .rows = 4, .features = 3};
  bad.broadcast = rows;
  bad.other.row = 3;
  CHECK_THROWS_MATCHES(
      make_binary_plan(cpu, bad), Error,
      Message("binary: other's row stride is 3, expected 0: it is broadcast along rows"));
  bad.broadcast = members;
  bad.other = {0, 1};
  CHECK_THROWS_MATCHES(
      make_binary_plan(cpu, bad), Error,
      Message("binary: other's member stride is 1, expected 0: it is broadcast along members"));
  bad = {.num_members = 2, .rows = -1, .features = 3};
  CHECK_THROWS_MATCHES(make_binary_plan(cpu, bad), Error,
                       Message("binary: rows is -1, expected >= 0"));
  CHECK_THROWS_MATCHES(
      describe({x, TensorView(x.data(), Dtype::fp32, {2, 3}, Strides{12, 2}, Device{}), y}, rows),
      Error, Message("binary: other has strides [12, 2], expected a last stride of 1"));
  const auto elsewhere = [](Tensor& tensor) {
    return TensorView(tensor.data(), tensor.dtype(), tensor.shape(), Device{DeviceType::cuda, 0});
  };
  CHECK_THROWS_MATCHES(describe({x, elsewhere(y), y}, none), Error,
                       Message("binary: other is on cuda:0, expected the plan's device = cpu"));
  const BinaryPlan plan = make_binary_plan(cpu, describe({x, y, y}, none));
  CHECK_THROWS_MATCHES(plan.run({elsewhere(x), elsewhere(y), elsewhere(y)}, {Stream::cpu()}), Error,
                       Message("binary: y is on cuda:0, expected the plan's device = cpu"));
  Tensor spread(cpu, Dtype::fp32, {4, 7});
  const TensorView apart(spread.data(), Dtype::fp32, {4, 6}, Strides{7, 1}, Device{});
  CHECK_THROWS_MATCHES(plan.run({x, apart, y}, {Stream::cpu()}), Error,
                       Message("binary: the operands' stride of other is {row 7, member 3}, "
                               "expected the plan's = {row 6, member 3}"));
  CHECK_THROWS_MATCHES(plan.run({few, few, few}, {Stream::cpu()}), Error,
                       Message("binary: the operands' rows is 3, expected the plan's = 4"));
  CHECK_THROWS_AS(make_binary_plan(cpu, plan.problem(), {"wid"}), Error);
}
