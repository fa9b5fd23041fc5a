// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Channels of one position are columns of a matrix, which blocks take in tiles of a width and by a
// way that hang on where rows begin and how many columns there are: none of it may change a bit, or
// write between rows.
#include <catch2/catch_test_macros.hpp>
#include <utility>

#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/batchnorm.hpp"

using namespace wide;
using test::download;
using test::uniform;
using test::upload;

TEST_CASE("batchnorm: columns wherever they begin, of all members or of one: the same bits") {
  constexpr auto kEval = BatchnormMode::eval, kTrain = BatchnormMode::train;
  constexpr int64_t n = 3;
  for (const Context& context : test::devices_at_hand()) {
    for (const auto& [b, c] : {std::pair<int64_t, int64_t>{70, 32}, {9, 11}}) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
        for (const BatchnormMode mode : {kEval, kTrain}) {
          const BatchnormProblem like{.num_members = n, .mode = mode};
          const auto values = uniform(b * n * c, 9, 11, 5);
          // x, y and the statistics; rows are `row` elements apart, the first one begins at
          // `first`.
          const auto results = [&](int64_t first, int64_t row, const char* strategy,
                                   bool is_in_place) {
            std::vector<double> stored(static_cast<size_t>(first + b * row), 99);
            const auto at = [&](int64_t i) {
              return static_cast<size_t>(first + i / (n * c) * row + i % (n * c));
            };
            for (int64_t i = 0; i < b * n * c; ++i) stored[at(i)] = values[static_cast<size_t>(i)];
            const Shape shape{static_cast<int64_t>(stored.size())};
            Tensor x = upload(context, dtype, shape, stored);
            Tensor other = upload(context, dtype, shape, stored);
            Tensor& y = is_in_place ? x : other;
            const auto view = [&](Tensor& tensor) {
              auto* data = static_cast<std::byte*>(tensor.data()) + first * dtype_bytes(dtype);
              return TensorView(data, dtype, {b, n * c}, Strides{row, 1}, context.device());
            };
            Tensor mean = upload(context, Dtype::fp32, {n, c}, uniform(n * c, 9, 11, 6));
            Tensor variance = upload(context, Dtype::fp32, {n, c}, uniform(n * c, 1, 2, 7));
            const BatchnormArguments arguments{view(x), {}, {}, mean, variance, view(y), {}, {}};
            test::run_plan(
                context,
                make_batchnorm_plan(context, describe_batchnorm(arguments, like), {strategy}),
                arguments);
            std::vector<double> got = download(context, y), packed;
            for (int64_t i = 0; i < b * n * c; ++i) packed.push_back(std::exchange(got[at(i)], 99));
            CHECK(got == std::vector<double>(got.size(), 99));  // the gaps are as they were
            for (const Tensor* of : {&mean, &variance}) {
              for (const double value : download(context, *of)) packed.push_back(value);
            }
            return packed;
          };
          INFO(to_string(context.device()) << " " << b << " x " << c << " " << dtype_name(dtype)
                                           << (mode == kTrain ? " train" : " eval"));
          const auto expected = results(0, n * c, "wide", false);
          CHECK(results(0, n * c, "sequential", false) == expected);
          CHECK(results(1, n * c, "wide", true) == expected);
          CHECK(results(0, n * c + 8, "wide", false) == expected);
          CHECK(results(3, n * c + 5, "wide", true) == expected);
        }
      }
    }
  }
}
