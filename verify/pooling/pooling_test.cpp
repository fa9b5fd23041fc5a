// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/pooling.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/pooling/pooling_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::uniform, test::upload;

namespace {

void run(const Context& context, const PoolingArguments& arguments, const PoolingProblem& like,
         const std::string& strategy = "wide") {
  test::run_plan(context, make_pooling_plan(context, describe_pooling(arguments, like), {strategy}),
                 arguments);
}

constexpr ChannelLayout kLayouts[] = {ChannelLayout::channels_first, ChannelLayout::channels_last};

/// All members' images.
Shape images(const PoolingProblem& p, int64_t height, int64_t width) {
  const int64_t channels = p.num_members * p.channels;
  return p.layout == ChannelLayout::channels_last ? Shape{p.batch, height, width, channels}
                                                  : Shape{p.batch, channels, height, width};
}

/// Of packed images; infinite for a NaN.
double worst_ratio(PoolingProblem p, const std::vector<double>& x, const std::vector<double>& y) {
  const bool is_last = p.layout == ChannelLayout::channels_last;
  p.channels *= p.num_members;  // to the reference all are one member's
  const auto out = static_cast<size_t>(is_last ? p.channels : p.out_width);
  std::vector<double> expected(out), tolerance(out);
  double worst = 0;
  for (size_t row = 0; row * out < y.size(); ++row) {
    catalog::pooling_reference(p, x, static_cast<int64_t>(row), expected, tolerance);
    for (size_t i = 0; i < out; ++i) {
      if (y[row * out + i] == expected[i]) continue;
      worst = test::worse_ratio(worst, y[row * out + i], expected[i], tolerance[i]);
    }
  }
  return worst;
}

PoolingProblem completed(PoolingProblem p) {
  return make_pooling_plan(Context::cpu(), p).problem();
}

}  // namespace

TEST_CASE("pooling: a case worked out by hand") {
  for (const Context& context : test::devices_at_hand()) {
    // Two members of one channel, 1 2 5 / 3 4 6 and ten times that.
    Tensor x =
        upload(context, Dtype::fp32, {1, 2, 2, 3}, {1, 2, 5, 3, 4, 6, 10, 20, 50, 30, 40, 60});
    Tensor one(context, Dtype::fp32, {1, 2, 1, 1}), two(context, Dtype::fp32, {1, 2, 1, 2}),
        four(context, Dtype::fp32, {1, 2, 2, 2});
    const auto gives = [&](PoolingProblem like, Tensor& y, const std::vector<double>& want) {
      like.num_members = 2;
      for (const char* strategy : {"sequential", "wide", "auto"}) {
        run(context, {x, y}, like, strategy);
        const std::vector<double> got = download(context, y);
        for (size_t i = 0; i < want.size(); ++i) {
          CHECK(std::fabs(got[i] - want[i]) < 1e-6);
          CHECK(std::fabs(got[i + want.size()] - 10 * want[i]) < 1e-5);
        }
      }
    };
    const PoolingWindow pair{.kernel = 2};
    gives({.rows = pair, .columns = pair}, one, {4});
    gives({.rows = pair, .columns = pair, .ceil_mode = true}, two, {4, 6});
    PoolingProblem mean{.mode = PoolingMode::average, .rows = pair, .columns = pair};
    gives(mean, one, {2.5});
    mean.ceil_mode = true;
    gives(mean, two, {2.5, 5.5});  // what is outside of x and its padding never counts
    mean.rows.padding = mean.columns.padding = 1;
    mean.ceil_mode = false;
    gives(mean, four, {0.25, 1.75, 0.75, 2.5});
    mean.counts_padding = false;
    gives(mean, four, {1, 3.5, 3, 5});
    gives({.mode = PoolingMode::adaptive_average}, one, {3.5});
    gives({.mode = PoolingMode::adaptive_average}, two, {2.5, 4.25});
  }
}

void check_cuts(ChannelLayout layout) {
  struct Sizes {
    int64_t batch, channels, height, width, kernel, stride, padding, dilation, out;
    int64_t num_members = 2;
  };
  const std::vector<Sizes> all{
      {2, 3, 7, 7, 7, 1, 3, 1, 1},       // a team an output; as many outputs as inputs
      {1, 2, 20, 25, 5, 4, 2, 1, 5},     // teams of sixteen and more
      {2, 20, 8, 8, 2, 2, 0, 1, 1},      // many images a tile
      {1, 3, 8, 8, 8, 1, 0, 1, 1},       // images that are windows: of a few lanes
      {1, 3, 32, 32, 32, 1, 0, 1, 1},    // of a warp
      {1, 1, 90, 60, 3, 2, 1, 1, 7},     // bands
      {1, 1, 1, 9001, 3, 2, 1, 1, 9},    // pieces of a row
      {1, 1, 3, 4500, 3, 3, 1, 1, 40},   // of several
      {1, 1, 72, 73, 60, 11, 30, 1, 2},  // windows of a block
      {1, 1, 90, 90, 3, 9, 1, 40, 95},   // far apart; more outputs than inputs
      {2, 2, 1, 1, 2, 1, 1, 2, 5},       // nothing but padding
      {1, 100, 5, 4, 2, 2, 1, 1, 2, 4},  // of channels beside each other, some members'
      {1, 3, 5, 3, 3, 5, 1, 1, 2}};
  for (const Context& context : test::devices_at_hand()) {
    const bool is_simulated =
        context.device().type == DeviceType::cuda && test::wants_small_cases();
    for (const Sizes& s : all) {
      for (const PoolingMode mode : kAllPoolingModes) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
          if (is_simulated && s.width > 30 && (dtype == Dtype::fp32) != (mode == PoolingMode::max))
            continue;
          if (mode == PoolingMode::average && s.dilation > 1) continue;
          PoolingProblem p{.num_members = s.num_members, .batch = s.batch, .channels = s.channels};
          p.height = s.height;
          p.width = s.width;
          p.mode = mode;
          p.dtype = dtype;
          p.layout = layout;
          p.columns = {s.kernel, s.stride, s.padding, s.dilation};
          if (s.height > 1 || s.width == 1) p.rows = p.columns;
          if (mode == PoolingMode::adaptive_average) {
            p.out_height = s.height > 1 ? s.out : 1;
            p.out_width = s.out;
          } else if (pooling_outputs(s.height, p.rows, false) < 1) {
            continue;
          }
          p.ceil_mode = s.stride % 2 == 0;
          p.counts_padding = s.channels == 2;
          const PoolingProblem full = completed(p);
          const Shape in = images(p, s.height, s.width),
                      shape = images(p, full.out_height, full.out_width);
          Tensor x = upload(context, dtype, in, uniform(num_elements(in), -2, 2, 1));
          Tensor y(context, dtype, shape), same(context, dtype, shape);
          INFO(to_string(context.device())
               << " " << pooling_mode_name(mode) << " " << dtype_name(dtype) << " " << s.height
               << " x " << s.width << " kernel " << s.kernel);
          run(context, {x, y}, p);
          run(context, {x, same}, p, "sequential");
          const std::vector<double> got = download(context, y);
          CHECK(worst_ratio(full, download(context, x), got) <= 1);
          CHECK(download(context, same) == got);
        }
      }
    }
  }
}

TEST_CASE("pooling: every way to cut images stays within its bound") {
  check_cuts(ChannelLayout::channels_first);
}

TEST_CASE("pooling: channels last stays within its bound") {
  check_cuts(ChannelLayout::channels_last);
}

TEST_CASE("pooling: a mean of very many equal values, whose roundings are the same") {
  constexpr int64_t side = 1024;
  PoolingProblem p{.num_members = 1, .batch = 1, .channels = 1};
  p.mode = PoolingMode::adaptive_average;
  p.height = p.width = side;
  p.out_height = p.out_width = 1;
  for (const Context& context : test::devices_at_hand()) {
    Tensor x = upload(context, Dtype::fp32, {1, 1, side, side}, uniform(side * side, 0.7, 0.7, 1));
    Tensor y(context, Dtype::fp32, {1, 1, 1, 1});
    run(context, {x, y}, p);
    const bool is_cuda = context.device().type == DeviceType::cuda;  // sums in trees and stretches
    INFO(to_string(context.device()));
    CHECK(worst_ratio(completed(p), download(context, x), download(context, y)) <
          (is_cuda ? 0.05 : 1));
  }
}

TEST_CASE("pooling: signals, padded rows and images, any alignment: the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t b = 2, c = 4, h = 7, w = 9, row = 13, image = 100, batch = 411;
    const std::vector<double> values = uniform(b * c * h * w, -1, 1, 5);
    struct Kind {
      PoolingMode mode;
      Dtype dtype;
      PoolingWindow window;
      int64_t out_height, out_width;
    };
    std::vector<Kind> kinds;
    for (const PoolingMode mode : kAllPoolingModes) {
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16}) {
        kinds.push_back({mode, dtype, {3, 2, 1, 1}, 4, 5});
        kinds.push_back({mode, dtype, {2, 2, 0, 1}, 3, 4});
      }
    }
    for (const auto& [mode, dtype, window, out_height, out_width] : kinds) {
      PoolingProblem like{.num_members = 2, .mode = mode};
      like.rows = like.columns = window;
      const int64_t outputs = out_height * out_width;
      Tensor plain = upload(context, dtype, {b, c, h, w}, values);
      Tensor expected(context, dtype, {b, c, out_height, out_width});
      run(context, {plain, expected}, like);
      const std::vector<double> want = download(context, expected);
      for (const bool has_row_gaps : {true, false}) {
        const int64_t row_stride = has_row_gaps ? row : w;
        std::vector<double> padded(static_cast<size_t>(3 + b * batch),
                                   std::numeric_limits<double>::quiet_NaN());
        for (int64_t i = 0; i < b * c * h * w; ++i) {
          const int64_t position = i % (h * w), channel = i / (h * w);
          padded[static_cast<size_t>(3 + channel / c * batch + channel % c * image +
                                     position / w * row_stride + position % w)] =
              values[static_cast<size_t>(i)];
        }
        Tensor storage = upload(context, dtype, {static_cast<int64_t>(padded.size())}, padded);
        const TensorView x(static_cast<std::byte*>(storage.data()) + 3 * dtype_bytes(dtype), dtype,
                           {b, c, h, w}, Strides{batch, image, row_stride, 1}, context.device());
        Tensor target = upload(context, dtype, {1000}, std::vector<double>(1000, 7));
        const TensorView y(static_cast<std::byte*>(target.data()) + dtype_bytes(dtype), dtype,
                           {b, c, out_height, out_width}, Strides{200, 40, 8, 1}, context.device());
        run(context, {x, y}, like);
        std::vector<double> surroundings(1000, 7);
        for (int64_t i = 0; i < b * c * outputs; ++i) {
          surroundings[static_cast<size_t>(1 + i / (c * outputs) * 200 + i / outputs % c * 40 +
                                           i % outputs / out_width * 8 + i % out_width)] =
              want[static_cast<size_t>(i)];
        }
        CHECK(download(context, target) == surroundings);
      }
    }
    Tensor signal = upload(context, Dtype::fp32, {1, 2, 5}, {1, 5, 2, 4, 3, 9, 7, 8, 6, 0});
    Tensor y(context, Dtype::fp32, {1, 2, 3});
    run(context, {signal, y}, {.num_members = 2, .columns = {3, 2, 1, 1}});
    CHECK(download(context, y) == std::vector<double>{5, 5, 4, 9, 8, 6});
  }
}

TEST_CASE("pooling: images that are one window, wherever they begin: the same bits") {
  const int64_t b = 3, c = 6, h = 12, w = 18, row = 21, image = 260, batch = 1600;
  const std::vector<double> values = uniform(b * c * h * w, -1, 1, 5);
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      for (const PoolingMode mode : {PoolingMode::max, PoolingMode::adaptive_average}) {
        PoolingProblem like{.num_members = 2, .mode = mode};
        like.rows = {.kernel = h}, like.columns = {.kernel = w};
        Tensor plain = upload(context, dtype, {b, c, h, w}, values);
        Tensor expected(context, dtype, {b, c, 1, 1}), y(context, dtype, {b, c, 1, 1});
        run(context, {plain, expected}, like);
        for (const int64_t row_stride : {row, w}) {
          std::vector<double> padded(static_cast<size_t>(3 + b * batch), 99);
          for (int64_t i = 0; i < b * c * h * w; ++i) {
            const int64_t position = i % (h * w), channel = i / (h * w);
            padded[static_cast<size_t>(3 + channel / c * batch + channel % c * image +
                                       position / w * row_stride + position % w)] =
                values[static_cast<size_t>(i)];
          }
          Tensor storage = upload(context, dtype, {static_cast<int64_t>(padded.size())}, padded);
          const TensorView x(static_cast<std::byte*>(storage.data()) + 3 * dtype_bytes(dtype),
                             dtype, {b, c, h, w}, Strides{batch, image, row_stride, 1},
                             context.device());
          run(context, {x, y}, like);
          INFO(dtype_name(dtype) << " rows at " << row_stride);
          CHECK(download(context, y) == download(context, expected));
        }
      }
    }
  }
}

TEST_CASE("pooling: channels last, vectors or single channels, gaps anywhere: the same bits") {
  for (const Context& context : test::devices_at_hand()) {
    const int64_t b = 2, c = 4, h = 14, w = 13, out = 3 * 3;
    for (const PoolingMode mode : kAllPoolingModes) {
      PoolingProblem like{.num_members = 2, .layout = ChannelLayout::channels_last, .mode = mode};
      like.rows = like.columns = {9, 5, 1, 1};  // a team of threads, and windows that end outside
      like.ceil_mode = true;
      const std::vector<double> values = uniform(b * 2 * c * h * w, -1, 1, 5);
      Tensor plain = upload(context, Dtype::fp16, {b, h, w, 2 * c}, values);
      Tensor expected(context, Dtype::fp16, {b, 3, 3, 2 * c});
      run(context, {plain, expected}, like);
      const std::vector<double> want = download(context, expected);
      // A pixel is as long as says here, a batch row by `gap` longer than its pixels; the first one
      // begins `offset` elements into the storage.
      struct Gaps {
        int64_t pixel, offset, gap;
      };
      for (const Gaps& gaps :
           {Gaps{24, 8, 0}, Gaps{24, 3, 0}, Gaps{19, 8, 0}, Gaps{8, 8, 8}, Gaps{8, 8, 5}}) {
        const auto place = [&](int64_t i, int64_t pixels) {
          const int64_t at = i / (2 * c);
          return static_cast<size_t>(gaps.offset + at / pixels * gaps.gap + at * gaps.pixel +
                                     i % (2 * c));
        };
        const auto room = [&](int64_t pixels) {
          return static_cast<size_t>(gaps.offset + b * (pixels * gaps.pixel + gaps.gap));
        };
        const auto inside = [&](Tensor& all, const Shape& shape) {
          const int64_t pixel = gaps.pixel;
          return TensorView(
              static_cast<std::byte*>(all.data()) + 2 * gaps.offset, Dtype::fp16, shape,
              Strides{shape[1] * shape[2] * pixel + gaps.gap, shape[2] * pixel, pixel, 1},
              context.device());
        };
        std::vector<double> padded(room(h * w), std::numeric_limits<double>::quiet_NaN());
        for (size_t i = 0; i < values.size(); ++i) {
          padded[place(static_cast<int64_t>(i), h * w)] = values[i];
        }
        Tensor storage =
            upload(context, Dtype::fp16, {static_cast<int64_t>(padded.size())}, padded);
        std::vector<double> surroundings(room(out), 7);
        Tensor target =
            upload(context, Dtype::fp16, {static_cast<int64_t>(surroundings.size())}, surroundings);
        run(context, {inside(storage, {b, h, w, 2 * c}), inside(target, {b, 3, 3, 2 * c})}, like);
        for (size_t i = 0; i < want.size(); ++i) {
          surroundings[place(static_cast<int64_t>(i), out)] = want[i];
        }
        INFO(to_string(context.device()) << " " << pooling_mode_name(mode) << " " << gaps.pixel);
        CHECK(download(context, target) == surroundings);
      }
      // A member's bits, alone: of half as many channels, which are no whole vector.
      PoolingProblem one = like;
      one.num_members = 1;
      std::vector<double> own;
      for (size_t i = 0; i < values.size(); ++i)
        if (i / c % 2 == 1) own.push_back(values[i]);
      Tensor alone = upload(context, Dtype::fp16, {b, h, w, c}, own);
      Tensor y(context, Dtype::fp16, {b, 3, 3, c});
      run(context, {alone, y}, one);
      const std::vector<double> got = download(context, y);
      int64_t differences = 0;
      for (size_t i = 0, k = 0; i < want.size(); ++i)
        if (i / c % 2 == 1) differences += got[k++] == want[i] ? 0 : 1;
      CHECK(differences == 0);
    }
    Tensor signal = upload(context, Dtype::fp32, {1, 5, 2}, {1, 9, 5, 7, 2, 8, 4, 6, 3, 0});
    Tensor y(context, Dtype::fp32, {1, 3, 2});
    run(context, {signal, y},
        {.num_members = 2, .layout = ChannelLayout::channels_last, .columns = {3, 2, 1, 1}});
    CHECK(download(context, y) == std::vector<double>{5, 9, 5, 8, 4, 6});
  }
}

TEST_CASE("pooling: NaN, infinities and padding") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      // NaN first, last, alone; -infinity is larger than padding, which is nothing.
      Tensor x = upload(context, dtype, {1, 3, 4},
                        {nan, inf, 2, nan, -inf, -inf, -1, -2, -3, -inf, inf, 1});
      Tensor y(context, dtype, {1, 3, 2});
      run(context, {x, y}, {.num_members = 3, .columns = {.kernel = 2}});
      std::vector<double> got = download(context, y);
      CHECK((std::isnan(got[0]) && std::isnan(got[1])));
      got.erase(got.begin(), got.begin() + 2);
      CHECK(got == std::vector<double>{-inf, -1, -3, inf});
      Tensor padded(context, dtype, {1, 3, 3});
      run(context, {x, padded}, {.num_members = 3, .columns = {2, 2, 1, 1}});
      got = download(context, padded);
      CHECK((std::isnan(got[0]) && got[1] == inf && std::isnan(got[2])));
      CHECK((got[3] == -inf && got[4] == -1 && got[5] == -2 && got[6] == -3));
      // A NaN in a window of many teams and of a block.
      for (const int64_t side : {8, 9, 100}) {
        const PoolingWindow all{.kernel = side};
        PoolingProblem like{.num_members = 2, .rows = all, .columns = all};
        for (const ChannelLayout layout : kLayouts) {
          like.layout = layout;
          const bool is_last = layout == ChannelLayout::channels_last;
          const Shape in = is_last ? Shape{1, side, side, 2} : Shape{1, 2, side, side};
          std::vector<double> values = uniform(2 * side * side, -1, 1, 3);
          values[static_cast<size_t>((side * side - 2) * (is_last ? 2 : 1))] = nan;  // member 0's
          Tensor image = upload(context, dtype, in, values);
          Tensor pooled(context, dtype, is_last ? Shape{1, 1, 1, 2} : Shape{1, 2, 1, 1});
          for (const PoolingMode mode : {PoolingMode::max, PoolingMode::adaptive_average}) {
            like.mode = mode;
            run(context, {image, pooled}, like);
            got = download(context, pooled);
            CHECK((std::isnan(got[0]) && std::isfinite(got[1])));
          }
        }
      }
    }
  }
}

TEST_CASE("pooling: numbers of outputs") {
  const auto outputs = [](int64_t size, const PoolingWindow& w) {
    return std::pair(pooling_outputs(size, w, false), pooling_outputs(size, w, true));
  };
  CHECK(outputs(7, {.kernel = 2}) == std::pair<int64_t, int64_t>(3, 4));
  CHECK(outputs(112, {3, 2, 1, 1}) == std::pair<int64_t, int64_t>(56, 57));
  CHECK(outputs(5, {2, 3, 1, 1}) == std::pair<int64_t, int64_t>(2, 2));  // the third begins outside
  CHECK(outputs(9, {3, 1, 0, 4}) == std::pair<int64_t, int64_t>(1, 1));
  CHECK(outputs(8, {3, 1, 0, 4}) == std::pair<int64_t, int64_t>(0, 0));
}

TEST_CASE("pooling: numbers of outputs of windows that cannot be, and at the ends of 64 bits") {
  const auto outputs = [](int64_t size, const PoolingWindow& w) {
    return std::pair(pooling_outputs(size, w, false), pooling_outputs(size, w, true));
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::pair<int64_t, int64_t> none{0, 0};
  CHECK(outputs(7, {.kernel = 0}) == none);
  CHECK(outputs(7, {.kernel = 0, .stride = 2}) == none);
  CHECK(outputs(7, {.kernel = -3}) == none);
  CHECK(outputs(7, {.kernel = 2, .stride = -1}) == none);
  CHECK(outputs(7, {.kernel = 2, .padding = -1}) == none);
  CHECK(outputs(7, {.kernel = 2, .dilation = 0}) == none);
  CHECK(outputs(-1, {.kernel = 1, .padding = 1}) == none);
  CHECK(outputs(7, {.kernel = kMost}) == none);
  CHECK(outputs(7, {.kernel = kMost, .stride = 1, .padding = kMost}) == none);
  CHECK(outputs(7, {.kernel = 3, .stride = 1, .dilation = kMost}) == none);
  CHECK(outputs(7, {.kernel = 5, .stride = 1, .dilation = int64_t{1} << 62}) == none);
  CHECK(outputs(kMost, {.kernel = 1, .padding = 1}) == none);
  CHECK(outputs(kMost, {.kernel = 1}) == std::pair(kMost, kMost));
  CHECK(outputs(kMost, {.kernel = kMost}) == std::pair<int64_t, int64_t>(1, 1));
  CHECK(outputs(kMost, {.kernel = 3, .stride = kMost - 3}) == std::pair<int64_t, int64_t>(2, 2));
  CHECK(outputs(kMost, {.kernel = 3, .stride = kMost - 1}) == std::pair<int64_t, int64_t>(1, 2));
  CHECK(outputs(kMost, {.kernel = 3, .stride = kMost}) == std::pair<int64_t, int64_t>(1, 1));
}

TEST_CASE("pooling: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor x(cpu, Dtype::fp32, {2, 6, 4, 4}), y(cpu, Dtype::fp32, {2, 6, 2, 2}),
      half(cpu, Dtype::fp16, {2, 6, 2, 2}), few(cpu, Dtype::fp32, {2, 3, 2, 2}),
      flat(cpu, Dtype::fp32, {2, 6});
  const auto refuses = [&](const PoolingArguments& a, PoolingProblem like, const char* message) {
    CHECK_THROWS_MATCHES(describe_pooling(a, like), Error, Message(message));
  };
  const PoolingWindow pair{.kernel = 2};
  const PoolingProblem good{.num_members = 2, .rows = pair, .columns = pair};
  CHECK_NOTHROW(describe_pooling({x, y}, good));
  PoolingProblem p = good;
  p.rows.padding = 2;
  refuses({x, y}, p, "pooling: rows.padding is 2, expected 0 to 1");
  p = good;
  p.columns.stride = -1;
  refuses({x, y}, p, "pooling: columns.stride is -1, expected 1 to 536870912");
  p = good;
  p.columns.stride = 1;
  refuses({x, y}, p, "pooling: y's number of columns is 2, expected 3");
  p = good;
  p.rows = {.kernel = 3, .dilation = 2};
  refuses({x, y}, p,
          "pooling: a window of 3 rows with dilation 2 is larger than x's 4 and padding 0");
  p.mode = PoolingMode::average;
  refuses({x, y}, p, "pooling: rows.dilation is 2, expected 1 for averages");
  p = good;
  p.rows = {.kernel = 1 << 20, .dilation = 1 << 20};
  refuses({x, y}, p, "pooling: rows.dilation is 1048576, expected a window below 2^29 positions");
  p = good;
  p.num_members = 4;
  refuses({x, y}, p,
          "pooling: x is [2, 6, 4, 4], expected [batch, num_members * channels, ..] with "
          "num_members = 4");
  refuses({x, few}, {.num_members = 1, .rows = pair, .columns = pair},
          "pooling: y is [2, 3, 2, 2], expected the batch and channels of x = [2, 6, 4, 4]");
  refuses({x, half}, good, "pooling: y is fp16, expected dtype = fp32");
  refuses({flat, y}, good,
          "pooling: x is [2, 6], expected [batch, num_members * channels, width] or [batch, "
          "num_members * channels, height, width]");
  refuses({x, x.view().narrow(2, 0, 2).narrow(3, 0, 2)}, good,
          "pooling: y overlaps x, expected memory of its own");
  const TensorView last(x.data(), Dtype::fp32, {2, 6, 4, 4}, Strides{96, 1, 24, 6}, cpu.device());
  refuses({last, y}, good,
          "pooling: x has strides [96, 1, 24, 6]: channels are last, expected the "
          "last axis contiguous");
  p = good;
  p.layout = ChannelLayout::channels_last;
  refuses(
      {flat, y}, p,
      "pooling: x is [2, 6], expected [batch, width, num_members * channels] or [batch, height, "
      "width, num_members * channels]");
  p.num_members = 3;
  refuses({x, y}, p,
          "pooling: x is [2, 6, 4, 4], expected [batch, .., num_members * channels] with "
          "num_members = 3");
  const TensorView first(x.data(), Dtype::fp32, {2, 4, 4, 6}, Strides{96, 4, 1, 16}, cpu.device());
  p.num_members = 2;
  refuses({first, y}, p,
          "pooling: x has strides [96, 4, 1, 16], expected the last axis contiguous: stride 1");
  p.x.column = 12, p.x.channel = 2;
  p.batch = 1, p.channels = 3, p.height = p.width = 2;
  CHECK_THROWS_MATCHES(make_pooling_plan(cpu, p), Error,
                       Message("pooling: x has a channel stride of 2, expected the last axis "
                               "contiguous: 1"));
  const PoolingPlan plan = make_pooling_plan(cpu, describe_pooling({x, y}, good));
  Tensor other(cpu, Dtype::fp32, {1, 6, 4, 4}), less(cpu, Dtype::fp32, {1, 6, 2, 2});
  CHECK_THROWS_MATCHES(plan.run({other, less}, {Stream::cpu()}), Error,
                       Message("pooling: the operands' batch is 1, expected the plan's = 2"));
  CHECK_THROWS_AS(make_pooling_plan(cpu, plan.problem(), {"wid"}), Error);
  for (const Shape& shape : {Shape{0, 6, 4}, Shape{2, 0, 4}}) {
    Tensor none(cpu, Dtype::fp32, shape), empty(cpu, Dtype::fp32, {shape[0], shape[1], 2});
    CHECK_NOTHROW(run(cpu, {none, empty}, {.num_members = 2, .columns = pair}));
  }
}
