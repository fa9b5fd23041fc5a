// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tables of the PTX ISA, "Matrix Fragments for mma.m16n8k16" and its kin, and "Register
// Fragments and Shared Memory Matrix Layouts" of wgmma. Lane l is lane l % 4 of quad l / 4.
#include "verify/simt/fragments.hpp"

#include <array>
#include <cstring>

#include "verify/simt/formats.hpp"

namespace wide::simt {

namespace {

constexpr int kQuads = 8, kQuadLanes = 4;

template <class Element, class Convert>
void convert_all(const void* elements, int64_t count, float* to, const Convert& convert) {
  const auto* bytes = static_cast<const std::byte*>(elements);
  for (int64_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, bytes + i * static_cast<int64_t>(sizeof element), sizeof element);
    to[i] = convert(element);
  }
}

int elements_per_quad(MatrixType type) {
  return kQuadLanes * static_cast<int>(sizeof(uint32_t)) / element_bytes(type);
}

/// One register of 32 lanes: the floats of quad q are consecutive, from q * elements_per_quad.
using QuadFloats = std::array<float, kLanes * sizeof(uint32_t)>;
QuadFloats register_floats(MatrixType type, const uint32_t* lanes) {
  QuadFloats floats;
  to_floats(type, lanes, kQuads * elements_per_quad(type), floats.data());
  return floats;
}

/// Where the two elements of a lane begin, for pair `i`: the even pairs are in rows 0 to 7.
int64_t pair_offset(size_t i, int lane, int n) {
  const auto row = static_cast<int64_t>(i % 2) * kQuads + lane / kQuadLanes;
  return row * n + static_cast<int64_t>(i / 2) * 8 + lane % kQuadLanes * 2;
}

}  // namespace

const char* name(MatrixType type) {
  switch (type) {
    case MatrixType::f16:
      return "f16";
    case MatrixType::bf16:
      return "bf16";
    case MatrixType::tf32:
      return "tf32";
    case MatrixType::e4m3:
      return "e4m3";
    case MatrixType::e5m2:
      return "e5m2";
  }
  return "unknown";
}

bool are_compatible(MatrixType a, MatrixType b) {
  return a == b || (element_bytes(a) == 1 && element_bytes(b) == 1);
}

void to_floats(MatrixType type, const void* elements, int64_t count, float* to) {
  switch (type) {
    case MatrixType::f16:
      return convert_all<uint16_t>(elements, count, to, from_f16);
    case MatrixType::bf16:
      return convert_all<uint16_t>(elements, count, to, from_bf16);
    case MatrixType::tf32:
      return convert_all<uint32_t>(elements, count, to, from_tf32);
    case MatrixType::e4m3:
      return convert_all<uint8_t>(elements, count, to, from_e4m3);
    case MatrixType::e5m2:
      return convert_all<uint8_t>(elements, count, to, from_e5m2);
  }
}

void load_a_fragment(MatrixType type, std::span<const uint32_t* const> registers, float* rows) {
  const int count = elements_per_quad(type);
  for (size_t i = 0; i < registers.size(); ++i) {
    const QuadFloats floats = register_floats(type, registers[i]);
    // Registers 1 and 3 are eight rows down, 2 and 3 in the second half of k.
    float* to = rows + (i % 2) * kQuads * kMaxK + i / 2 * static_cast<size_t>(count);
    for (int quad = 0; quad < kQuads; ++quad) {
      std::memcpy(to + quad * kMaxK, floats.data() + quad * count,
                  sizeof(float) * static_cast<size_t>(count));
    }
  }
}

void load_b_fragment(MatrixType type, std::span<const uint32_t* const> registers, float* columns) {
  const int count = elements_per_quad(type);
  for (size_t i = 0; i < registers.size(); ++i) {
    const QuadFloats floats = register_floats(type, registers[i]);
    float* to = columns + i * static_cast<size_t>(count);
    for (int quad = 0; quad < kQuads; ++quad) {
      std::memcpy(to + quad * kMaxK, floats.data() + quad * count,
                  sizeof(float) * static_cast<size_t>(count));
    }
  }
}

void load_accumulators(std::span<const uint32_t* const> registers, bool is_half, int n,
                       float* rows) {
  const size_t pairs = is_half ? registers.size() : registers.size() / 2;
  for (size_t i = 0; i < pairs; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      float* to = rows + pair_offset(i, lane, n);
      if (is_half) {
        const uint32_t bits = registers[i][lane];
        to[0] = from_f16(static_cast<uint16_t>(bits));
        to[1] = from_f16(static_cast<uint16_t>(bits >> 16));
      } else {
        to[0] = std::bit_cast<float>(registers[2 * i][lane]);
        to[1] = std::bit_cast<float>(registers[2 * i + 1][lane]);
      }
    }
  }
}

void store_accumulators(std::span<uint32_t* const> registers, bool is_half, int n,
                        const float* rows) {
  const size_t pairs = is_half ? registers.size() : registers.size() / 2;
  for (size_t i = 0; i < pairs; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float* from = rows + pair_offset(i, lane, n);
      if (is_half) {
        registers[i][lane] = to_f16(from[0]) | uint32_t{to_f16(from[1])} << 16;
      } else {
        registers[2 * i][lane] = std::bit_cast<uint32_t>(from[0]);
        registers[2 * i + 1][lane] = std::bit_cast<uint32_t>(from[1]);
      }
    }
  }
}

void round_to_half(std::span<float> values) {
  for (float& value : values) value = from_f16(to_f16(value));
}

}  // namespace wide::simt
