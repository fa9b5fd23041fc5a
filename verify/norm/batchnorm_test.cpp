// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/batchnorm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "host/norm/batchnorm_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/normalised.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"

using namespace wide;
using test::download;
using test::uniform;
using test::upload;

namespace {

constexpr auto kEval = BatchnormMode::eval, kTrain = BatchnormMode::train;

void run(const Context& context, const BatchnormArguments& arguments, const BatchnormProblem& like,
         const std::string& strategy) {
  test::run_plan(context,
                 make_batchnorm_plan(context, describe_batchnorm(arguments, like), {strategy}),
                 arguments);
}

/// Operands of one problem with seeded values.
struct Operands {
  Operands(const Context& context, const BatchnormProblem& p, double offset)
      : x(upload(
            context, p.dtype, {p.batch, p.num_members * p.channels, p.width},
            uniform(p.batch * p.num_members * p.channels * p.width, offset - 1, offset + 1, 1))),
        gamma(parameters(context, p, p.dtype, -1, 1, 2)),
        beta(parameters(context, p, p.dtype, -1, 1, 3)),
        mean(parameters(context, p, Dtype::fp32, offset - 1, offset + 1, 4)),
        variance(parameters(context, p, Dtype::fp32, 0.5, 2, 5)),
        y(context, p.dtype, x.shape()) {}

  static Tensor parameters(const Context& context, const BatchnormProblem& p, Dtype dtype,
                           double low, double high, uint64_t seed) {
    return upload(context, dtype, {p.num_members, p.channels},
                  uniform(p.num_members * p.channels, low, high, seed));
  }
  BatchnormArguments arguments() { return {x, gamma, beta, mean, variance, y, {}, {}}; }

  Tensor x, gamma, beta, mean, variance, y;
};

/// Runs once; the worst error over tolerance of y and, in mode train, of the running statistics.
/// Members' own epsilons and momenta are judged where there are any.
double worst_ratio(const Context& context, const BatchnormProblem& p, Operands& o,
                   const std::string& strategy, const std::vector<double>& epsilons = {},
                   const std::vector<double>& momenta = {}) {
  const auto mean = download(context, o.mean), variance = download(context, o.variance);
  BatchnormArguments arguments = o.arguments();
  Tensor epsilon, momentum;
  if (!epsilons.empty()) {
    arguments.epsilon = epsilon = upload(context, Dtype::fp32, {p.num_members}, epsilons);
    arguments.momentum = momentum = upload(context, Dtype::fp32, {p.num_members}, momenta);
  }
  run(context, arguments, p, strategy);
  const auto x = download(context, o.x), y = download(context, o.y);
  const auto gamma = download(context, o.gamma), beta = download(context, o.beta);
  const auto mean_after = download(context, o.mean), variance_after = download(context, o.variance);
  BatchnormProblem all = p;  // channels of all members, as those of one
  all.channels *= p.num_members;
  const auto batch = catalog::channel_statistics(all, x);
  const auto length = static_cast<size_t>(p.width);
  std::vector<double> expected(length), tolerance(length);
  double worst = 0;
  for (size_t row = 0; row * length < x.size(); ++row) {
    const size_t c = row % static_cast<size_t>(all.channels);
    const size_t member = c / static_cast<size_t>(p.channels);
    if (!epsilons.empty()) all.epsilon = static_cast<float>(epsilons[member]);
    const catalog::ChannelStatistics given{mean[c], variance[c]};
    catalog::batchnorm_reference(all, p.mode == kTrain ? batch[c] : given, gamma[c], beta[c],
                                 std::span(x).subspan(row * length, length), expected, tolerance);
    for (size_t i = 0; i < length; ++i)
      worst = test::worse_ratio(worst, y[row * length + i], expected[i], tolerance[i]);
  }
  for (size_t c = 0; c < mean.size(); ++c) {
    const size_t member = c / static_cast<size_t>(p.channels);
    const float own = momenta.empty() ? p.momentum : static_cast<float>(momenta[member]);
    if (p.mode == kEval) {
      CHECK((mean_after[c] == mean[c] && variance_after[c] == variance[c]));
      continue;
    }
    const auto after =
        catalog::running_statistics(batch[c], mean[c], variance[c], static_cast<double>(own));
    worst = test::worse_ratio(worst, mean_after[c], after.mean, after.mean_tolerance);
    worst = test::worse_ratio(worst, variance_after[c], after.variance, after.variance_tolerance);
  }
  return worst;
}

}  // namespace

TEST_CASE("batchnorm: a case worked out by hand") {
  for (const Context& context : test::devices_at_hand()) {
    // Two members of one channel: (1, 3) and (10, 14), mean 2 and 12, variance 1 and 4 (unbiased 2
    // and 8).
    Tensor x = upload(context, Dtype::fp32, {2, 2, 1}, {1, 10, 3, 14});
    Tensor gamma = upload(context, Dtype::fp32, {2}, {2, 4});
    Tensor beta = upload(context, Dtype::fp32, {2}, {0.5, 1});
    Tensor y(context, Dtype::fp32, {2, 2, 1});
    const auto is_near = [&](const Tensor& of, const std::vector<double>& expected) {
      const std::vector<double> got = download(context, of);
      double worst = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        worst = test::worse_ratio(worst, got[i], expected[i], 1e-5);
      }
      return got.size() == expected.size() && worst <= 1;
    };
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      Tensor mean = upload(context, Dtype::fp32, {2}, {0, 8});
      Tensor variance = upload(context, Dtype::fp32, {2}, {1, 4});
      const BatchnormArguments arguments{x, gamma, beta, mean, variance, y, {}, {}};
      BatchnormProblem like{.num_members = 2, .mode = kEval, .epsilon = 0, .momentum = 0.5f};
      run(context, arguments, like, strategy);
      CHECK(is_near(y, {2.5, 5, 6.5, 13}));
      like.mode = kTrain;
      run(context, arguments, like, strategy);
      CHECK(is_near(y, {-1.5, -3, 2.5, 5}));
      CHECK(is_near(mean, {1, 10}));
      CHECK(is_near(variance, {1.5, 6}));
    }
  }
}

TEST_CASE("batchnorm: every path and dtype stays within its bound, running statistics too") {
  struct Sizes {
    int64_t members, batch, channels, length;
  };
  // A warp, several, whole chunks and odd ends, and what is more than a block keeps; columns that
  // are whole chunks and not, of rows for one step of a thread, for several, and more than a block
  // keeps.
  const std::vector<Sizes> all{{3, 2, 2, 1},   {2, 3, 3, 7},    {3, 5, 1, 33},    {2, 8, 2, 256},
                               {1, 3, 2, 345}, {2, 8, 1, 1024}, {1, 3, 1, 40004}, {1, 2, 1, 65537},
                               {2, 40, 24, 1}, {3, 300, 67, 1}, {2, 21, 8, 1},    {1, 8000, 8, 1},
                               {1, 8000, 5, 1}};
  for (const Context& context : test::devices_at_hand()) {
    for (const auto& [members, batch, channels, length] : all) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        const bool is_large = batch * length > 10000;
        if (test::wants_small_cases() && is_large && (length == 65537) != (dtype == Dtype::fp16))
          continue;
        for (const double offset : {0.0, 1000.0}) {
          for (const BatchnormMode mode : {kEval, kTrain}) {
            if (is_large && (mode == kEval || offset == 0)) continue;
            BatchnormProblem p{.num_members = members, .batch = batch, .channels = channels};
            p.width = length;
            p.dtype = dtype;
            p.mode = mode;
            for (const char* strategy : {"sequential", "wide"}) {
              INFO(to_string(context.device())
                   << " " << strategy << " " << dtype_name(dtype) << " n " << members << " batch "
                   << batch << " channels " << channels << " length " << length << " offset "
                   << offset << (mode == kTrain ? " train" : " eval"));
              Operands operands(context, p, offset);
              CHECK(worst_ratio(context, p, operands, strategy) <= 1);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("batchnorm: each member may have an epsilon and a momentum of its own") {
  for (const Context& context : test::devices_at_hand()) {
    for (const BatchnormMode mode : {kEval, kTrain}) {
      for (const char* strategy : {"sequential", "wide"}) {
        for (const int64_t length : {9, 1}) {
          BatchnormProblem p{.num_members = 3, .batch = 4, .channels = 2};
          p.width = length;
          p.mode = mode;
          Operands operands(context, p, 3);
          INFO(to_string(context.device()) << " " << strategy << " length " << length);
          CHECK(worst_ratio(context, p, operands, strategy, {0.5, 0.001, 2}, {0, 1, 0.25}) <= 1);
        }
      }
    }
  }
}

TEST_CASE("batchnorm: the bound is tight enough to refuse one-pass statistics and a wrong mode") {
  const BatchnormProblem p{.batch = 1, .channels = 1, .width = 256};
  const std::vector<double> x = uniform(256, 999, 1001, 4);
  float sum = 0, squares = 0;
  for (const double value : x) {
    const auto v = static_cast<float>(value);
    sum += v;
    squares += v * v;
  }
  const float mean = sum / 256.0f, variance = squares / 256.0f - mean * mean;
  const auto exact = catalog::channel_statistics(p, x);
  std::vector<double> y(256), tolerance(256);
  catalog::batchnorm_reference(p, exact[0], 1, 0, x, y, tolerance);
  double worst = 0;
  for (size_t i = 0; i < 256; ++i) {
    const float got = (static_cast<float>(x[i]) - mean) / std::sqrt(variance + 1e-5f);
    worst = test::worse_ratio(worst, static_cast<double>(got), y[i], tolerance[i]);
  }
  CHECK_FALSE(worst <= 1);
  // Biased in place of unbiased.
  const auto after = catalog::running_statistics(exact[0], 0, 1, 0.1);
  CHECK(std::fabs(0.9 + 0.1 * exact[0].variance - after.variance) > 100 * after.variance_tolerance);
}

TEST_CASE("batchnorm: the bound refuses a variance of one value less, and a lost epsilon") {
  const BatchnormProblem p{.batch = 1, .channels = 1, .width = 256};
  const std::vector<double> x = uniform(256, -1, 1, 4);
  const auto exact = catalog::channel_statistics(p, x);
  std::vector<double> y(256), tolerance(256);
  catalog::batchnorm_reference(p, exact[0], 1, 0, x, y, tolerance);
  const auto ratio = [&](double count, double epsilon) {
    const std::vector<double> got = test::normalised(x, exact[0].mean, count, epsilon);
    double worst = 0;
    for (size_t i = 0; i < 256; ++i) worst = test::worse_ratio(worst, got[i], y[i], tolerance[i]);
    return worst;
  };
  const auto epsilon = static_cast<double>(p.epsilon);
  CHECK(ratio(256, epsilon) <= 1);
  CHECK_FALSE(ratio(255, epsilon) <= 1);
  CHECK_FALSE(ratio(256, 0) <= 1);
}

TEST_CASE("batchnorm: the bound is of the longest way into a sum, not of the number of values") {
  // 2048 chunks: no lane adds more than four of them.
  const BatchnormProblem p{.batch = 8, .channels = 1, .width = 1024};
  const std::vector<double> x = uniform(8192, -1, 1, 4);
  const auto exact = catalog::channel_statistics(p, x);
  CHECK(exact[0].roundings == 48);
  std::vector<double> y(1024), tolerance(1024);
  catalog::batchnorm_reference(p, exact[0], 1, 0, std::span(x).first(1024), y, tolerance);
  // A mean that is off by so many roundings.
  const double off = 100 * std::ldexp(1.0, -24) * std::sqrt(exact[0].variance + 1e-5);
  const auto shifted = [&](size_t i) { return y[i] + off / std::sqrt(exact[0].variance + 1e-5); };
  double worst = 0;
  for (size_t i = 0; i < 1024; ++i) {
    worst = test::worse_ratio(worst, shifted(i), y[i], tolerance[i]);
  }
  CHECK_FALSE(worst <= 1);
  // A value a chunk: as many chunks as values, and four values for every 2048 of them.
  const BatchnormProblem ragged{.batch = 8192, .channels = 1, .width = 1};
  CHECK(catalog::channel_statistics(ragged, x)[0].roundings == 48 + 3 * 16);
}

TEST_CASE("batchnorm: in place, padded rows and channels, strided parameters: the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    for (const BatchnormMode mode : {kEval, kTrain}) {
      const int64_t b = 3, n = 2, c = 2, h = 4, w = 6, row = 9, plane = 40, image = 170;
      const BatchnormProblem like{.num_members = n, .mode = mode};
      const auto values = uniform(b * n * c * h * w, -1, 1, 5);
      const auto numbers = uniform(4 * n * c, 0.5, 1, 6);
      const auto parameters = [&](int64_t which, int64_t stride) {
        std::vector<double> padded(static_cast<size_t>(n * stride), 99);
        for (int64_t i = 0; i < n * c; ++i)
          padded[static_cast<size_t>(i / c * stride + i % c)] =
              numbers[static_cast<size_t>(which * n * c + i)];
        return upload(context, Dtype::fp32, {n, stride}, padded);
      };
      const auto run_with = [&](const TensorView& x, const TensorView& y, int64_t stride) {
        Tensor p[4] = {parameters(0, stride), parameters(1, stride), parameters(2, stride),
                       parameters(3, stride)};
        const auto view = [&](int i) { return p[i].view().narrow(1, 0, c); };
        run(context, {x, view(0), view(1), view(2), view(3), y, {}, {}}, like, "wide");
        return std::pair{download(context, p[2]), download(context, p[3])};
      };
      Tensor plain = upload(context, Dtype::fp32, {b, n * c, h, w}, values);
      Tensor expected(context, Dtype::fp32, {b, n * c, h, w});
      const auto [mean, variance] = run_with(plain, expected, c);
      std::vector<double> padded(static_cast<size_t>(1 + b * image), 99);
      const auto place = [&](int64_t i) {
        const int64_t at_plane = i / (h * w), in = i % (h * w);
        return static_cast<size_t>(1 + at_plane / (n * c) * image + at_plane % (n * c) * plane +
                                   in / w * row + in % w);
      };
      for (int64_t i = 0; i < b * n * c * h * w; ++i)
        padded[place(i)] = values[static_cast<size_t>(i)];
      Tensor storage = upload(context, Dtype::fp32, {static_cast<int64_t>(padded.size())}, padded);
      const TensorView view(static_cast<float*>(storage.data()) + 1, Dtype::fp32, {b, n * c, h, w},
                            Strides{image, plane, row, 1}, context.device());
      const auto [strided_mean, strided_variance] = run_with(view, view, c + 3);
      const auto got = download(context, storage), want = download(context, expected);
      for (int64_t i = 0; i < b * n * c * h * w; ++i) {
        CHECK(got[place(i)] == want[static_cast<size_t>(i)]);
        padded[place(i)] = got[place(i)];
      }
      CHECK(got == padded);  // the gaps are as they were
      for (size_t i = 0; i < 4; ++i) {
        CHECK(strided_mean[i / 2 * 5 + i % 2] == mean[i]);
        CHECK(strided_variance[i / 2 * 5 + i % 2] == variance[i]);
      }
    }
  }
}
