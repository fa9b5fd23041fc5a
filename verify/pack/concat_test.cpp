// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/concat.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"
#include "wide/linear.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::uniform, test::upload;

namespace {

/// Numbers that tell member, feature and position.
Tensor numbered(const Context& context, Dtype dtype, const Shape& shape, double first) {
  std::vector<double> values(static_cast<size_t>(num_elements(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i);
  return upload(context, dtype, shape, values);
}

void join(const Context& context, const PackedOperand& operand,
          const std::vector<ConstTensorView>& parts, int64_t num_members, const TensorView& whole) {
  const OwnedStream stream(context);
  concat(operand, parts, num_members, whole, stream.get());
  context.synchronize(stream.get());
}

}  // namespace

TEST_CASE("concat: members' features one behind the other, and slices are them again") {
  for (const Context& context : test::devices_at_hand()) {
    // Two rows of two members with features (0, 1), (2, 3) and (100), (101).
    Tensor a = numbered(context, Dtype::fp32, {2, 4}, 0),
           b = numbered(context, Dtype::fp32, {2, 2}, 100);
    Tensor whole(context, Dtype::fp32, {2, 6});
    join(context, operands::linear_x, {a, b}, 2, whole);
    CHECK(download(context, whole) ==
          std::vector<double>{0, 1, 100, 2, 3, 101, 4, 5, 102, 6, 7, 103});
    const ConstTensorView tail = slice(operands::linear_x, ConstTensorView(whole), 2, 2, 1);
    CHECK((tail.shape == Shape{2, 2, 1} && tail.strides == Strides{6, 3, 1}));
    Tensor back(context, Dtype::fp32, {2, 2});
    join(context, operands::linear_x, {tail}, 2, back);
    CHECK(download(context, back) == download(context, b));
  }
}

TEST_CASE(
    "concat: channels, of every element size, aligned and not, more than a launch has threads") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp8_e4m3}) {
      for (const int64_t width : {5, 16}) {
        const int64_t n = 3, b = 2, h = 7, c[] = {4, 1, 8};
        std::vector<Tensor> own;
        std::vector<ConstTensorView> parts;
        for (uint64_t i = 0; i < 3; ++i) {
          own.push_back(upload(context, dtype, {b, n * c[i], h, width},
                               uniform(b * n * c[i] * h * width, -4, 4, i)));
          parts.emplace_back(own.back());
        }
        Tensor whole(context, dtype, {b, n * 13, h, width});
        join(context, operands::conv2d_x, parts, n, whole);
        const std::vector<double> got = download(context, whole);
        const int64_t image = h * width;
        for (int64_t i = 0, start = 0; i < 3; start += c[i++]) {
          const std::vector<double> from = download(context, own[static_cast<size_t>(i)]);
          int64_t wrong = 0;
          for (int64_t e = 0; e < static_cast<int64_t>(from.size()); ++e) {
            const int64_t channel = e / image, member = channel / c[i];
            const int64_t at = (member * 13 + start + channel % c[i]) * image + e % image;
            wrong += got[static_cast<size_t>(at)] == from[static_cast<size_t>(e)] ? 0 : 1;
          }
          CHECK(wrong == 0);
          Tensor back(context, dtype, {b, n * c[i], h, width});
          join(context, operands::conv2d_x,
               {slice(operands::conv2d_x, ConstTensorView(whole), n, start, c[i])}, n, back);
          CHECK(download(context, back) == from);
        }
      }
    }
    const Tensor large = upload(context, Dtype::fp16, {3, 70000}, uniform(210000, -1, 1, 7));
    Tensor same(context, Dtype::fp16, {3, 70000});
    join(context, operands::linear_x,
         {slice(operands::linear_x, ConstTensorView(large), 2, 0, 1),
          slice(operands::linear_x, ConstTensorView(large), 2, 1, 34999)},
         2, same);
    CHECK(download(context, same) == download(context, large));
  }
}

TEST_CASE("concat: flattened images are linear's x, without a copy") {
  const Context cpu = Context::cpu();
  const int64_t n = 2, b = 3;
  Tensor images = upload(cpu, Dtype::fp32, {b, n * 2, 2, 3}, uniform(b * n * 12, -1, 1, 1));
  Tensor weight = upload(cpu, Dtype::fp32, {n, 5, 12}, uniform(n * 60, -1, 1, 2));
  Tensor y(cpu, Dtype::fp32, {b, n * 5});
  const ConstTensorView flat = flatten(ConstTensorView(images), n);
  CHECK((flat.data == images.data() && flat.shape == Shape{b, n * 12}));
  const LinearArguments arguments{.x = flat, .weight = weight, .bias = {}, .y = y};
  make_linear_plan(cpu, describe_linear(arguments)).run(arguments, {Stream::cpu()});
  const auto x = download(cpu, images), w = download(cpu, weight), got = download(cpu, y);
  for (int64_t i = 0; i < b * n * 5; ++i) {
    const int64_t row = i / (n * 5), member = i / 5 % n;
    double sum = 0;
    for (int64_t k = 0; k < 12; ++k) {
      sum += x[static_cast<size_t>((row * n + member) * 12 + k)] *
             w[static_cast<size_t>((member * 5 + i % 5) * 12 + k)];
    }
    CHECK(std::abs(got[static_cast<size_t>(i)] - sum) < 1e-5);
  }
  const TensorView padded(images.data(), Dtype::fp32, {b, n, 2, 2}, Strides{24, 12, 3, 1},
                          cpu.device());
  CHECK_THROWS_MATCHES(flatten(padded, n), Error,
                       Message("flatten: the packed tensor has shape [3, 2, 2, 2] and strides [24, "
                               "12, 3, 1], expected channels and positions without gaps"));
}

TEST_CASE("concat: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor a(cpu, Dtype::fp32, {2, 4}), b(cpu, Dtype::fp32, {2, 2}), tall(cpu, Dtype::fp32, {3, 2}),
      half(cpu, Dtype::fp16, {2, 2}), whole(cpu, Dtype::fp32, {2, 6}),
      weight(cpu, Dtype::fp32, {2, 3, 4});
  const auto refuses = [&](const std::vector<ConstTensorView>& parts, int64_t n,
                           const TensorView& to, const char* message) {
    CHECK_THROWS_MATCHES(concat(operands::linear_x, parts, n, to, Stream::cpu()), Error,
                         Message(message));
  };
  refuses({}, 2, whole, "concat: linear x: no part, expected at least one");
  refuses({a, b}, 4, whole,
          "concat: linear x is [2, 6], expected 4 members of one length on axis 1");
  refuses({a}, 2, whole,
          "concat: linear x: the parts of a member are 2 long, expected the whole's = 3");
  refuses(
      {a, tall}, 2, whole,
      "concat: linear x: part 1 is [3, 2], expected a part of what is left of [2, 2, 3] after 2");
  refuses(
      {a, a}, 2, whole,
      "concat: linear x: part 1 is [2, 4], expected a part of what is left of [2, 2, 3] after 2");
  refuses({a, half}, 2, whole, "concat: part 1 is fp16, expected dtype = fp32");
  refuses({a, whole.view().narrow(1, 0, 2)}, 2, whole,
          "concat: linear x: part 1 overlaps the whole, expected memory of its own");
  CHECK_THROWS_MATCHES(
      slice(operands::linear_weight, weight.view(), 2, 0, 1), Error,
      Message("slice: linear weight has its members on axis 0, expected an operand whose members "
              "are joined along an axis of their own"));
  CHECK_THROWS_MATCHES(slice(operands::linear_x, whole.view(), 2, 2, 2), Error,
                       Message("slice: linear x: elements [2, 4), expected some of a member's 3"));
  CHECK_THROWS_MATCHES(slice(operands::linear_x, whole.view(), 2, 1, INT64_MAX), Error,
                       Message("slice: linear x: elements [1, 1 + 9223372036854775807), expected "
                               "some of a member's 3"));
  CHECK_THROWS_MATCHES(
      slice(operands::linear_x, whole.view(), 2, INT64_MIN, -1), Error,
      Message("slice: linear x: elements [-9223372036854775808, -9223372036854775808 + -1), "
              "expected some of a member's 3"));
}

TEST_CASE("concat: an operand of the caller's own has an axis that its tensors have") {
  const Context cpu = Context::cpu();
  Tensor whole(cpu, Dtype::fp32, {2, 6}), deep(cpu, Dtype::fp32, {1, 1, 1, 1, 1, 4});
  const ConstTensorView part = whole;
  for (const int axis :
       {2, 7, -3, -100, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    const PackedOperand own{"own", PackedOperand::Kind::joined, axis, 1, 6};
    const std::string wrong =
        "own: axis is " + std::to_string(axis) + ", expected one in [-2, 2) of 2 dimensions";
    CHECK_THROWS_MATCHES(slice(own, whole.view(), 2, 0, 1), Error, Message("slice: " + wrong));
    CHECK_THROWS_MATCHES(concat(own, std::span(&part, 1), 2, whole, Stream::cpu()), Error,
                         Message("concat: " + wrong));
  }
  CHECK_NOTHROW(slice({"own", PackedOperand::Kind::joined, -2, 1, 6}, whole.view(), 2, 0, 1));
  CHECK_THROWS_MATCHES(slice({"own", PackedOperand::Kind::joined, -1, 1, 6}, deep.view(), 2, 0, 1),
                       Error,
                       Message("slice: own has 6 dimensions, expected one less: members take one"));
}
