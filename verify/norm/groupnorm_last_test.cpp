// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// groupnorm with channels last: groups of every size, images of one block and of many, in place,
// with gaps, at any alignment; the bits do not hang on these, nor on members.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "host/norm/batchnorm_reference.hpp"
#include "kernels/norm/groupnorm_last_cut.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/normalised.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"
#include "wide/groupnorm.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Message;
using test::download;
using test::uniform;
using test::upload;

namespace {

GroupnormProblem last(int64_t members, int64_t groups) {
  return {.num_members = members, .groups = groups, .layout = ChannelLayout::channels_last};
}

void run(const Context& context, const GroupnormArguments& arguments, const GroupnormProblem& like,
         const std::string& strategy = "wide") {
  test::run_plan(context,
                 make_groupnorm_plan(context, describe_groupnorm(arguments, like), {strategy}),
                 arguments);
}

/// Worst error over tolerance of y for packed operands [B, H, W, N*C].
double worst_ratio(const GroupnormProblem& p, const std::vector<double>& x,
                   const std::vector<double>& gamma, const std::vector<double>& beta,
                   const std::vector<double>& y) {
  const int64_t own = p.channels / p.groups, positions = p.height * p.width,
                channels = p.num_members * p.channels;
  BatchnormProblem group{.batch = 1, .channels = 1, .width = positions * own, .dtype = p.dtype};
  const auto place = [&](int64_t b, int64_t position, int64_t channel) {
    return static_cast<size_t>((b * positions + position) * channels + channel);
  };
  double worst = 0;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t first = 0; first < channels; first += own) {
      std::vector<double> values;
      for (int64_t i = 0; i < positions * own; ++i)
        values.push_back(x[place(b, i / own, first + i % own)]);
      const auto statistics = catalog::channel_statistics(group, values);
      for (int64_t i = 0; i < positions * own; ++i) {
        const auto channel = static_cast<size_t>(first + i % own);
        double expected = 0, tolerance = 0;
        catalog::batchnorm_reference(group, statistics[0], gamma[channel], beta[channel],
                                     std::span(values).subspan(static_cast<size_t>(i), 1),
                                     std::span(&expected, 1), std::span(&tolerance, 1));
        worst =
            test::worse_ratio(worst, y[place(b, i / own, first + i % own)], expected, tolerance);
      }
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("groupnorm, channels last: every path and dtype stays within its bound") {
  struct Sizes {
    int64_t members, batch, groups, own, height, width;
  };
  // Instances and few channels, whole sectors, whole vectors, none of these; one block and several,
  // a last tile of fewer groups; and groups of more channels than a block has threads for.
  const std::vector<Sizes> all{{3, 2, 5, 1, 3, 3},    {2, 1, 3, 8, 9, 40},   {3, 2, 4, 10, 16, 16},
                               {2, 2, 2, 258, 2, 5},  {1, 1, 1, 301, 5, 9},  {2, 1, 1, 16, 1, 700},
                               {1, 2, 2, 2051, 1, 3}, {2, 1, 1, 3000, 2, 2}, {1, 1, 2, 4, 96, 96},
                               {2, 1, 30, 10, 3, 3}};
  for (const Context& context : test::devices_at_hand()) {
    for (const auto& [members, batch, groups, own, height, width] : all) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
        for (const double offset : {0.0, 1000.0}) {
          GroupnormProblem p = last(members, groups);
          p.batch = batch, p.channels = groups * own, p.height = height, p.width = width;
          p.dtype = dtype;
          const int64_t c = members * p.channels;
          const Shape shape{batch, height, width, c};
          Tensor x = upload(context, dtype, shape,
                            uniform(num_elements(shape), offset - 1, offset + 1, 1));
          Tensor gamma = upload(context, dtype, {members, p.channels}, uniform(c, -1, 1, 2));
          Tensor beta = upload(context, dtype, {c}, uniform(c, -1, 1, 3));
          Tensor y(context, dtype, shape), one(context, dtype, shape);
          INFO(to_string(context.device())
               << " " << dtype_name(dtype) << " n " << members << " groups " << groups << " of "
               << own << " " << height << "x" << width << " offset " << offset);
          run(context, {x, gamma, beta, y}, p);
          CHECK(worst_ratio(p, download(context, x), download(context, gamma),
                            download(context, beta), download(context, y)) <= 1);
          run(context, {x, gamma, beta, one}, p, "sequential");
          CHECK(download(context, one) == download(context, y));
        }
      }
    }
  }
}

TEST_CASE("groupnorm, channels last: in place, gaps, alignment: the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      for (const auto& [own, h] : {std::pair<int64_t, int64_t>{8, 4}, {8, 64}, {3, 64}}) {
        const int64_t b = 2, c = 4 * own, w = 6, position = c + 16, row = w * position + 32,
                      image = h * row + 64;
        const GroupnormProblem like = last(2, 2);
        const auto values = uniform(b * h * w * c, -1, 1, 5);
        Tensor plain = upload(context, dtype, {b, h, w, c}, values);
        Tensor expected(context, dtype, {b, h, w, c});
        run(context, {plain, {}, {}, expected}, like);
        const auto want = download(context, expected);
        for (const int64_t first : {8, 9}) {  // vectors of 16 bytes, and none
          INFO(to_string(context.device()) << " " << dtype_name(dtype) << " groups of " << own
                                           << " height " << h << " first " << first);
          std::vector<double> padded(static_cast<size_t>(first + b * image), 99);
          const auto place = [&](int64_t i) {
            const int64_t in = i / c;
            return static_cast<size_t>(first + in / (h * w) * image + in / w % h * row +
                                       in % w * position + i % c);
          };
          for (int64_t i = 0; i < std::ssize(values); ++i)
            padded[place(i)] = values[static_cast<size_t>(i)];
          Tensor storage = upload(context, dtype, {std::ssize(padded)}, padded);
          const auto before = download(context, storage);
          const TensorView view(static_cast<char*>(storage.data()) + first * dtype_bytes(dtype),
                                dtype, {b, h, w, c}, Strides{image, row, position, 1},
                                context.device());
          run(context, {view, {}, {}, view}, like);
          const auto got = download(context, storage);
          auto all = before;
          bool is_same = true;
          for (int64_t i = 0; i < std::ssize(values); ++i) {
            is_same = is_same && got[place(i)] == want[static_cast<size_t>(i)];
            all[place(i)] = got[place(i)];
          }
          CHECK(is_same);
          CHECK(got == all);  // the gaps are as they were
        }
      }
    }
  }
}

TEST_CASE("groupnorm, channels last: volumes and signals, and what is not a number stays its own") {
  for (const Context& context : test::devices_at_hand()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    auto values = uniform(2 * 2 * 3 * 4 * 8, -1, 1, 7);
    values[1] = nan;  // of the first image's first group
    Tensor x = upload(context, Dtype::fp32, {2, 2, 3, 4, 8}, values);
    Tensor y(context, Dtype::fp32, {2, 2, 3, 4, 8}), flat(context, Dtype::fp32, {2, 24, 8});
    run(context, {x, {}, {}, y}, last(2, 2));
    const TensorView positions(x.data(), Dtype::fp32, {2, 24, 8}, context.device());
    run(context, {positions, {}, {}, flat}, last(2, 2));
    const auto volume = download(context, y), signal = download(context, flat);
    for (size_t i = 0; i < volume.size(); ++i) {
      const bool is_hit = i < volume.size() / 2 && i % 8 < 2;
      CHECK(std::isnan(volume[i]) == is_hit);
      CHECK((volume[i] == signal[i] || is_hit));
    }
  }
}

TEST_CASE("groupnorm, channels last: cuts of few and of many channels") {
  const auto cut = [](int64_t own, int64_t positions, int64_t vector) {
    const GroupnormProblem p{.batch = 1, .channels = 32 * own, .groups = 32, .width = positions};
    return kernels::groupnorm_last_cut(p, 1, vector);
  };
  CHECK(cut(10, 1, 8).groups == 8);  // 160 bytes
  CHECK(cut(8, 1, 8).groups == 4);
  CHECK(cut(1, 1, 8).groups == 32);
  CHECK(cut(258, 1, 8).groups == 4);  // whole vectors: sectors would be too many
  CHECK(cut(2051, 1, 8).groups == 1);
  CHECK(cut(8, 256, 8).partials == 0);
  CHECK(cut(8, 257, 8).partials == 64);
  const GroupnormProblem wide{.batch = 1, .channels = 1 << 20, .groups = 1, .width = 1};
  CHECK(kernels::groupnorm_last_cut(wide, 1 << 10, 8).blocks <= kernels::kMaxGridBlocks);
  CHECK(kernels::groupnorm_last_cut(wide, 1 << 11, 8).blocks > kernels::kMaxGridBlocks);
}

TEST_CASE("groupnorm, channels last: each wrong operand is named") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 4, 6}), y(cpu, Dtype::fp32, {2, 4, 6}),
      flat(cpu, Dtype::fp32, {2, 6}), images(cpu, Dtype::fp32, {2, 2, 2, 6});
  const auto refuses = [&](const GroupnormArguments& a, const GroupnormProblem& like,
                           const char* message) {
    CHECK_THROWS_MATCHES(describe_groupnorm(a, like), Error, Message(message));
  };
  refuses({x, {}, {}, y}, last(4, 1),
          "groupnorm: x is [2, 4, 6], expected [batch, .., num_members * channels] with "
          "num_members = 4");
  refuses({flat, {}, {}, flat}, last(1, 1),
          "groupnorm: x is [2, 6], expected [batch, .., num_members * channels] with num_members "
          "= 1");
  refuses({x, {}, {}, images}, last(1, 1),
          "groupnorm: y is [2, 2, 2, 6], expected the shape of x = [2, 4, 6]");
  GroupnormProblem first = describe_groupnorm({x, {}, {}, y}, last(2, 1));
  const GroupnormPlan plan = make_groupnorm_plan(cpu, first);
  first.layout = static_cast<ChannelLayout>(7);
  CHECK_THROWS_AS(make_groupnorm_plan(cpu, first), Error);
  Tensor other(cpu, Dtype::fp32, {2, 4, 8});
  CHECK_THROWS_MATCHES(plan.run({other, {}, {}, other}, {Stream::cpu()}), Error,
                       Catch::Matchers::MessageMatches(ContainsSubstring("channels")));
  for (const Shape& shape : {Shape{0, 4, 8}, Shape{2, 0, 8}, Shape{2, 4, 0}}) {
    Tensor none(cpu, Dtype::fp32, shape), out(cpu, Dtype::fp32, shape);
    CHECK_NOTHROW(run(cpu, {none, {}, {}, out}, last(2, 1)));
  }
}
