// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's warpgroup products: every n, type, layout, swizzle and flag against a plain
// computation that places elements by the canonical layouts of the PTX ISA, written as shapes and
// strides.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>

#include "verify/simulator/simt_wgmma_case.hpp"

namespace wide::simt {
namespace {

// ---- operands in shared memory

/// One mode of a layout: `extent` steps of `stride` elements.
struct Mode {
  int64_t extent, stride;
};
int64_t offset_of(int64_t index, const std::vector<Mode>& modes) {
  int64_t offset = 0;
  for (const Mode& mode : modes) {
    offset += index % mode.extent * mode.stride;
    index /= mode.extent;
  }
  return offset;
}
constexpr int64_t kAny = 1 << 20;

struct Operand {
  MatrixType type;
  int size;  ///< rows of A, columns of B
  bool is_mn_major;
  Swizzle swizzle;
  std::vector<uint32_t> bits{};  ///< [size][k]
  uint64_t descriptor = 0;

  int k() const { return 256 / bits_of(type); }
  double value(int mn, int i) const {
    return value_of(type, bits[static_cast<size_t>(mn * k() + i)]);
  }
};

/// Swizzle<B, 4, 3>: bits 4 and up are changed by the bits 3 above them.
uint32_t xor_bits(uint32_t address, int count) {
  for (int bit = 0; bit < count; ++bit) address ^= (address >> (7 + bit) & 1) << (4 + bit);
  return address;
}

/// Puts random elements where the canonical layout has them.
void place(GroupCase& test, Operand& operand, uint32_t base, std::mt19937& random) {
  const int bytes = bits_of(operand.type) / 8;
  const int64_t t = 16 / bytes;  // elements of 16 bytes
  const int swizzle_bits = static_cast<int>(operand.swizzle);
  const int64_t width = int64_t{1} << swizzle_bits;  // 16-byte pieces of a row of the atom
  const int64_t atom = 8 * t * width;
  const bool is_swizzled = operand.swizzle != Swizzle::none;
  // Strides in elements: one dimension is dense in atoms, the other jumps over all of it, padded.
  const int64_t atoms_mn =
      operand.is_mn_major ? (operand.size + t * width - 1) / (t * width) : operand.size / 8;
  const int64_t padded = random() % 2 * atom;
  const bool is_mn_first = random() % 2 == 0;
  const int64_t step_mn = is_mn_first ? atom : 2 * atom + padded;
  const int64_t step_k = is_mn_first ? atoms_mn * atom + padded : atom;
  std::vector<Mode> of_mn, of_k;
  int64_t leading = 0, stride = 0, advance = 0;
  if (!operand.is_mn_major) {
    of_mn = {{8, t * width}, {kAny, stride = step_mn}};
    of_k = is_swizzled ? std::vector<Mode>{{kAny, 1}}
                       : std::vector<Mode>{{t, 1}, {kAny, leading = step_k}};
    if (is_swizzled) advance = static_cast<int64_t>(random() % (width / 2 ? width / 2 : 1)) * 32;
  } else if (is_swizzled) {
    of_mn = {{t * width, 1}, {kAny, leading = step_mn}};
    of_k = {{8, t * width}, {kAny, stride = step_k}};
  } else {
    of_mn = {{t, 1}, {kAny, stride = step_mn}};
    of_k = {{8, t}, {kAny, leading = step_k}};
  }
  const uint32_t start = base + static_cast<uint32_t>(advance);
  const auto field = [](int64_t value, int shift) {
    return static_cast<uint64_t>(value >> 4 & 0x3fff) << shift;
  };
  operand.descriptor = field(start, 0) | field(leading * bytes, 16) | field(stride * bytes, 32) |
                       uint64_t{is_swizzled ? static_cast<uint64_t>(4 - swizzle_bits) : 0} << 62;
  operand.bits.resize(static_cast<size_t>(operand.size * operand.k()));
  for (int mn = 0; mn < operand.size; ++mn) {
    for (int k = 0; k < operand.k(); ++k) {
      const uint32_t element = small_element(operand.type, random);
      operand.bits[static_cast<size_t>(mn * operand.k() + k)] = element;
      const auto offset =
          static_cast<uint32_t>((offset_of(mn, of_mn) + offset_of(k, of_k)) * bytes);
      std::memcpy(test.block().shared->at(xor_bits(start + offset, swizzle_bits)), &element,
                  static_cast<size_t>(bytes));
    }
  }
}

// ---- fragments: tables "wgmma .m64nNk16" of D and of A in registers

struct Place {
  int row, column;
};
/// Element `i` of a thread's D, i < n / 2.
Place place_in_d(int thread, int i) {
  const int warp = thread / 32, group = thread % 32 / 4, quad = thread % 4;
  return {warp * 16 + group + (i % 4 >= 2 ? 8 : 0), i / 4 * 8 + quad * 2 + i % 2};
}
/// Element `i` of a thread's A, i < 16 bytes.
Place place_in_a(MatrixType type, int thread, int i) {
  const int each = 32 / bits_of(type), in_register = i % each, index = i / each;
  const int warp = thread / 32, group = thread % 32 / 4, quad = thread % 4;
  return {warp * 16 + group + (index % 2 != 0 ? 8 : 0),
          quad * each + in_register + (index >= 2 ? 4 * each : 0)};
}

/// A as rows of k values, from wherever it is.
std::vector<double> a_values(Product& product, const Operand& shared) {
  std::vector<double> values(static_cast<size_t>(kM * shared.k()));
  const auto at = [&](int row, int k) -> double& {
    return values[static_cast<size_t>(row * shared.k() + k)];
  };
  if (!product.shape.a_in_registers) {
    for (int row = 0; row < kM; ++row) {
      for (int k = 0; k < shared.k(); ++k) at(row, k) = shared.value(row, k);
    }
    return values;
  }
  const int bits = bits_of(product.shape.type_a);
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < 128 / bits; ++i) {
      const Place place = place_in_a(product.shape.type_a, thread, i);
      at(place.row, place.column) =
          value_of(product.shape.type_a, product.a.element(thread, i, bits));
    }
  }
  return values;
}

/// Issues, waits and compares one product.
void check_product(GroupCase& test, const WgmmaShape& shape, Swizzle of_a, Swizzle of_b,
                   std::mt19937& random) {
  require_wgmma(shape);
  Operand a{shape.type_a, kM, shape.a_is_mn_major, of_a};
  Operand b{shape.type_b, shape.n, shape.b_is_mn_major, of_b};
  place(test, a, 0x800, random);
  place(test, b, 0x800 + (48 << 10), random);
  test.write(0x800, 190 << 10);
  test.publish();
  Product product(shape, random);
  const bool scale_d = random() % 4 != 0;
  const double sign = shape.negate_a != shape.negate_b ? -1 : 1;
  const std::vector<double> left = a_values(product, a);
  std::vector<double> right, expected;
  for (const uint32_t bits : b.bits) right.push_back(value_of(b.type, bits));
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < shape.n / 2; ++i) {
      const Place at = place_in_d(thread, i);
      double sum = scale_d ? product.d_value(thread, i) : 0;
      for (int k = 0; k < a.k(); ++k) {
        sum += sign * left[static_cast<size_t>(at.row * a.k() + k)] *
               right[static_cast<size_t>(at.column * a.k() + k)];
      }
      expected.push_back(sum);
    }
  }
  for (int warp = 0; warp < kWarps; ++warp) {
    test.async().wgmma_fence(test.warp(warp), line(9));
    product.issue(test, warp, a.descriptor, b.descriptor, scale_d);
    test.async().wgmma_commit(test.warp(warp), line(11));
  }
  CHECK(std::isnan(product.d_value(5, 0)));
  for (int warp = 0; warp < kWarps; ++warp) test.async().wgmma_wait(test.warp(warp), 0, line(12));
  size_t next = 0;
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < shape.n / 2; ++i) {
      const double got = product.d_value(thread, i);
      if (got == expected[next++]) continue;
      FAIL("thread " << thread << " d" << i << " is " << got << ", expected " << expected[next - 1]
                     << ": n " << shape.n << " types " << static_cast<int>(shape.type_a) << " "
                     << static_cast<int>(shape.type_b) << " swizzles " << static_cast<int>(of_a)
                     << " " << static_cast<int>(of_b) << " transposed " << shape.a_is_mn_major
                     << shape.b_is_mn_major << " registers " << shape.a_in_registers);
    }
  }
  test.barrier();
}

TEST_CASE("wgmma computes what its layouts and fragment tables say") {
  std::mt19937 random(4);
  for (const Delivery delivery : {Delivery::lazy, Delivery::eager, Delivery::random}) {
    GroupCase test(delivery);
    for (const MatrixType type_a : kMatrixTypes) {
      for (const MatrixType type_b : kMatrixTypes) {
        if (type_a != type_b && (bits_of(type_a) != 8 || bits_of(type_b) != 8)) continue;
        for (int n = 8; n <= 256; n += 8) {
          WgmmaShape shape{.n = n, .type_a = type_a, .type_b = type_b};
          const bool may_be_half = type_a == MatrixType::f16 || bits_of(type_a) == 8;
          shape.d_is_half = may_be_half && random() % 2 == 0;
          shape.a_in_registers = random() % 3 == 0;
          shape.a_is_mn_major = bits_of(type_a) == 16 && !shape.a_in_registers && random() % 2 == 0;
          shape.b_is_mn_major = bits_of(type_a) == 16 && random() % 2 == 0;
          shape.negate_a = random() % 3 == 0;
          shape.negate_b = random() % 3 == 0;
          check_product(test, shape, static_cast<Swizzle>(random() % 4),
                        static_cast<Swizzle>(random() % 4), random);
        }
      }
    }
    test.async().end_of_block();
    const bool is_clean = test.found_nothing();
    INFO(test.said);
    CHECK(is_clean);
  }
}

TEST_CASE("every swizzle and direction of both operands") {
  std::mt19937 random(5);
  GroupCase test;
  for (int swizzles = 0; swizzles < 16; ++swizzles) {
    for (int directions = 0; directions < 4; ++directions) {
      const WgmmaShape shape{
          .n = 72, .a_is_mn_major = (directions & 1) != 0, .b_is_mn_major = (directions & 2) != 0};
      check_product(test, shape, static_cast<Swizzle>(swizzles % 4),
                    static_cast<Swizzle>(swizzles / 4), random);
    }
  }
  CHECK(test.found_nothing());
  CHECK(test.launch->counters.wgmma_flops == int64_t{64} * 2 * 64 * 72 * 16);
}

bool refuses(const WgmmaShape& shape, const std::string& name) {
  try {
    require_wgmma(shape);
  } catch (const Unsupported& refused) {
    return std::string(refused.what()).find(name) != std::string::npos;
  }
  return false;
}

TEST_CASE("wgmma shapes and types that PTX lacks are refused by name") {
  const MatrixType f16 = MatrixType::f16, bf16 = MatrixType::bf16, tf32 = MatrixType::tf32;
  CHECK(refuses({.n = 12}, "m64n12k16"));
  CHECK(refuses({.n = 264}, "m64n264k16"));
  CHECK(refuses({.n = 8, .type_a = f16, .type_b = bf16}, "f16.bf16"));
  CHECK(refuses({.n = 8, .d_is_half = true}, "accumulators"));
  CHECK(refuses({.n = 8, .type_a = tf32, .type_b = tf32, .b_is_mn_major = true}, "16-bit"));
  CHECK(refuses({.n = 8, .a_in_registers = true, .a_is_mn_major = true}, "registers"));
}

}  // namespace
}  // namespace wide::simt
