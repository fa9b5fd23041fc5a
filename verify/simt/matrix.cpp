// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ldmatrix and stmatrix: the lanes 8 i to 8 i + 7 name the rows of matrix i, 16 bytes each; a lane
// holds two elements of every matrix. A row is read or written in the name of the lane that names
// it: the exchange between lanes orders nothing.
#include <algorithm>
#include <array>
#include <cstring>

#include "verify/simt/async.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::simt {

namespace {

constexpr int64_t kRowBytes = 16;
constexpr size_t kMatrixRows = 8;

using Addresses = std::array<uint32_t, kLanes>;
using Matrix = std::array<std::array<uint16_t, kMatrixRows>, kMatrixRows>;

/// The eight rows of a matrix go through eight groups of four banks: rows of one group, one after
/// the other.
void count_passes(Counters& counters, const Addresses& address, size_t matrix) {
  const auto* first = address.data() + matrix * kMatrixRows;
  std::array<int, kMatrixRows> rows{};
  for (size_t i = 0; i < kMatrixRows; ++i) {
    const bool is_repeated = std::find(first, first + i, first[i]) != first + i;
    if (!is_repeated) ++rows[first[i] / kRowBytes % kMatrixRows];
  }
  ++counters.matrix_passes;
  counters.matrix_extra += *std::max_element(rows.begin(), rows.end()) - 1;
}

/// Calls function(thread, address, row) for every row of matrix `matrix`.
template <class Function>
void for_rows(Warp& warp, const Addresses& address, size_t matrix, const Function& function) {
  for (size_t row = 0; row < kMatrixRows; ++row) {
    const size_t lane = matrix * kMatrixRows + row;
    function(warp.thread(static_cast<int>(lane)), address[lane], row);
  }
}

}  // namespace

void load_matrix(Warp& warp, std::span<uint32_t* const> d, const Addresses& address,
                 bool is_transposed, Location at) {
  SharedMemory& shared = *warp.block->shared;
  std::array<Matrix, 4> matrices;  // a destination may be an address register too
  for (size_t i = 0; i < d.size(); ++i) {
    for_rows(warp, address, i, [&](Thread& thread, uint32_t from, size_t row) {
      shared.require(thread, from, kRowBytes, kRowBytes, "ldmatrix row", at);
      shared.read(thread, from, kRowBytes, SharedAccess::generic, at);
      std::memcpy(matrices[i][row].data(), shared.at(from), kRowBytes);
    });
    count_passes(warp.block->launch.counters, address, i);
  }
  for (size_t i = 0; i < d.size(); ++i) {
    const Matrix& matrix = matrices[i];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const size_t quad = lane / 4, pair = lane % 4 * 2;
      const uint32_t low = is_transposed ? matrix[pair][quad] : matrix[quad][pair];
      const uint32_t high = is_transposed ? matrix[pair + 1][quad] : matrix[quad][pair + 1];
      d[i][lane] = low | high << 16;
    }
  }
}

void store_matrix(Warp& warp, std::span<const uint32_t* const> s, const Addresses& address,
                  bool is_transposed, Location at) {
  SharedMemory& shared = *warp.block->shared;
  for (size_t i = 0; i < s.size(); ++i) {
    Matrix matrix;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const size_t quad = lane / 4, pair = lane % 4 * 2;
      (is_transposed ? matrix[pair][quad] : matrix[quad][pair]) = static_cast<uint16_t>(s[i][lane]);
      (is_transposed ? matrix[pair + 1][quad] : matrix[quad][pair + 1]) =
          static_cast<uint16_t>(s[i][lane] >> 16);
    }
    for_rows(warp, address, i, [&](Thread& thread, uint32_t to, size_t row) {
      shared.require(thread, to, kRowBytes, kRowBytes, "stmatrix row", at);
      shared.write(thread, to, kRowBytes, SharedAccess::generic, at);
      std::memcpy(shared.at(to), matrix[row].data(), kRowBytes);
    });
    count_passes(warp.block->launch.counters, address, i);
  }
}

}  // namespace wide::simt
