// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Zip archives, to read: the directory, checked against the header of each entry.
// Format: PKWARE's APPNOTE 6.3.10, with zip64, without encryption and archives in several parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wide {

struct ZipEntry {
  std::string name;
  std::span<const std::byte> packed;  ///< as it lies in the archive
  int64_t bytes = 0;                  ///< unpacked
  uint32_t checksum = 0;              ///< CRC-32 of the unpacked bytes
  bool is_deflated = false;
};

/// Entries in the order of the archive, not overlapping. `what` is the archive's name in messages.
/// Throws invalid_argument.
std::vector<ZipEntry> read_zip(std::span<const std::byte> archive, const std::string& what);

/// The first `out.size()` bytes of an entry, which has that many. Throws invalid_argument where it
/// is broken.
void unpack_start(const ZipEntry& entry, std::span<std::byte> out, const std::string& what);
/// All bytes: `out.size()` is `entry.bytes`. Throws invalid_argument also where there are more or
/// fewer, or the checksum differs.
void unpack(const ZipEntry& entry, std::span<std::byte> out, const std::string& what);

/// CRC-32 of the bytes that `so_far` covers, followed by these bytes.
uint32_t zip_checksum(std::span<const std::byte> bytes, uint32_t so_far = 0);
void require_checksum(const ZipEntry& entry, std::span<const std::byte> bytes,
                      const std::string& what);

}  // namespace wide
