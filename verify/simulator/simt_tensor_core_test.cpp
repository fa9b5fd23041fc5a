// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Sums as a tensor core makes them, against cases worked out by hand.
#include "verify/simt/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "verify/simt/fragments.hpp"

namespace wide::simt {
namespace {

/// sum + a[0] b[0] + a[1] b[1] + .., in one instruction.
float fused(const TensorCore& core, MatrixType type, float sum, const std::vector<float>& a,
            const std::vector<float>& b) {
  std::array<float, kFragmentRows * kMaxK> rows{};
  std::vector<float> columns(kMaxK * 8), d(kFragmentRows * 8);
  std::copy(a.begin(), a.end(), rows.begin() + 3 * kMaxK);  // row 3, column 5
  for (size_t i = 0; i < b.size(); ++i) columns[i * 8 + 5] = b[i];
  d[3 * 8 + 5] = sum;
  multiply_add(core, type, rows.data(), type, columns.data(), static_cast<int>(b.size()), 8,
               d.data());
  return d[3 * 8 + 5];
}

constexpr TensorCore kUsual{};

TEST_CASE("terms keep 25 bits below the largest, and are cut off toward zero") {
  const auto add = [](float sum, const std::vector<float>& terms) {
    return fused(kUsual, MatrixType::bf16, sum, terms, std::vector<float>(terms.size(), 1));
  };
  CHECK(add(1, {0x1p-24f, 0x1p-24f}) == 1 + 0x1p-23f);
  CHECK(add(1, std::vector<float>(4, 0x1p-25f)) == 1 + 0x1p-23f);
  // Fp32 would round 1 + 2^-23; here each of eight is lost before they are added.
  CHECK(add(1, std::vector<float>(8, 0x1p-26f)) == 1);
  CHECK(add(1, {-0x1p-26f}) == 1);
  // Kept, and then the whole is cut off: between 1 - 2^-24 and 1.
  CHECK(add(1, {-0x1p-25f}) == 1 - 0x1p-24f);
  CHECK(add(-1, {0x1p-25f}) == -1 + 0x1p-24f);
  // What cancels leaves what was below it, as far as it was kept.
  CHECK(add(0x1p20f, {-0x1p20f, 0x1p-5f, 0x1p-6f}) == 0x1p-5f);
  CHECK(add(0, {0, -0.0f}) == 0);
  CHECK(add(0, {0x1p-126f, 0x1p-130f}) == 0x1p-126f + 0x1p-130f);
}

TEST_CASE("the exponent of a product is the sum of its factors'") {
  // 1.5 * 1.5 = 2.25 has exponent 0: 25 bits are kept below 1, and 2^-25 is.
  CHECK(fused(kUsual, MatrixType::f16, 0, {1.5f, 0x1p-12f, 0x1p-12f}, {1.5f, 0x1p-12f, 0x1p-12f}) ==
        2.25f + 0);  // the whole has 22 bits behind the point
  CHECK(fused(kUsual, MatrixType::f16, -2.25f, {1.5f, 0x1p-12f}, {1.5f, 0x1p-12f}) == 0x1p-24f);
  // A subnormal of fp16 has the least exponent, -14: 2^-24 times 2^-14 keeps 25 bits below 2^-28.
  CHECK(fused(kUsual, MatrixType::f16, 0x1p-53f, {0x1p-24f}, {0x1p-14f}) == 0x1p-38f + 0x1p-53f);
  CHECK(fused(kUsual, MatrixType::f16, 0x1p-54f, {0x1p-24f}, {0x1p-14f}) == 0x1p-38f);
}

TEST_CASE("fp8 sums of warpgroups keep 13 bits") {
  const TensorCore core = TensorCore::of_wgmma(MatrixType::e4m3);
  const auto add = [&](float sum, const std::vector<float>& terms) {
    return fused(core, MatrixType::e4m3, sum, terms, std::vector<float>(terms.size(), 1));
  };
  CHECK(add(128, {0x1p-6f}) == 128 + 0x1p-6f);
  CHECK(add(256, {0x1p-6f, 0x1p-6f}) == 256);
  CHECK(add(255.99609375f, {8}) == 263.96875f);  // 9 bits in front of the point leave 5 behind
  CHECK(TensorCore::of_wgmma(MatrixType::f16).fraction_bits == 25);
}

TEST_CASE("whole numbers are exact below 2^24, and what is not finite spreads") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<float> a(16), b(16);
    auto exact = static_cast<int64_t>(random() % 4'000'000) - 2'000'000;
    const auto sum = static_cast<float>(exact);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(random() % 513) - 256,
      b[i] = static_cast<float>(random() % 513) - 256;
      exact += static_cast<int64_t>(a[i]) * static_cast<int64_t>(b[i]);
    }
    REQUIRE(fused(kUsual, MatrixType::f16, sum, a, b) == static_cast<float>(exact));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(fused(kUsual, MatrixType::bf16, 1, {kInfinity, 2}, {1, 3}) == kInfinity);
  CHECK(std::isnan(fused(kUsual, MatrixType::bf16, 1, {kInfinity, kInfinity}, {1, -1})));
  CHECK(std::isnan(fused(kUsual, MatrixType::bf16, 1, {kInfinity}, {0})));
  CHECK(std::isnan(fused(kUsual, MatrixType::bf16, NAN, {1}, {1})));
  CHECK(fused(kUsual, MatrixType::bf16, 0, {0x1p100f}, {0x1p100f}) == kInfinity);
}

}  // namespace
}  // namespace wide::simt
