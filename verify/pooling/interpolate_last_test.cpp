// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// interpolate with channels last: the bits are those of channels first, which interpolate_test
// judges.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <limits>
#include <vector>

#include "kernels/pooling/interpolate_last_rows.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"
#include "wide/interpolate.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::uniform, test::upload;
using Mode = CoordinateMode;
using Values = std::vector<double>;
using enum ChannelLayout;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

size_t z(int64_t index) {
  return static_cast<size_t>(index);
}

/// [b, c, positions] -> [b, positions, c]
Values with_channels_last(const Values& values, int64_t channels, int64_t positions) {
  Values turned(values.size());
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    const int64_t position = i % positions, channel = i / positions % channels,
                  batch = i / positions / channels;
    turned[z((batch * positions + position) * channels + channel)] = values[z(i)];
  }
  return turned;
}

void run(const Context& context, const InterpolateArguments& arguments, InterpolateProblem like,
         const char* strategy = "wide") {
  const InterpolateProblem problem = describe_interpolate(arguments, like);
  test::run_plan(context, make_interpolate_plan(context, problem, {strategy}), arguments);
}

/// By the strategy, of packed images.
Values interpolated(const Context& context, InterpolateProblem p, const Values& x,
                    const char* strategy) {
  const int64_t channels = p.num_members * p.channels;
  const auto shape = [&](int64_t height, int64_t width) {
    return p.layout == channels_last ? Shape{p.batch, height, width, channels}
                                     : Shape{p.batch, channels, height, width};
  };
  Tensor from = upload(context, p.dtype, shape(p.height, p.width), x);
  Tensor to(context, p.dtype, shape(p.out_height, p.out_width));
  run(context, {from, to}, p, strategy);
  return download(context, to);
}

kernels::InterpolateParams params_of(int64_t batch, int64_t members, int64_t channels, int out) {
  kernels::InterpolateParams p;
  p.batch = batch, p.num_members = members, p.channels = channels;
  p.rows.out = p.columns.out = out;
  return p;
}

void check_same_bits(const Context& context, InterpolateProblem p) {
  const int64_t channels = p.num_members * p.channels;
  const Values x = uniform(p.batch * channels * p.height * p.width, -2, 2, 3);
  p.layout = channels_first;
  const Values want =
      with_channels_last(interpolated(context, p, x, "wide"), channels, p.out_height * p.out_width);
  p.layout = channels_last;
  const Values turned = with_channels_last(x, channels, p.height * p.width);
  for (const char* strategy : {"sequential", "wide"}) {
    INFO(to_string(context.device())
         << " " << strategy << " " << dtype_name(p.dtype) << " "
         << coordinate_mode_name(p.coordinates) << " " << p.channels << " channels of " << p.height
         << " x " << p.width << " to " << p.out_height << " x " << p.out_width);
    CHECK(interpolated(context, p, turned, strategy) == want);
  }
}

/// [b, h, w, c] somewhere in memory, as elements of `batch`, `row` and `column` apart from
/// `offset`.
struct Spread {
  int64_t offset, batch, row, column;

  size_t place(const Shape& shape, int64_t i) const {
    const int64_t c = shape[3], position = i / c % (shape[1] * shape[2]);
    return z(offset + i / (shape[1] * shape[2] * c) * batch + position / shape[2] * row +
             position % shape[2] * column + i % c);
  }
  /// Among so many elements of `gap`.
  Values spread(const Shape& shape, const Values& values, double gap) const {
    Values all(z(offset + shape[0] * batch), gap);
    for (int64_t i = 0; i < std::ssize(values); ++i) all[place(shape, i)] = values[z(i)];
    return all;
  }
  TensorView of(Tensor& all, const Shape& shape) const {
    return {static_cast<std::byte*>(all.data()) + offset * dtype_bytes(all.dtype()), all.dtype(),
            shape, Strides{batch, row, column, 1}, all.view().device};
  }
};

}  // namespace

TEST_CASE("interpolate, channels last: the bits of channels first") {
  struct Sizes {
    int64_t members, batch, channels, height, width, out_height, out_width;
    float scale = 0;
  };
  const std::vector<Sizes> all{
      {2, 2, 8, 5, 7, 10, 14},           // vectors
      {3, 2, 3, 5, 7, 13, 11},           // single channels
      {2, 1, 4, 9, 8, 4, 5},             // of all members vectors, of one no whole ones of 16 bits
      {1, 1, 16, 20, 24, 14, 16, 0.7f},  // fewer, by a scale that no fraction of sizes is
      {2, 1, 8, 4, 4, 12, 12, 3.0f},     // whole positions between others
      {2, 2, 8, 1, 1, 5, 3},             // of one position
      {2, 1, 8, 1, 600, 1, 1100},        // a signal, of more columns than the CPU finds once
      {2, 1, 520, 2, 2, 3, 4}};          // more channels than it takes at a time
  for (const Context& context : test::devices_at_hand()) {
    const bool is_few = context.device().type == DeviceType::cuda && test::wants_small_cases();
    for (const Sizes& s : all) {
      for (const Mode mode : kAllCoordinateModes) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
          const bool is_large = s.width > 30 || s.channels > 30;
          if (is_few && is_large && (dtype != Dtype::fp16 || mode != Mode::half_pixel)) continue;
          InterpolateProblem p{.num_members = s.members, .batch = s.batch, .channels = s.channels};
          p.height = s.height, p.width = s.width, p.coordinates = mode, p.dtype = dtype;
          p.out_height = s.out_height, p.out_width = s.out_width;
          p.row_scale = p.column_scale = s.scale;
          check_same_bits(context, p);
        }
      }
    }
  }
}

TEST_CASE("interpolate, channels last: threads that go down several rows") {
  InterpolateProblem p{.num_members = 1, .batch = 1, .channels = 1};
  p.height = p.width = 30, p.out_height = p.out_width = 727;
  REQUIRE(kernels::interpolate_last_rows(params_of(1, 1, 1, 727), 1) == 2);  // the last has one
  for (const Context& context : test::devices_at_hand()) check_same_bits(context, p);
}

TEST_CASE("interpolate, channels last: as many rows a thread as leave enough threads") {
  const auto rows = [](int64_t members, int out, int vector) {
    const kernels::InterpolateParams p = params_of(8, members, 64, out);
    const int64_t vectors = 8 * members * 64 / vector * out;
    const int count = kernels::interpolate_last_rows(p, vector);
    CHECK(kernels::interpolate_last_threads(p, vector) == vectors * ((out + count - 1) / count));
    return count;
  };
  CHECK(rows(1, 16, 8) == 1);
  CHECK(rows(8, 64, 8) == 8);
  CHECK(rows(8, 64, 4) == 16);
  CHECK(rows(10000, 7, 8) == 7);
}

TEST_CASE("interpolate, channels last: gaps between positions, rows and images, any alignment") {
  const Shape in{2, 3, 4, 16}, out{2, 5, 7, 16};
  const Values values = uniform(num_elements(in), -1, 1, 5);
  const InterpolateProblem like{.num_members = 2, .layout = channels_last};
  const std::pair<Spread, Spread> all[]{
      {{0, 400, 104, 24}, {8, 1224, 240, 32}},   // vectors of 16 bytes
      {{1, 400, 104, 24}, {0, 1224, 240, 32}},   // x does not begin as one,
      {{8, 402, 104, 24}, {0, 1224, 240, 32}},   // nor does its second image,
      {{0, 400, 106, 24}, {0, 1224, 240, 32}},   // its second row,
      {{0, 400, 104, 26}, {0, 1224, 240, 32}},   // its second position,
      {{0, 400, 104, 24}, {3, 1224, 240, 32}},   // y,
      {{0, 400, 104, 24}, {0, 1226, 240, 32}}};  // its second image
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16}) {
      Tensor plain = upload(context, dtype, in, values), expected(context, dtype, out);
      run(context, {plain, expected}, like);
      const Values want = download(context, expected);
      for (const auto& [x, y] : all) {
        INFO(to_string(context.device())
             << " " << dtype_name(dtype) << " from " << x.offset << " " << x.batch << " " << x.row
             << " " << x.column << " to " << y.offset << " " << y.batch);
        const Values from = x.spread(in, values, kNan),
                     to = y.spread(out, Values(want.size(), 7), 7);
        Tensor source = upload(context, dtype, {std::ssize(from)}, from);
        Tensor target = upload(context, dtype, {std::ssize(to)}, to);
        run(context, {x.of(source, in), y.of(target, out)}, like);
        CHECK(download(context, target) == y.spread(out, want, 7));
      }
    }
  }
}

TEST_CASE("interpolate, channels last: only neighbours with a weight count, whatever they are") {
  // Two columns of a signal, outputs at both and between them; channels differ.
  Values x;
  for (int64_t i = 0; i < 8; ++i) x.push_back(i == 1 ? kInfinity : 1);
  for (int64_t i = 0; i < 8; ++i) x.push_back(i == 2 ? kNan : i == 3 ? -kInfinity : 3);
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      for (const bool is_column : {true, false}) {
        INFO(to_string(context.device()) << " " << dtype_name(dtype) << " " << is_column);
        InterpolateProblem p{.num_members = 2, .batch = 1, .channels = 4};
        p.width = is_column ? 2 : 1, p.height = is_column ? 1 : 2;
        p.out_width = is_column ? 3 : 1, p.out_height = is_column ? 1 : 3;
        p.coordinates = Mode::align_corners, p.layout = channels_last, p.dtype = dtype;
        const Values y = interpolated(context, p, x, "wide");
        const Values first(y.begin(), y.begin() + 8), last(y.begin() + 16, y.end());
        CHECK(first == Values{1, kInfinity, 1, 1, 1, 1, 1, 1});
        CHECK((last[1] == 3 && last[2] != last[2] && last[3] == -kInfinity && last[4] == 3));
        CHECK((y[8] == 2 && y[9] == kInfinity && y[10] != y[10] && y[11] == -kInfinity));
      }
    }
  }
}

TEST_CASE("interpolate, channels last: operands of another layout are named") {
  const Context cpu = Context::cpu();
  InterpolateProblem p{.num_members = 2, .batch = 1, .channels = 4, .height = 3, .width = 5};
  p.out_height = 6, p.out_width = 10, p.layout = channels_last;
  const InterpolatePlan plan = make_interpolate_plan(cpu, p);
  Tensor x(cpu, Dtype::fp32, {1, 3, 5, 8}), y(cpu, Dtype::fp32, {1, 6, 10, 8});
  Tensor flat(cpu, Dtype::fp32, {8, 10}), odd(cpu, Dtype::fp32, {1, 6, 10, 7});
  Tensor first(cpu, Dtype::fp32, {1, 8, 6, 10});
  const auto refuses = [&](const TensorView& to, const char* message) {
    CHECK_THROWS_MATCHES(plan.run({x, to}, {Stream::cpu()}), Error, Message(message));
  };
  CHECK_NOTHROW(plan.run({x, y}, {Stream::cpu()}));
  refuses(flat,
          "interpolate: y is [8, 10], expected [batch, width, num_members * channels] or [batch, "
          "height, width, num_members * channels]");
  refuses(odd,
          "interpolate: y is [1, 6, 10, 7], expected [batch, .., num_members * channels] with "
          "num_members = 2");
  refuses(first,
          "interpolate: y is [1, 8, 6, 10], expected the batch and channels of x = [1, 3, 5, 8]");
}
