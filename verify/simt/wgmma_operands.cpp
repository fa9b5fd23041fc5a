// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A descriptor's strides mean different things in the layouts:
//   K-major, no swizzle: 8 rows of 16 bytes are together; `stride` to the next 8 rows, `leading` to
//     the next 16 bytes of k.
//   K-major, swizzled: rows of 32, 64 or 128 bytes, 8 of them together; `stride` to the next 8.
//   MN-major, no swizzle: 8 k of 16 bytes are together; `stride` to the next 16 bytes of m or n,
//     `leading` to the next 8 k.
//   MN-major, swizzled: k of 32, 64 or 128 bytes, 8 of them together; `stride` to the next 8 k,
//     `leading` to the next such width of m or n.
// The swizzle is applied to the final address, as the tensor memory accelerator does.
#include "verify/simt/wgmma_operands.hpp"

#include <algorithm>
#include <array>

#include "verify/simt/fragments.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::simt {

namespace {

constexpr int kRepeat = 8;  // rows of an atom

uint32_t field(uint64_t bits, int shift) {
  return static_cast<uint32_t>(bits >> shift & 0x3fff) << 4;
}

Swizzle swizzle_of(uint64_t bits) {
  switch (bits >> 62) {
    case 1:
      return Swizzle::bytes_128;
    case 2:
      return Swizzle::bytes_64;
    case 3:
      return Swizzle::bytes_32;
    default:
      return Swizzle::none;
  }
}

uint32_t pieces_of_atom(Swizzle swizzle) {
  return uint32_t{1} << static_cast<int>(swizzle);
}

/// Row, and piece of k within it.
uint32_t k_major_offset(const MatrixDescriptor& d, uint32_t row, uint32_t piece) {
  const uint32_t step = d.swizzle == Swizzle::none ? d.leading : kPiece;
  return row % kRepeat * kPiece * pieces_of_atom(d.swizzle) + row / kRepeat * d.stride +
         piece * step;
}

/// Piece of m or n, and k.
uint32_t mn_major_offset(const MatrixDescriptor& d, uint32_t piece, uint32_t k) {
  if (d.swizzle == Swizzle::none) {
    return piece * d.stride + k % kRepeat * kPiece + k / kRepeat * d.leading;
  }
  const uint32_t width = pieces_of_atom(d.swizzle);
  return piece % width * kPiece + piece / width * d.leading + k % kRepeat * kPiece * width +
         k / kRepeat * d.stride;
}

/// Calls function(address, first, k) for every piece; `first` and `k` are of its first element.
template <class Function>
void for_pieces(const SharedOperand& operand, int begin, int end, const Function& function) {
  const MatrixDescriptor& descriptor = operand.descriptor;
  const int in_piece = kPiece / element_bytes(operand.type);
  if (!operand.is_mn_major) {
    for (int row = begin; row < end; ++row) {
      for (int piece = 0; piece < kBytesOfK / kPiece; ++piece) {
        const uint32_t offset =
            k_major_offset(descriptor, static_cast<uint32_t>(row), static_cast<uint32_t>(piece));
        function(swizzled(descriptor.start + offset, descriptor.swizzle), row, piece * in_piece);
      }
    }
    return;
  }
  for (int piece = begin / in_piece; piece < end / in_piece; ++piece) {
    for (int k = 0; k < kBytesOfK / element_bytes(operand.type); ++k) {
      const uint32_t offset =
          mn_major_offset(descriptor, static_cast<uint32_t>(piece), static_cast<uint32_t>(k));
      function(swizzled(descriptor.start + offset, descriptor.swizzle), piece * in_piece, k);
    }
  }
}

}  // namespace

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : start(field(bits, 0)),
      leading(field(bits, 16)),
      stride(field(bits, 32)),
      base_offset(static_cast<uint32_t>(bits >> 49 & 7)),
      swizzle(swizzle_of(bits)) {}

uint32_t MatrixDescriptor::pattern_bytes() const {
  return kRepeat * kPiece * pieces_of_atom(swizzle);
}

std::vector<SharedRange> ranges(const SharedOperand& operand) {
  std::vector<uint32_t> pieces;
  for_pieces(operand, 0, operand.size,
             [&](uint32_t address, int, int) { pieces.push_back(address); });
  std::sort(pieces.begin(), pieces.end());
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
  std::vector<SharedRange> joined;
  for (const uint32_t address : pieces) {
    if (!joined.empty() && joined.back().address + joined.back().bytes == address) {
      joined.back().bytes += kPiece;
    } else {
      joined.push_back({address, kPiece});
    }
  }
  return joined;
}

void load_rows(const SharedOperand& a, int begin, int end, const std::byte* shared, float* rows) {
  const int in_piece = kPiece / element_bytes(a.type);
  std::array<float, kPiece> floats;
  for_pieces(a, begin, end, [&](uint32_t address, int row, int k) {
    const std::byte* piece = shared + (address - kSharedBase);
    if (!a.is_mn_major) {
      to_floats(a.type, piece, in_piece, rows + (row - begin) * kMaxK + k);
      return;
    }
    to_floats(a.type, piece, in_piece, floats.data());
    for (int i = 0; i < in_piece; ++i) {
      rows[(row - begin + i) * kMaxK + k] = floats[static_cast<size_t>(i)];
    }
  });
}

void load_columns(const SharedOperand& b, const std::byte* shared, float* rows) {
  const int in_piece = kPiece / element_bytes(b.type);
  std::array<float, kPiece> floats;
  for_pieces(b, 0, b.size, [&](uint32_t address, int column, int k) {
    const std::byte* piece = shared + (address - kSharedBase);
    if (b.is_mn_major) {
      to_floats(b.type, piece, in_piece, rows + k * b.size + column);
      return;
    }
    to_floats(b.type, piece, in_piece, floats.data());
    for (int i = 0; i < in_piece; ++i) {
      rows[(k + i) * b.size + column] = floats[static_cast<size_t>(i)];
    }
  });
}

}  // namespace wide::simt
