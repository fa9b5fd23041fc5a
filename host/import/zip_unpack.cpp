// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Unpacking an entry of a zip archive, never past the given memory.
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/zip.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

[[noreturn]] void refuse(const ZipEntry& entry, const std::string& what, const std::string& why) {
  throw_invalid_argument("zip: " + what + ": entry " + in_quotes(entry.name) + " " + why);
}

/// zlib counts bytes in 32 bits.
uInt portion(size_t bytes) {
  return static_cast<uInt>(std::min<size_t>(bytes, std::numeric_limits<uInt>::max()));
}

class Inflater {
 public:
  explicit Inflater(const ZipEntry& entry) : rest_(entry.packed) {
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK)  // without zlib's own header
      throw Error(ErrorCode::out_of_memory, "zip: no memory to unpack an entry");
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;

  /// The number of bytes read; fewer than requested only where the entry ends or is broken.
  size_t read(std::span<std::byte> out) {
    size_t done = 0;
    while (done < out.size() && status_ == Z_OK) {
      const uInt room = portion(out.size() - done), input = portion(rest_.size());
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = room;
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest_.data()));
      stream_.avail_in = input;
      status_ = ::inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
      rest_ = rest_.subspan(input - stream_.avail_in);
    }
    return done;
  }
  /// Whether the stream ends here, with the entry.
  bool is_at_end() {
    std::byte beyond;
    return read({&beyond, 1}) == 0 && status_ == Z_STREAM_END && rest_.empty();
  }

 private:
  std::span<const std::byte> rest_;
  z_stream stream_{};
  int status_ = Z_OK;
};

}  // namespace

void unpack_start(const ZipEntry& entry, std::span<std::byte> out, const std::string& what) {
  if (!entry.is_deflated) {
    std::copy_n(entry.packed.begin(), out.size(), out.begin());
  } else if (Inflater(entry).read(out) != out.size()) {
    refuse(entry, what, "is broken: its bytes cannot be unpacked");
  }
}

void unpack(const ZipEntry& entry, std::span<std::byte> out, const std::string& what) {
  if (!entry.is_deflated) {
    std::copy(entry.packed.begin(), entry.packed.end(), out.begin());
  } else {
    Inflater inflater(entry);
    if (inflater.read(out) != out.size() || !inflater.is_at_end()) {
      refuse(entry, what, "is broken: its bytes do not unpack to " + counted(entry.bytes, "byte"));
    }
  }
  require_checksum(entry, out, what);
}

uint32_t zip_checksum(std::span<const std::byte> bytes, uint32_t so_far) {
  if (bytes.empty()) return so_far;  // crc32_z would restart for a null pointer
  return static_cast<uint32_t>(
      ::crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void require_checksum(const ZipEntry& entry, std::span<const std::byte> bytes,
                      const std::string& what) {
  if (zip_checksum(bytes) != entry.checksum)
    refuse(entry, what, "is broken: its checksum is not that of its bytes");
}

}  // namespace wide
