// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights: blobs worked out by hand, scales against the plain choice, weights that are
// not finite, the report of errors against plain loops, every dtype and device.
#include "wide/quantize.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "host/linear/quantized_codes.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "wide/convert.hpp"
#include "wide/wide.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr WeightFormat kFormats[] = {WeightFormat::fp8_e4m3, WeightFormat::int8,
                                     WeightFormat::fp6_e3m2, WeightFormat::int4,
                                     WeightFormat::fp4_e2m1};

/// A context, a weight and its blob.
struct Stored {
  Context context = Context::cpu({.num_threads = 2, .allocator = {}});
  QuantizedWeight how;
  std::vector<float> weight;
  std::vector<uint8_t> blob;

  Stored(const QuantizedWeight& how_, std::vector<float> weight_)
      : how(how_), weight(std::move(weight_)), blob(static_cast<size_t>(quantized_bytes(how))) {
    const ConstTensorView member = view();
    quantize_weights(context, how, std::span(&member, 1), blobs(), Stream::cpu());
  }
  ConstTensorView view() const {
    return {weight.data(), Dtype::fp32, {how.out_features, how.in_features}, Device{}};
  }
  TensorView blobs() {
    return {blob.data(), Dtype::uint8, {1, static_cast<int64_t>(blob.size())}, Device{}};
  }
  std::vector<float> values() {
    std::vector<float> back(weight.size());
    const TensorView member(back.data(), Dtype::fp32, {how.out_features, how.in_features},
                            Device{});
    dequantize_weights(context, how, blobs(), std::span(&member, 1), Stream::cpu());
    return back;
  }
  QuantizationError error() {
    const TensorView bytes(blob.data(), Dtype::uint8, {static_cast<int64_t>(blob.size())},
                           Device{});
    return quantization_error(context, how, view(), bytes, Stream::cpu());
  }
};

std::vector<float> random_weights(int64_t count, uint64_t seed, float scale = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> weights(static_cast<size_t>(count));
  for (float& weight : weights) weight = normal(random);
  return weights;
}

}  // namespace

TEST_CASE("a tile worked out by hand") {
  // Output 9 of strip 0, input 64 + 21: lane 4 * 1 + 2 of tile 1, field 4 * 1 + 0 + 1 of half 1.
  QuantizedWeight how{WeightFormat::int4, 64, 16, 128};
  std::vector<float> weight(16 * 128);
  weight[9 * 128 + 64 + 21] = -3.5f;  // scale 0.5: code 8 - 7
  const Stored four(how, weight);
  CHECK(four.blob.size() == 2 * (32 + 512));
  const size_t tile = 32 + 512 + 32, word = 2 * (5 / 4) + 1;
  CHECK(four.blob[tile + 6 * 16 + 2 * word] == (8 | 1 << 4));  // bits 4 (5 % 4) to 7
  CHECK(detail::load_at<uint16_t>(four.blob.data() + 32 + 512, 2 * 1 + 1) == float_to_bf16(0.5f));
  how.format = WeightFormat::int8;
  weight[9 * 128 + 64 + 21] = 127;
  const Stored eight(how, weight);  // f = 2: word 2 (5 / 2) + 1, its second byte
  CHECK(eight.blob[32 + 1024 + 32 + 6 * 16 + 2 * 5 + 1] == 255);
  CHECK(std::count(eight.blob.begin(), eight.blob.end(), 255) == 1);
}

TEST_CASE("scales lose no more than the plain choice, and nothing where nothing need be lost") {
  for (const WeightFormat format : kFormats) {
    for (const int64_t group_size : {64, 128}) {
      INFO(weight_format_name(format) << ", groups of " << group_size);
      const QuantizedWeight how{format, group_size, 19, 200};
      Stored random(how, random_weights(19 * 200, 5));
      const std::vector<float> values = random.values();
      for (int64_t o = 0; o < how.out_features; ++o) {
        for (int64_t first = 0; first < how.in_features; first += group_size) {
          double largest = 0, stored = 0, plain = 0;
          const int64_t last = std::min(first + group_size, how.in_features);
          for (int64_t k = first; k < last; ++k) {
            const auto at = static_cast<size_t>(o * how.in_features + k);
            largest = std::max(largest, std::fabs(static_cast<double>(random.weight[at])));
          }
          const float scale =
              bf16_to_float(float_to_bf16(static_cast<float>(largest / largest_value(format))));
          for (int64_t k = first; k < last; ++k) {
            const auto at = static_cast<size_t>(o * how.in_features + k);
            const double w = random.weight[at], s = scale;
            const double value = value_of_code(format, code_of_value(format, w / s));
            plain += std::pow(s * value - w, 2);
            stored += std::pow(static_cast<double>(values[at]) - w, 2);
          }
          REQUIRE(stored <= plain * (1 + 1e-12));
        }
      }
      // What a blob stands for is quantised to itself.
      Stored again(how, values);
      CHECK(again.values() == values);
      std::vector<float> whole(19 * 200);
      for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(i * 7 % 5) - 2;
      CHECK(Stored(how, whole).values() == whole);
    }
  }
}

TEST_CASE("zeros, tiny and huge weights, and such as are not finite") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const WeightFormat format : kFormats) {
    INFO(weight_format_name(format));
    const QuantizedWeight how{format, 64, 5, 130};
    std::vector<float> weight(5 * 130, 0.0f);
    const auto at = [](int64_t o, int64_t k) { return static_cast<size_t>(o * 130 + k); };
    weight[at(1, 3)] = std::numeric_limits<float>::denorm_min();
    weight[at(2, 70)] = std::numeric_limits<float>::quiet_NaN();
    weight[at(3, 129)] = -kInfinity;
    weight[at(4, 0)] = std::numeric_limits<float>::max();
    weight[at(4, 1)] = -std::numeric_limits<float>::max();
    const std::vector<float> values = Stored(how, weight).values();
    for (int64_t k = 0; k < 130; ++k) {
      CHECK(values[at(0, k)] == 0);
      CHECK(std::fabs(values[at(1, k)]) < 1e-38f);
      CHECK(std::isnan(values[at(2, k)]) == (k / 64 == 1));  // its group, and no other
      CHECK(std::isnan(values[at(3, k)]) == (k / 64 == 2));
    }
    CHECK(values[at(4, 0)] > 0.9f * std::numeric_limits<float>::max());
    CHECK(values[at(4, 1)] == -values[at(4, 0)]);
    const QuantizationError error = Stored(how, weight).error();
    CHECK((std::isnan(error.max_abs) && std::isnan(error.rms) && std::isnan(error.snr_db)));
    CHECK((error.worst_output == 2 && error.worst_group == 1));
  }
}

TEST_CASE("the report of errors is what plain loops say") {
  for (const WeightFormat format : kFormats) {
    const QuantizedWeight how{format, 128, 33, 300};
    Stored stored(how, random_weights(33 * 300, 9, 0.02f));
    const std::vector<float> values = stored.values();
    double max_abs = 0, squares = 0, weights = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double off = static_cast<double>(values[i]) - static_cast<double>(stored.weight[i]);
      max_abs = std::max(max_abs, std::fabs(off));
      squares += off * off;
      weights += static_cast<double>(stored.weight[i]) * static_cast<double>(stored.weight[i]);
    }
    const QuantizationError error = stored.error();
    const auto near = [](double a, double b) { return std::fabs(a - b) <= 1e-9 * std::fabs(b); };
    INFO(weight_format_name(format) << ": " << error.snr_db << " dB");
    CHECK(error.max_abs == max_abs);
    CHECK(near(error.rms, std::sqrt(squares / (33 * 300))));
    CHECK(near(error.relative_frobenius, std::sqrt(squares / weights)));
    CHECK(near(error.snr_db, 10 * std::log10(weights / squares)));
    // What b bits of normal weights are worth, give or take.
    const double least = weight_format_bits(format) == 4 ? 17 : 25;
    CHECK((error.snr_db > least && error.snr_db < 60));
    // A group that is made worse is found.
    stored.weight[7 * 300 + 260] += 1000;
    const QuantizationError worse = stored.error();
    CHECK((worse.worst_output == 7 && worse.worst_group == 2));
    CHECK(worse.max_abs > 999);
  }
  Stored exact({WeightFormat::int8, 64, 2, 3}, {1, 2, 3, -1, -2, 0});
  CHECK((exact.error().rms == 0 && std::isinf(exact.error().snr_db)));
}

TEST_CASE("members of every dtype, strided, on every device, give the same blobs") {
  for (const Context& context : devices_at_hand()) {
    const OwnedStream stream(context);
    const Context cpu = Context::cpu();
    const QuantizedWeight how{WeightFormat::fp4_e2m1, 64, 21, 70};
    for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
      // Two members inside rows that are longer than theirs.
      Tensor host(cpu, dtype, {2, 21, 75}), packed(context, dtype, {2, 21, 75});
      const std::vector<float> random = random_weights(2 * 21 * 75, 3);
      encode_row(dtype, random.data(), host.data(), host.num_elements());
      copy(host, packed, stream.get());
      std::vector<ConstTensorView> members;
      std::vector<TensorView> back;
      Tensor restored(context, dtype, {2, 21, 75});
      fill_bytes(restored.view(), 0, stream.get());
      for (int64_t i = 0; i < 2; ++i) {
        const auto member = [&](Tensor& tensor) {
          const int64_t skip = i * 21 * 75 * dtype_bytes(dtype);
          return TensorView(static_cast<std::byte*>(tensor.data()) + skip, dtype, {21, 70},
                            Strides{75, 1}, context.device());
        };
        members.push_back(member(packed));
        back.push_back(member(restored));
      }
      const int64_t bytes = quantized_bytes(how);
      Tensor blobs(context, Dtype::uint8, {2, bytes});
      quantize_weights(context, how, members, blobs, stream.get());
      dequantize_weights(context, how, blobs, back, stream.get());
      Tensor got(cpu, Dtype::uint8, {2, bytes}), values(cpu, dtype, {2, 21, 75});
      copy(blobs, got, stream.get());
      copy(restored, values, stream.get());
      context.synchronize(stream.get());
      for (int64_t i = 0; i < 2; ++i) {
        std::vector<float> dense(21 * 70);
        for (int64_t o = 0; o < 21; ++o) {
          for (int64_t k = 0; k < 70; ++k) {
            dense[static_cast<size_t>(o * 70 + k)] =
                static_cast<float>(load_element(host.data(), dtype, (i * 21 + o) * 75 + k));
          }
        }
        Stored one(how, dense);
        CHECK(std::equal(one.blob.begin(), one.blob.end(),
                         static_cast<const uint8_t*>(got.data()) + i * bytes));
        const std::vector<float> expected = one.values();
        for (int64_t o = 0; o < 21; ++o) {
          for (int64_t k = 0; k < 75; ++k) {
            uint64_t rounded = 0;
            if (k < 70) {
              store_element(&rounded, dtype, 0,
                            static_cast<double>(expected[static_cast<size_t>(o * 70 + k)]));
            }
            REQUIRE(load_element(values.data(), dtype, (i * 21 + o) * 75 + k) ==
                    load_element(&rounded, dtype, 0));
          }
        }
        const QuantizationError error =
            quantization_error(context, how, members[static_cast<size_t>(i)],
                               ConstTensorView(blobs.view().narrow(0, i, 1).data, Dtype::uint8,
                                               {bytes}, context.device()),
                               stream.get());
        CHECK(error.rms == one.error().rms);
      }
    }
  }
}

TEST_CASE("what cannot be quantised is refused in words") {
  const auto bytes = [&](const QuantizedWeight& how) {
    return refusal_of([&] { (void)quantized_bytes(how); });
  };
  CHECK(bytes({WeightFormat::int4, 48, 4, 4}) == "quantize: group_size is 48, expected 64 or 128");
  CHECK_THAT(bytes({WeightFormat::packed, 64, 4, 4}), ContainsSubstring("format is packed"));
  CHECK(bytes({WeightFormat(99), 64, 4, 4}) ==
        "quantize: format is enumerator 99, expected one in [0, 5]");
  CHECK_THAT(bytes({WeightFormat::int4, 64, -1, 4}), ContainsSubstring("weight is [-1, 4]"));
  CHECK_THAT(bytes({WeightFormat::int4, 64, INT64_MAX, 4}), ContainsSubstring("63 bits"));
  CHECK_THAT(bytes({WeightFormat::int4, 64, int64_t{1} << 40, int64_t{1} << 40}),
             ContainsSubstring("64"));
  CHECK(quantized_bytes({WeightFormat::int4, 64, 0, 4}) == 0);
  CHECK(quantized_bytes({WeightFormat::int4, 64, 4, 0}) == 0);
  CHECK_THAT(bytes({WeightFormat::int4, 64, 0, INT64_MAX / 4}), ContainsSubstring("64"));

  const auto strip_bytes = [&](const QuantizedWeight& how) {
    return refusal_of([&] { (void)quantized_strip_bytes(how); });
  };
  CHECK(strip_bytes({WeightFormat::int4, 0, 4, 4}) ==
        "quantize: group_size is 0, expected 64 or 128");
  CHECK_THAT(strip_bytes({WeightFormat::packed, 64, 4, 4}), ContainsSubstring("format is packed"));
  CHECK_THAT(strip_bytes({WeightFormat::int8, 64, 4, -9}), ContainsSubstring("weight is [4, -9]"));
  CHECK_THAT(strip_bytes({WeightFormat::int8, 128, 4, INT64_MAX}), ContainsSubstring("63 bits"));
  CHECK_THAT(strip_bytes({WeightFormat::int8, 128, 4, INT64_MAX / 4}), ContainsSubstring("64"));
  CHECK(quantized_strip_bytes({WeightFormat::int4, 64, 99, 65}) == 2 * (32 + 512));
  CHECK(quantized_strip_bytes({WeightFormat::int4, 64, 0, 0}) == 0);

  Stored stored({WeightFormat::int8, 64, 4, 6}, std::vector<float>(24));
  const auto refused = [&](const ConstTensorView& member, const TensorView& blobs) {
    return refusal_of([&] {
      quantize_weights(stored.context, stored.how, std::span(&member, 1), blobs, Stream::cpu());
    });
  };
  TensorView blobs = stored.blobs();
  ConstTensorView member = stored.view();
  blobs.shape[1] -= 1;
  CHECK(refused(member, blobs) ==
        "quantize: blobs is [1, 1055], expected [num_members, member_bytes] = [1, 1056]");
  blobs = stored.blobs();
  blobs.dtype = Dtype::fp8_e4m3;
  CHECK(refused(member, blobs) == "quantize: blobs is fp8_e4m3, expected dtype = uint8");
  member.shape = {6, 4};
  CHECK_THAT(refused(member, stored.blobs()), ContainsSubstring("member 0 is [6, 4], expected"));
  member = stored.view();
  member.dtype = Dtype::int32;
  CHECK(refused(member, stored.blobs()) ==
        "quantize: member 0 is int32, expected fp32, fp16 or bf16");
}

}  // namespace wide::test
