// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's number formats, mma.sync, ldmatrix and stmatrix against plain computations
// that follow the PTX ISA's tables element by element: groupID is lane / 4, threadID_in_group is
// lane % 4. Operands are random bits; sums are exact, so that results are compared exactly.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "verify/simt/formats.hpp"
#include "verify/simulator/simt_case.hpp"
#include "verify/simulator/simt_values.hpp"

namespace wide::simt {
namespace {

struct WarpCase : SimtCase {
  explicit WarpCase(int64_t shared_bytes = 0) : SimtCase(32) {
    config.dynamic_shared_bytes = shared_bytes;
    begin();
  }
  Warp& warp() { return blocks[0]->warps[0]; }
};

// ---- formats

TEST_CASE("every bit pattern of a small format has its value") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double f16 = value_of(MatrixType::f16, bits), bf16 = value_of(MatrixType::bf16, bits);
    const bool same = same_value(from_f16(half), f16) && same_value(from_bf16(half), bf16);
    if (!same) FAIL("16-bit pattern " << bits);
    if (std::isnan(f16) ? to_f16(from_f16(half)) != 0x7fff : to_f16(from_f16(half)) != half) {
      FAIL("fp16 round trip of " << bits);
    }
    if (!std::isnan(bf16) && to_bf16(from_bf16(half)) != half) FAIL("bf16 round trip of " << bits);
  }
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<uint8_t>(bits);
    const double e4m3 = value_of(MatrixType::e4m3, bits), e5m2 = value_of(MatrixType::e5m2, bits);
    CHECK(same_value(from_e4m3(byte), e4m3));
    CHECK(same_value(from_e5m2(byte), e5m2));
    if (!std::isnan(e4m3)) CHECK(to_e4m3(from_e4m3(byte)) == byte);
    if (std::isfinite(e5m2)) CHECK(to_e5m2(from_e5m2(byte)) == byte);
  }
  CHECK(from_tf32(0x3f801fffu) == 1.0f);
  CHECK(from_tf32(0x3f803fffu) == 1.0f + 0x1p-10f);
}

/// The nearest of the finite values 0 to `largest`, ties to the even pattern.
uint32_t nearest(MatrixType type, double value, uint32_t largest) {
  uint32_t best = 0;
  for (uint32_t bits = 1; bits <= largest; ++bits) {
    const double error = std::abs(value_of(type, bits) - value);
    const double least = std::abs(value_of(type, best) - value);
    if (error < least || (error == least && bits % 2 == 0)) best = bits;
  }
  return best;
}

TEST_CASE("rounding takes the nearest value, ties to even") {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-20, 20);
  for (int i = 0; i < 2000; ++i) {
    float value = std::exp2(exponent(random));
    if (i % 2 == 0) value = std::ldexp(std::round(std::ldexp(value, 10)), -10);  // ties
    const uint32_t sign = i % 3 == 0 ? 0x80 : 0;
    const float given = sign != 0 ? -value : value;
    if (to_e4m3(given) != (sign | nearest(MatrixType::e4m3, value, 0x7e))) FAIL("e4m3 " << given);
    if (to_e5m2(given) != (sign | nearest(MatrixType::e5m2, value, 0x7b))) FAIL("e5m2 " << given);
  }
  CHECK(to_f16(65519.0f) == 0x7bff);
  CHECK(to_f16(65520.0f) == 0x7c00);
  CHECK(to_f16(-1e30f) == 0xfc00);
  CHECK(to_f16(1.0f + 0x1p-11f) == 0x3c00);
  CHECK(to_f16(1.0f + 0x3p-11f) == 0x3c02);
  CHECK(to_f16(0x1p-25f) == 0);
  CHECK(to_f16(0x3p-25f) == 2);
  CHECK(to_f16(0x1.ffcp-15f) == 0x0400);  // up to the smallest normal one
  CHECK(to_bf16(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(to_bf16(1.0f + 0x3p-8f) == 0x3f82);
  CHECK(to_bf16(3.4e38f) == 0x7f80);
  CHECK(to_tf32(1.0f + 0x1p-11f) == std::bit_cast<uint32_t>(1.0f + 0x1p-10f));
  CHECK(to_tf32(-INFINITY) == 0xff800000u);
  CHECK(std::isnan(std::bit_cast<float>(to_tf32(NAN))));
  CHECK((to_e4m3(INFINITY) == 0x7e && to_e4m3(-500) == 0xfe && to_e4m3(NAN) == 0x7f));
  CHECK((to_e5m2(INFINITY) == 0x7b && to_e5m2(-1e9f) == 0xfb && to_e5m2(NAN) == 0x7f));
}

// ---- mma.sync: one function per table

struct Place {
  int row, column;
};
/// "Multiplicand A": element i of a lane.
Place place_in_a(int bits, int k, int group, int thread, int i) {
  if (bits == 16 && k == 16) {
    return {i < 2 || (i >= 4 && i < 6) ? group : group + 8,
            thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  }
  if (bits == 16) return {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
  if (bits == 32 && k == 8) {
    return {i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4};
  }
  if (bits == 32) return {i == 0 ? group : group + 8, thread};
  if (k == 32) {
    return {i < 4 || (i >= 8 && i < 12) ? group : group + 8,
            thread * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  }
  return {i < 4 ? group : group + 8, thread * 4 + (i & 3)};
}
/// "Multiplicand B": its row is k.
Place place_in_b(int bits, int k, int group, int thread, int i) {
  if (bits == 16) return {thread * 2 + (i & 1) + (k == 16 && i >= 2 ? 8 : 0), group};
  if (bits == 32) return {i == 0 ? thread : thread + 4, group};
  return {thread * 4 + (i & 3) + (k == 32 && i >= 4 ? 16 : 0), group};
}
Place place_in_c(int group, int thread, int i) {
  return {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
}

using Registers = std::vector<std::array<uint32_t, kLanes>>;

std::vector<const uint32_t*> pointers(const Registers& registers) {
  std::vector<const uint32_t*> all;
  for (const auto& lanes : registers) all.push_back(lanes.data());
  return all;
}
std::vector<uint32_t*> pointers(Registers& registers) {
  std::vector<uint32_t*> all;
  for (auto& lanes : registers) all.push_back(lanes.data());
  return all;
}
uint32_t element(const Registers& registers, int bits, int lane, int i) {
  const int each = 32 / bits;
  const uint32_t word = registers[static_cast<size_t>(i / each)][static_cast<size_t>(lane)];
  return bits == 32 ? word : word >> (i % each * bits) & ((1u << bits) - 1);
}

void check_mma(const MmaShape& shape, std::mt19937& random) {
  WarpCase test;
  require_mma(shape);
  const int bits_a = bits_of(shape.type_a), k = shape.k;
  const auto num_a = static_cast<size_t>(16 * k * bits_a / 1024);
  const size_t num_d = shape.d_is_half ? 2 : 4;
  Registers a(num_a), b(num_a / 2), c(num_d), d(num_d);
  const MatrixType accumulator = shape.c_is_half ? MatrixType::f16 : MatrixType::tf32;
  for (auto& lanes : a) fill_small(shape.type_a, lanes, random);
  for (auto& lanes : b) fill_small(shape.type_b, lanes, random);
  for (auto& lanes : c) fill_small(accumulator, lanes, random);
  double sums[16][8] = {}, left[16][32] = {}, right[32][8] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane / 4, thread = lane % 4;
    for (int i = 0; i < static_cast<int>(num_a) * 32 / bits_a; ++i) {
      const Place at = place_in_a(bits_a, k, group, thread, i);
      left[at.row][at.column] = value_of(shape.type_a, element(a, bits_a, lane, i));
    }
    for (int i = 0; i < static_cast<int>(num_a) * 16 / bits_a; ++i) {
      const Place at = place_in_b(bits_a, k, group, thread, i);
      right[at.row][at.column] = value_of(shape.type_b, element(b, bits_a, lane, i));
    }
    for (int i = 0; i < 4; ++i) {
      const Place at = place_in_c(group, thread, i);
      sums[at.row][at.column] =
          value_of(accumulator, element(c, shape.c_is_half ? 16 : 32, lane, i));
    }
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      for (int i = 0; i < k; ++i) sums[m][n] += left[m][i] * right[i][n];
    }
  }
  const auto out = pointers(d);
  mma(test.warp(), shape, out, pointers(std::as_const(a)), pointers(std::as_const(b)),
      pointers(std::as_const(c)));
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Place at = place_in_c(lane / 4, lane % 4, i);
      const double got = value_of(accumulator, element(d, shape.d_is_half ? 16 : 32, lane, i));
      INFO("k " << k << " type " << static_cast<int>(shape.type_a) << " lane " << lane << " d"
                << i);
      REQUIRE(got == sums[at.row][at.column]);
    }
  }
  CHECK(test.launch->counters.mma_flops == 2 * 16 * 8 * k);
}

TEST_CASE("mma.sync computes what its fragment tables say") {
  std::mt19937 random(2);
  for (const MatrixType a : kMatrixTypes) {
    for (const MatrixType b : kMatrixTypes) {
      if (a != b && (bits_of(a) != 8 || bits_of(b) != 8)) continue;
      for (const int k_bytes : {16, 32}) {
        MmaShape shape{16, 8, k_bytes * 8 / bits_of(a), a, b, false, false};
        for (int i = 0; i < 10; ++i) check_mma(shape, random);
        if (a == MatrixType::bf16 || a == MatrixType::tf32) continue;
        shape.d_is_half = shape.c_is_half = true;
        for (int i = 0; i < 10; ++i) check_mma(shape, random);
      }
    }
  }
}

TEST_CASE("mma.sync may write where it reads, and rounds fp16 sums once") {
  WarpCase test;
  Registers a(2), b(1), c(4);
  for (auto& lanes : a) lanes.fill(0x3f803f80);  // ones
  b[0].fill(0x3f803f80);
  for (auto& lanes : c) lanes.fill(std::bit_cast<uint32_t>(0.5f));
  const MmaShape shape{16, 8, 8, MatrixType::bf16, MatrixType::bf16, false, false};
  for (int i = 0; i < 2; ++i) {
    mma(test.warp(), shape, pointers(c), pointers(std::as_const(a)), pointers(std::as_const(b)),
        pointers(std::as_const(c)));
  }
  for (const auto& lanes : c) CHECK(std::bit_cast<float>(lanes[7]) == 16.5f);

  // 2048 + 8 x 0.5: every single sum in fp16 would stay at 2048.
  Registers halves(2), d(2);
  a[0].fill(0x3c003c00), a[1].fill(0x3c003c00), b[0].fill(0x38003800);
  for (auto& lanes : halves) lanes.fill(0x68006800);
  const MmaShape half{16, 8, 8, MatrixType::f16, MatrixType::f16, true, true};
  mma(test.warp(), half, pointers(d), pointers(std::as_const(a)), pointers(std::as_const(b)),
      pointers(std::as_const(halves)));
  CHECK(from_f16(static_cast<uint16_t>(d[0][0])) == 2052);
}

bool refuses(const MmaShape& shape, const std::string& name) {
  try {
    require_mma(shape);
  } catch (const Unsupported& refused) {
    return std::string(refused.what()).find(name) != std::string::npos;
  }
  return false;
}

TEST_CASE("mma shapes and types that are not computed are refused by name") {
  const MatrixType f16 = MatrixType::f16, bf16 = MatrixType::bf16, e4m3 = MatrixType::e4m3;
  CHECK(refuses({8, 8, 4, f16, f16, true, true}, "m8n8k4.f16.f16.f16.f16"));
  CHECK(refuses({16, 8, 32, f16, f16, false, false}, "m16n8k32"));
  CHECK(refuses({16, 8, 16, f16, bf16, false, false}, "f16.bf16"));
  CHECK(refuses({16, 8, 16, bf16, bf16, true, true}, "accumulators"));
  CHECK(refuses({16, 8, 16, f16, f16, true, false}, "accumulators"));
  CHECK(refuses({16, 8, 8, e4m3, e4m3, false, false}, "m16n8k8.f32.e4m3.e4m3.f32"));
}

// ---- ldmatrix and stmatrix

/// Rows in a random order, so that every lane's address matters.
std::array<uint32_t, kLanes> random_rows(std::mt19937& random) {
  std::array<uint32_t, kLanes> rows;
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = kSharedBase + static_cast<uint32_t>(i) * 16;
  std::shuffle(rows.begin(), rows.end(), random);
  return rows;
}

TEST_CASE("ldmatrix and stmatrix move the elements that their tables name") {
  std::mt19937 random(3);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{4}}) {
    for (const bool is_transposed : {false, true}) {
      WarpCase test(512);
      SharedMemory& shared = *test.blocks[0]->shared;
      for (int lane = 0; lane < kLanes; ++lane) {
        shared.write(test.warp().thread(lane), kSharedBase + static_cast<uint32_t>(lane) * 16, 16,
                     SharedAccess::generic, line(1));
      }
      std::vector<std::array<std::array<uint16_t, 8>, 8>> matrices(count);
      const auto rows = random_rows(random);
      for (size_t i = 0; i < count * 8; ++i) {
        for (uint16_t& value : matrices[i / 8][i % 8]) value = static_cast<uint16_t>(random());
        std::memcpy(shared.at(rows[i]), matrices[i / 8][i % 8].data(), 16);
      }
      warp_sync(test.warp(), test.warp().paths[0], kAllLanes, kAllLanes, line(2));
      Registers d(count);
      load_matrix(test.warp(), pointers(d), rows, is_transposed, line(3));
      for (size_t i = 0; i < count; ++i) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const auto& m = matrices[i];
          const size_t first = 2 * (lane % 4), other = lane / 4;
          const uint32_t low = is_transposed ? m[first][other] : m[other][first];
          const uint32_t high = is_transposed ? m[first + 1][other] : m[other][first + 1];
          if (d[i][lane] != (low | high << 16)) FAIL("matrix " << i << " lane " << lane);
        }
      }
      warp_sync(test.warp(), test.warp().paths[0], kAllLanes, kAllLanes, line(4));
      std::memset(shared.at(kSharedBase), 0, 512);
      store_matrix(test.warp(), pointers(std::as_const(d)), rows, is_transposed, line(5));
      for (size_t i = 0; i < count * 8; ++i) {
        CHECK(std::memcmp(shared.at(rows[i]), matrices[i / 8][i % 8].data(), 16) == 0);
      }
      CHECK(test.found_nothing());
      CHECK(test.launch->counters.matrix_passes == static_cast<int64_t>(2 * count));
    }
  }
}

TEST_CASE("rows of a matrix in the same banks take a pass each") {
  WarpCase test(8 * 128);
  std::array<uint32_t, kLanes> rows{};
  Registers s(1);
  const auto extra = [&](uint32_t distance) {
    for (uint32_t i = 0; i < 8; ++i) rows[i] = kSharedBase + i * distance;
    const int64_t before = test.launch->counters.matrix_extra;
    store_matrix(test.warp(), pointers(std::as_const(s)), rows, false, line(1));
    warp_sync(test.warp(), test.warp().paths[0], kAllLanes, kAllLanes, line(2));
    return test.launch->counters.matrix_extra - before;
  };
  CHECK(extra(16) == 0);
  CHECK(extra(0) == 0);  // one row for all
  CHECK(extra(32) == 1);
  CHECK(extra(128) == 7);
  CHECK(extra(128 + 16) == 0);
}

TEST_CASE("ldmatrix and stmatrix are checked like other accesses") {
  WarpCase test(512);
  Registers d(1);
  std::array<uint32_t, kLanes> rows{};
  for (uint32_t i = 0; i < 8; ++i) rows[i] = kSharedBase + i * 16;
  load_matrix(test.warp(), pointers(d), rows, false, line(1));
  CHECK(test.found_only(FindingKind::uninitialised_read));
  store_matrix(test.warp(), pointers(std::as_const(d)), rows, false, line(2));
  CHECK(test.found_nothing());
  std::swap(rows[0], rows[1]);
  load_matrix(test.warp(), pointers(d), rows, false, line(3));  // another lane's row, no __syncwarp
  CHECK(test.found_only(FindingKind::race));
  rows[3] += 8;
  CHECK_THROWS_AS(load_matrix(test.warp(), pointers(d), rows, false, line(4)), Fault);
  CHECK(test.count(FindingKind::misaligned) == 1);
  rows[3] = kSharedBase + 1536;
  CHECK_THROWS_AS(store_matrix(test.warp(), pointers(std::as_const(d)), rows, false, line(5)),
                  Fault);
  CHECK(test.count(FindingKind::out_of_bounds) == 1);
}

}  // namespace
}  // namespace wide::simt
