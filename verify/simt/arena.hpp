// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Addresses and pages for buffers. Device addresses are a reservation without access, so that a
// host that touches one dies at once; the bytes are in a second mapping at the same offsets. For
// memory that both sides use, one mapping serves. Addresses only ever grow: a freed one is never
// given out again, and pages are used only while a buffer needs them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wide::simt {

class Arena {
 public:
  static constexpr int64_t kRedZone = 4096;   ///< at least, between two buffers; a page
  static constexpr int64_t kAlignment = 256;  ///< all that cudaMalloc promises, and not twice that

  /// Throws std::bad_alloc where not even `min_bytes` of addresses can be had.
  Arena(int64_t wanted_bytes, int64_t min_bytes, bool is_host_accessible);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Zeros, or NaN in every format; 0 where the addresses are used up.
  uint64_t allocate(int64_t bytes, bool is_nan);
  /// The pages of a buffer go back to the system.
  void release(uint64_t address, int64_t bytes);

  bool contains(uint64_t address) const { return address - base_ < range_; }
  /// Of an address that it contains.
  std::byte* data(uint64_t address) const { return data_ + (address - base_); }

 private:
  void fill_nan(uint64_t address, int64_t bytes);

  uint64_t base_ = 0, range_ = 0;
  uint64_t used_ = 0;        ///< bytes from base_ that were given out, red zones included
  uint64_t accessible_ = 0;  ///< bytes from data_ that can be touched
  std::byte* data_ = nullptr;
  int nan_file_ = -1;
};

}  // namespace wide::simt
