// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/interpolate.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/pooling/interpolate_reference.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"

using namespace wide;
using test::download, test::uniform, test::upload;
using Mode = CoordinateMode;
using Values = std::vector<double>;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void run(const Context& context, const InterpolateArguments& arguments,
         const InterpolateProblem& like, const std::string& strategy = "wide") {
  const InterpolateProblem problem = describe_interpolate(arguments, like);
  test::run_plan(context, make_interpolate_plan(context, problem, {strategy}), arguments);
}

/// Of a signal, as one member of one channel.
Values interpolated(const Context& context, const Values& x, InterpolateProblem like,
                    Dtype dtype = Dtype::fp32) {
  Tensor from = upload(context, dtype, {1, 1, std::ssize(x)}, x);
  Tensor to(context, dtype, {1, 1, like.out_width});
  run(context, {from, to}, like);
  return download(context, to);
}

void check_near(const Values& got, const Values& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    INFO(i);
    CHECK(std::fabs(got[i] - want[i]) <= 1e-6 * std::fabs(want[i]));
  }
}

/// Of packed images; infinite for a NaN.
double worst_ratio(InterpolateProblem p, const Values& x, const Values& y) {
  p.channels *= p.num_members;  // to the reference all are one member's
  const auto out = static_cast<size_t>(p.out_width);
  Values expected(out), tolerance(out);
  double worst = 0;
  for (size_t row = 0; row * out < y.size(); ++row) {
    catalog::interpolate_reference(p, x, static_cast<int64_t>(row), expected, tolerance);
    for (size_t i = 0; i < out; ++i) {
      if (y[row * out + i] == expected[i]) continue;
      worst = test::worse_ratio(worst, y[row * out + i], expected[i], tolerance[i]);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("interpolate: signals worked out by hand") {
  for (const Context& context : test::devices_at_hand()) {
    const auto gives = [&](const Values& x, const InterpolateProblem& like, const Values& want) {
      INFO(to_string(context.device()) << " " << coordinate_mode_name(like.coordinates));
      check_near(interpolated(context, x, like), want);
    };
    // At -0.25, which is 0, 0.25, 0.75, ..
    gives({1, 2, 4}, {.out_width = 6}, {1, 1.25, 1.75, 2.5, 3.5, 4});
    gives({1, 2, 4, 8}, {.out_width = 2}, {1.5, 6});
    gives({1, 2, 4}, {.out_width = 4}, {1, 1.625, 2.75, 4});
    gives({1, 2, 4}, {.out_width = 4, .column_scale = 1.5f}, {1, 1.5, 2 + 1 / 3., 3 + 2 / 3.});
    gives({1, 2, 4, 8}, {.out_width = 1}, {3});
    gives({7}, {.out_width = 3}, {7, 7, 7});
    InterpolateProblem p{.coordinates = Mode::pytorch_half_pixel};
    p.out_width = 1, gives({1, 2, 4, 8}, p, {1});
    p.out_width = 2, gives({1, 2, 4, 8}, p, {1.5, 6});
    p.coordinates = Mode::align_corners;
    p.out_width = 5, gives({1, 2, 4}, p, {1, 1.5, 2, 3, 4});
    p.out_width = 2, gives({1, 2, 4}, p, {1, 4});
    p.out_width = 1, gives({1, 2, 4}, p, {1});
    p.out_width = 3, p.column_scale = 0.9f, gives({1, 2, 4}, p, {1, 2, 4});
    p = {.coordinates = Mode::asymmetric};
    p.out_width = 6, gives({1, 2, 4}, p, {1, 1.5, 2, 3, 4, 4});
    p.out_width = 2, gives({1, 2, 4}, p, {1, 3});
    p.out_width = 2, p.column_scale = 0.5f, gives({1, 2, 4}, p, {1, 4});
    p.out_width = 1, p.column_scale = 3.0f, gives({1, 2, 4}, p, {1});
  }
}

TEST_CASE("interpolate: an image worked out by hand, of two members") {
  const Values want{0, 1, 3, 4, 2, 3, 5, 6, 6, 7, 9, 10, 8, 9, 11, 12};
  for (const Context& context : test::devices_at_hand()) {
    Tensor x = upload(context, Dtype::fp32, {1, 2, 2, 2}, {0, 4, 8, 12, 0, 40, 80, 120});
    Tensor y(context, Dtype::fp32, {1, 2, 4, 4});
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      run(context, {x, y}, {.num_members = 2}, strategy);
      const Values got = download(context, y);
      for (size_t i = 0; i < want.size(); ++i) {
        CHECK(got[i] == want[i]);
        CHECK(got[i + want.size()] == 10 * want[i]);
      }
    }
  }
}

TEST_CASE("interpolate: every way to cut images stays within its bound") {
  struct Sizes {
    int64_t batch, channels, height, width, out_height, out_width;
    float scale = 0;
  };
  const std::vector<Sizes> all{
      {2, 3, 7, 9, 14, 18},           // vectors of 16 bits begin within 16 bytes: in order
      {2, 20, 8, 8, 16, 16},          // many images a tile, of vectors
      {1, 2, 5, 6, 13, 24},           // rows of parts that begin between two of x
      {1, 2, 40, 40, 16, 8},          // far apart
      {1, 1, 90, 60, 181, 120},       // bands of vectors
      {1, 1, 90, 61, 101, 71},        // bands in order
      {1, 1, 1, 9001, 1, 6008},       // strips of vectors
      {1, 1, 1, 4501, 1, 9003},       // strips in order
      {1, 1, 3, 5000, 7, 2001},       // of several rows
      {2, 2, 1, 1, 5, 8},             // of one position
      {2, 2, 3, 1, 1, 3},             // to one row
      {1, 2, 20, 20, 26, 26, 1.3f},   // by a scale that no fraction of sizes is
      {1, 2, 20, 24, 14, 16, 0.7f},   // likewise, fewer
      {1, 3, 16, 16, 48, 48, 3.0f}};  // whole positions between others
  for (const Context& context : test::devices_at_hand()) {
    const bool is_simulated =
        context.device().type == DeviceType::cuda && test::wants_small_cases();
    for (const Sizes& s : all) {
      for (const Mode mode : kAllCoordinateModes) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
          if (is_simulated && s.width > 30 && (dtype == Dtype::fp32) != (mode == Mode::half_pixel))
            continue;
          InterpolateProblem p{.num_members = 2, .batch = s.batch, .channels = s.channels};
          p.height = s.height, p.width = s.width, p.dtype = dtype, p.coordinates = mode;
          p.out_height = s.out_height, p.out_width = s.out_width;
          p.row_scale = p.column_scale = s.scale;
          const int64_t images = 2 * s.channels;
          const Shape in{s.batch, images, s.height, s.width},
              out{s.batch, images, s.out_height, s.out_width};
          Tensor x = upload(context, dtype, in, uniform(num_elements(in), -2, 2, 1));
          Tensor y(context, dtype, out), same(context, dtype, out);
          INFO(to_string(context.device())
               << " " << coordinate_mode_name(mode) << " " << dtype_name(dtype) << " " << s.height
               << " x " << s.width << " to " << s.out_height << " x " << s.out_width);
          run(context, {x, y}, p);
          run(context, {x, same}, p, "sequential");
          const Values got = download(context, y);
          CHECK(worst_ratio(p, download(context, x), got) <= 1);
          CHECK(download(context, same) == got);
        }
      }
    }
  }
}

TEST_CASE("interpolate: padded rows and images, any alignment: the same bits") {
  const int64_t b = 2, c = 4, h = 7, w = 9, row = 13, image = 100, batch = 411;
  const int64_t out_h = 9, out_w = 16, out_row = 24, out_image = 224, out_batch = 904;
  const Values values = uniform(b * c * h * w, -1, 1, 5);
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16}) {
      const InterpolateProblem like{.num_members = 2};
      Tensor plain = upload(context, dtype, {b, c, h, w}, values);
      Tensor expected(context, dtype, {b, c, out_h, out_w});
      run(context, {plain, expected}, like);
      const Values want = download(context, expected);
      for (const bool has_row_gaps : {true, false}) {
        const int64_t row_stride = has_row_gaps ? row : w;
        const int64_t out_stride = has_row_gaps ? out_row : out_w;
        Values padded(static_cast<size_t>(3 + b * batch), kNan);
        for (int64_t i = 0; i < b * c * h * w; ++i) {
          const int64_t position = i % (h * w), channel = i / (h * w);
          padded[static_cast<size_t>(3 + channel / c * batch + channel % c * image +
                                     position / w * row_stride + position % w)] =
              values[static_cast<size_t>(i)];
        }
        Tensor storage = upload(context, dtype, {std::ssize(padded)}, padded);
        const TensorView x(static_cast<std::byte*>(storage.data()) + 3 * dtype_bytes(dtype), dtype,
                           {b, c, h, w}, Strides{batch, image, row_stride, 1}, context.device());
        for (const int64_t offset : {0, 1, 8}) {  // of 16 bytes, or not
          const int64_t room = offset + b * out_batch;
          Tensor target = upload(context, dtype, {room}, Values(static_cast<size_t>(room), 7));
          const TensorView y(static_cast<std::byte*>(target.data()) + offset * dtype_bytes(dtype),
                             dtype, {b, c, out_h, out_w},
                             Strides{out_batch, out_image, out_stride, 1}, context.device());
          run(context, {x, y}, like);
          Values surroundings(static_cast<size_t>(room), 7);
          for (int64_t i = 0; i < b * c * out_h * out_w; ++i) {
            const int64_t position = i % (out_h * out_w), channel = i / (out_h * out_w);
            surroundings[static_cast<size_t>(
                offset + channel / c * out_batch + channel % c * out_image +
                position / out_w * out_stride + position % out_w)] = want[static_cast<size_t>(i)];
          }
          INFO(to_string(context.device()) << " " << dtype_name(dtype) << " from " << offset);
          CHECK(download(context, target) == surroundings);
        }
      }
    }
  }
}

TEST_CASE("interpolate: equal values stay what they are, to the last bit") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Mode mode : kAllCoordinateModes) {
      for (const double value : uniform(20, 1, 2, 9)) {
        const auto exact = static_cast<double>(static_cast<float>(value));
        const InterpolateProblem like{.num_members = 1, .coordinates = mode};
        Tensor x = upload(context, Dtype::fp32, {1, 1, 3, 5}, Values(15, exact));
        Tensor y(context, Dtype::fp32, {1, 1, 7, 23});
        run(context, {x, y}, like);
        CHECK(download(context, y) == Values(7 * 23, exact));
      }
    }
  }
}

TEST_CASE("interpolate: only neighbours with a weight count, whatever they are") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      INFO(to_string(context.device()) << " " << dtype_name(dtype));
      InterpolateProblem like{.coordinates = Mode::align_corners};
      like.out_width = 5;
      const Values got = interpolated(context, {1, kInfinity, 2}, like, dtype);
      CHECK(got == Values{1, kInfinity, kInfinity, kInfinity, 2});
      const Values without = interpolated(context, {kInfinity, kInfinity, -kInfinity}, like, dtype);
      CHECK((without[0] == kInfinity && without[1] == kInfinity && without[2] == kInfinity));
      CHECK((std::isnan(without[3]) && without[4] == -kInfinity));
      // Every third output is a position: no rounding of 1 / 3 leads beside it.
      like = {.out_width = 30, .coordinates = Mode::asymmetric};
      for (const float scale : {0.0f, 3.0f}) {
        like.column_scale = scale;
        const Values thirds =
            interpolated(context, {1, kNan, 2, kNan, 3, kNan, 4, kNan, 5, kNan}, like, dtype);
        for (size_t i = 0; i < 30; ++i) {
          INFO(i);
          const bool is_number = i % 6 == 0;
          CHECK(std::isnan(thirds[i]) != is_number);
          if (is_number) CHECK(thirds[i] == 1 + static_cast<double>(i / 6));
        }
      }
      // Rows, too.
      Tensor x = upload(context, dtype, {1, 1, 2, 2}, {1, 2, kInfinity, kNan});
      Tensor y(context, dtype, {1, 1, 3, 8});
      run(context, {x, y}, {.coordinates = Mode::align_corners});
      const Values image = download(context, y);
      CHECK((image[0] == 1 && image[7] == 2 && image[8] == kInfinity && image[16] == kInfinity));
      CHECK((std::isnan(image[9]) && std::isnan(image[15]) && std::isnan(image[23])));
    }
  }
}

TEST_CASE("interpolate: numbers of outputs") {
  CHECK(interpolate_outputs(7, 0.0f) == 7);
  CHECK(interpolate_outputs(7, 2.0f) == 14);
  CHECK(interpolate_outputs(7, 0.5f) == 3);
  CHECK(interpolate_outputs(3, 0.1f) == 1);
  CHECK(interpolate_outputs(10, 0.7f) == 6);  // 0.7 in 32 bits is less
  CHECK(interpolate_outputs(7, -1.0f) == 7);
  CHECK(interpolate_outputs(7, std::numeric_limits<float>::quiet_NaN()) == 7);
  CHECK(interpolate_outputs(7, std::numeric_limits<float>::infinity()) == int64_t{1} << 62);
}
