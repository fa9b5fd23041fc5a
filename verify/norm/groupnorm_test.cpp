// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/groupnorm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "host/norm/batchnorm_reference.hpp"
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

void run(const Context& context, const GroupnormArguments& arguments, const GroupnormProblem& like,
         const std::string& strategy) {
  test::run_plan(context,
                 make_groupnorm_plan(context, describe_groupnorm(arguments, like), {strategy}),
                 arguments);
}

/// Worst error over tolerance of y for packed operands [B, N*C, L].
double worst_ratio(const GroupnormProblem& p, const std::vector<double>& x,
                   const std::vector<double>& gamma, const std::vector<double>& beta,
                   const std::vector<double>& y) {
  // A group of a batch row of a member is a channel of a batch of one.
  const int64_t own = p.channels / p.groups;
  BatchnormProblem groups{.batch = 1, .channels = p.batch * p.num_members * p.groups};
  groups.width = own * p.width;
  groups.dtype = p.dtype;
  const auto statistics = catalog::channel_statistics(groups, x);
  const auto length = static_cast<size_t>(p.width);
  std::vector<double> expected(length), tolerance(length);
  double worst = 0;
  for (size_t row = 0; row * length < x.size(); ++row) {
    const size_t c = row % static_cast<size_t>(p.num_members * p.channels);
    catalog::batchnorm_reference(groups, statistics[row / static_cast<size_t>(own)], gamma[c],
                                 beta[c], std::span(x).subspan(row * length, length), expected,
                                 tolerance);
    for (size_t i = 0; i < length; ++i)
      worst = test::worse_ratio(worst, y[row * length + i], expected[i], tolerance[i]);
  }
  return worst;
}

}  // namespace

TEST_CASE("groupnorm: a case worked out by hand, groups and instances") {
  for (const Context& context : test::devices_at_hand()) {
    // Two members of two channels: (1, 3 | 5, 7) and (10, 10 | 10, 10). As one group the first has
    // mean 4 and variance 5; as instances 2 and 6 with variance 1.
    Tensor x = upload(context, Dtype::fp32, {1, 4, 2}, {1, 3, 5, 7, 10, 10, 10, 10});
    Tensor gamma = upload(context, Dtype::fp32, {2, 2}, {1, 2, 3, 4});
    Tensor beta = upload(context, Dtype::fp32, {2, 2}, {0, 0.5, 7, 8});
    Tensor y(context, Dtype::fp32, {1, 4, 2});
    const auto is_near = [&](const std::vector<double>& want) {
      const std::vector<double> got = download(context, y);
      for (size_t i = 0; i < 4; ++i) CHECK(std::fabs(got[i] - want[i]) < 1e-5);
      // A constant group gives beta exactly.
      CHECK((got[4] == 7 && got[5] == 7 && got[6] == 8 && got[7] == 8));
    };
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      const float epsilon = 0x1p-20f;
      run(context, {x, gamma, beta, y}, {.groups = 1, .epsilon = epsilon}, strategy);
      const double s = 1 / std::sqrt(5.0);
      is_near({-3 * s, -s, 2 * s + 0.5, 6 * s + 0.5});
      run(context, {x, gamma, beta, y}, {.groups = 2, .epsilon = epsilon}, strategy);
      is_near({-1, 1, -1.5, 2.5});
    }
  }
}

TEST_CASE("groupnorm: every path and dtype stays within its bound, whatever the offset") {
  struct Sizes {
    int64_t members, batch, groups, own, length;
  };
  // Four slices to a block and a last block of fewer, a warp, several; the last two are more than a
  // block keeps.
  const std::vector<Sizes> all{{3, 1, 3, 2, 1},     {2, 3, 2, 3, 7},    {3, 2, 1, 5, 33},
                               {2, 2, 4, 1, 256},   {1, 2, 2, 4, 345},  {2, 1, 2, 8, 1024},
                               {1, 1, 1, 3, 40004}, {1, 1, 1, 2, 65537}};
  for (const Context& context : test::devices_at_hand()) {
    for (const auto& [members, batch, groups, own, length] : all) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        const bool is_large = own * length > 10000;
        if (test::wants_small_cases() && is_large && (length == 65537) != (dtype == Dtype::fp16))
          continue;
        for (const double offset : {0.0, 1000.0}) {
          if (is_large && offset == 0) continue;
          GroupnormProblem p{.num_members = members, .batch = batch, .channels = groups * own};
          p.groups = groups;
          p.width = length;
          p.dtype = dtype;
          const int64_t c = members * p.channels;
          Tensor x = upload(context, dtype, {batch, c, length},
                            uniform(batch * c * length, offset - 1, offset + 1, 1));
          Tensor gamma = upload(context, dtype, {members, p.channels}, uniform(c, -1, 1, 2));
          Tensor beta = upload(context, dtype, {c}, uniform(c, -1, 1, 3));
          Tensor y(context, dtype, {batch, c, length});
          for (const char* strategy : {"sequential", "wide"}) {
            INFO(to_string(context.device())
                 << " " << strategy << " " << dtype_name(dtype) << " n " << members << " groups "
                 << groups << " of " << own << " length " << length << " offset " << offset);
            run(context, {x, gamma, beta, y}, p, strategy);
            CHECK(worst_ratio(p, download(context, x), download(context, gamma),
                              download(context, beta), download(context, y)) <= 1);
          }
        }
      }
    }
  }
}

TEST_CASE("groupnorm: what is added up in stretches is the whole group") {
  constexpr int64_t length = (1 << 22) + 5;  // a thread ends two stretches of 4096 terms
  for (const Context& context : test::devices_at_hand()) {
    GroupnormProblem p{.num_members = 1, .batch = 1, .channels = 1};
    p.groups = 1;
    p.width = length;
    Tensor x = upload(context, Dtype::fp32, {1, 1, length}, uniform(length, 1, 3, 1));
    Tensor gamma = upload(context, Dtype::fp32, {1, 1}, {1});
    Tensor beta = upload(context, Dtype::fp32, {1}, {0});
    Tensor y(context, Dtype::fp32, {1, 1, length});
    run(context, {x, gamma, beta, y}, p, "wide");
    INFO(to_string(context.device()));
    CHECK(worst_ratio(p, download(context, x), {1}, {0}, download(context, y)) <= 1);
  }
}

TEST_CASE("groupnorm: the bound refuses a variance of one value less, and a lost epsilon") {
  GroupnormProblem p{.num_members = 1, .batch = 1, .channels = 2};
  p.groups = 1;
  p.width = 128;
  const std::vector<double> x = test::uniform_fp32(256, -1, 1, 4);
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / 256;
  const auto ratio = [&](double count, double epsilon) {
    return worst_ratio(p, x, {1, 1}, {0, 0}, test::normalised(x, mean, count, epsilon));
  };
  const auto epsilon = static_cast<double>(p.epsilon);
  CHECK(ratio(256, epsilon) <= 1);
  CHECK_FALSE(ratio(255, epsilon) <= 1);
  CHECK_FALSE(ratio(256, 0) <= 1);
}

TEST_CASE("groupnorm: in place, padded rows and channels: the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t b = 3, c = 4, h = 4, w = 6, row = 9, plane = 40, image = 170;
    const GroupnormProblem like{.num_members = 2, .groups = 1};
    const auto values = uniform(b * c * h * w, -1, 1, 5);
    Tensor plain = upload(context, Dtype::fp32, {b, c, h, w}, values);
    Tensor expected(context, Dtype::fp32, {b, c, h, w});
    run(context, {plain, {}, {}, expected}, like, "wide");
    std::vector<double> padded(static_cast<size_t>(1 + b * image), 99);
    const auto place = [&](int64_t i) {
      const int64_t channel = i / (h * w), in = i % (h * w);
      return static_cast<size_t>(1 + channel / c * image + channel % c * plane + in / w * row +
                                 in % w);
    };
    for (int64_t i = 0; i < b * c * h * w; ++i) padded[place(i)] = values[static_cast<size_t>(i)];
    Tensor storage = upload(context, Dtype::fp32, {static_cast<int64_t>(padded.size())}, padded);
    const TensorView view(static_cast<float*>(storage.data()) + 1, Dtype::fp32, {b, c, h, w},
                          Strides{image, plane, row, 1}, context.device());
    run(context, {view, {}, {}, view}, like, "wide");
    const auto got = download(context, storage), want = download(context, expected);
    for (int64_t i = 0; i < b * c * h * w; ++i) {
      CHECK(got[place(i)] == want[static_cast<size_t>(i)]);
      padded[place(i)] = got[place(i)];
    }
    CHECK(got == padded);  // the gaps are as they were
  }
}

TEST_CASE("groupnorm: parameters are packed and restored") {
  const Context cpu = Context::cpu();
  const GroupnormPlan plan = make_groupnorm_plan(
      cpu, {.num_members = 2, .batch = 1, .channels = 3, .groups = 3, .width = 4});
  std::vector<Tensor> own, back;
  for (uint64_t i = 0; i < 4; ++i) {
    own.push_back(upload(cpu, Dtype::fp32, {3}, uniform(3, 0, 1, i)));
    back.emplace_back(cpu, Dtype::fp32, Shape{3});
  }
  const std::vector<GroupnormMember> members{{own[0], own[1]}, {own[2], own[3]}};
  Tensor gamma(cpu, Dtype::fp32, {6}), beta(cpu, Dtype::fp32, {2, 3});
  plan.prepare_weights(members, gamma, beta, Stream::cpu());
  CHECK(download(cpu, gamma)[4] == download(cpu, own[2])[1]);
  plan.restore_weights(gamma, beta, std::vector<TensorView>{back[0], back[2]},
                       std::vector<TensorView>{back[1], back[3]}, Stream::cpu());
  for (size_t i = 0; i < 4; ++i) CHECK(download(cpu, back[i]) == download(cpu, own[i]));
}

TEST_CASE("groupnorm: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 6, 4}), y(cpu, Dtype::fp32, {2, 6, 4}),
      few(cpu, Dtype::fp32, {2, 6, 3}), gamma(cpu, Dtype::fp32, {2, 3}),
      wrong(cpu, Dtype::fp32, {3, 3});
  const auto refuses = [&](const GroupnormArguments& a, const GroupnormProblem& like,
                           const char* message) {
    CHECK_THROWS_MATCHES(describe_groupnorm(a, like), Error, Message(message));
  };
  refuses({x, gamma, {}, y}, {.groups = 2},
          "groupnorm: groups is 2, expected a divisor of channels = 3");
  refuses({x, gamma, {}, few}, {},
          "groupnorm: y is [2, 6, 3], expected the shape of x = [2, 6, 4]");
  refuses(
      {x, wrong, gamma, y}, {},
      "groupnorm: gamma is [3, 3], expected [num_members, channels] = [2, 3] or all in one axis");
  refuses(
      {x, {}, {}, y}, {.num_members = 4},
      "groupnorm: x is [2, 6, 4], expected [batch, num_members * channels, ..] with num_members "
      "= 4");
  refuses({x, gamma, {}, x.view().narrow(0, 0, 2).narrow(2, 0, 4)}, {.groups = 0},
          "groupnorm: groups is 0, expected >= 1");
  const TensorView shifted(static_cast<float*>(x.data()) + 1, Dtype::fp32, {1, 6, 4}, cpu.device());
  refuses({x.view().narrow(0, 0, 1), gamma, {}, shifted}, {},
          "groupnorm: y overlaps x, expected x itself or memory of its own");
  const GroupnormProblem good = describe_groupnorm({x, gamma, {}, y}, {});
  GroupnormProblem bad = good;
  bad.epsilon = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(make_groupnorm_plan(cpu, bad), Error);
  CHECK_THROWS_AS(make_groupnorm_plan(cpu, good, {"wid"}), Error);
  CHECK_THROWS_MATCHES(
      make_groupnorm_plan(cpu, good).run({x, {}, {}, y}, {Stream::cpu()}), Error,
      Message("groupnorm: gamma is absent, expected one as in the plan's problem"));
}

TEST_CASE("groupnorm: empty problems run") {
  const Context cpu = Context::cpu();
  for (const Shape& shape : {Shape{0, 4, 8}, Shape{2, 0, 8}, Shape{2, 4, 0}, Shape{2, 4, 0, 3}}) {
    Tensor x(cpu, Dtype::fp32, shape), y(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {x, {}, {}, y}, {.num_members = 2}, "wide"));
  }
}
