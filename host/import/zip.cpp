// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The directory of a zip archive. Known attacks use a second directory, overlapping entries (with
// which a bomb of a few kilobytes expands to petabytes), names and sizes that differ between the
// directory and the entry, and leading bytes that shift every offset: all of these are
// refused.
#include "host/import/zip.hpp"

#include <algorithm>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"

namespace wide {

namespace {

constexpr uint32_t kEntrySignature = 0x04034b50, kDirectorySignature = 0x02014b50,
                   kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50,
                   kLocator64Signature = 0x07064b50;
constexpr uint64_t kEntryBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                   kLocator64Bytes = 20;
constexpr uint32_t kMask32 = 0xffffffff;  ///< "see the zip64 field"
constexpr uint16_t kMask16 = 0xffff;
constexpr uint16_t kEncrypted = 1 << 0, kSizesFollow = 1 << 3, kPatch = 1 << 5,
                   kStrongEncryption = 1 << 6, kMaskedHeaders = 1 << 13;
constexpr uint64_t kMaxDeflateRatio = 1032;  ///< 258 bytes of two bits: zlib's own figure

class Archive {
 public:
  Archive(std::span<const std::byte> bytes, const std::string& what) : bytes_(bytes), what_(what) {}

  std::vector<ZipEntry> read();

 private:
  struct Directory {
    uint64_t begin = 0, end = 0, num_entries = 0;
  };
  /// An entry's header, in the directory and before its bytes.
  struct Header {
    uint16_t flags, method;
    uint32_t checksum;
    uint64_t packed_bytes, bytes;
  };
  struct Located {
    ZipEntry entry;
    uint64_t begin, end;  ///< including the header
  };

  [[noreturn]] void refuse(const std::string& why) const {
    throw_invalid_argument("zip: " + what_ + ": " + why);
  }
  [[noreturn]] void refuse(std::string_view entry, const std::string& why) const {
    refuse("entry " + in_quotes(entry) + " " + why);
  }
  void require_room(uint64_t at, uint64_t size, const std::string& of) const {
    if (at > bytes_.size() || bytes_.size() - at < size) refuse(of + " reaches beyond the file");
  }
  /// `size` bytes, little endian; there is room.
  uint64_t number(uint64_t at, int size) const {
    uint64_t value = 0;
    for (int i = size; i-- > 0;)
      value = value << 8 | std::to_integer<uint64_t>(bytes_[at + static_cast<uint64_t>(i)]);
    return value;
  }
  uint16_t u16(uint64_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(uint64_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(uint64_t at) const { return number(at, 8); }
  std::string_view text(uint64_t at, uint64_t size) const {
    return {reinterpret_cast<const char*>(bytes_.data() + at), size};
  }

  uint64_t find_end() const;
  Directory find_directory() const;
  void apply_zip64(std::span<uint64_t*> masked, uint64_t extra, uint64_t extra_bytes,
                   std::string_view name) const;
  Located read_entry(uint64_t& at, uint64_t directory_begin) const;
  uint64_t require_same(const Header& header, uint64_t at, std::string_view name) const;

  std::span<const std::byte> bytes_;
  const std::string& what_;
};

/// The only place from which a comment of the stated length extends to the file's end.
uint64_t Archive::find_end() const {
  if (bytes_.size() < kEndBytes) refuse("it is too short for an archive");
  const uint64_t last = bytes_.size() - kEndBytes;
  const uint64_t first = last > kMask16 ? last - kMask16 : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (u32(at) == kEndSignature && at + kEndBytes + u16(at + 20) == bytes_.size()) return at;
  }
  refuse("it has no directory: it is cut, or no archive");
}

Archive::Directory Archive::find_directory() const {
  uint64_t end = find_end();
  if (u16(end + 4) != 0 && u16(end + 4) != kMask16) refuse("it is one part of several");
  uint64_t on_this = u16(end + 8), num_entries = u16(end + 10), size = u32(end + 12),
           begin = u32(end + 16);
  const bool is_64 = end >= kLocator64Bytes && u32(end - kLocator64Bytes) == kLocator64Signature;
  if (is_64) {
    const uint64_t locator = end - kLocator64Bytes;
    const uint64_t at = u64(locator + 8);
    require_room(at, kEnd64Bytes, "its zip64 directory's end");
    if (u32(at) != kEnd64Signature) refuse("its zip64 directory's end is not where it should be");
    if (u64(at + 4) != kEnd64Bytes - 12 || at + kEnd64Bytes != locator)
      refuse("data follows its zip64 directory's end");
    if (u32(locator + 4) != 0 || u32(at + 16) != 0 || u32(at + 20) != 0)
      refuse("it is one part of several");
    on_this = u64(at + 24);
    num_entries = u64(at + 32);
    size = u64(at + 40);
    begin = u64(at + 48);
    end = at;
  }
  if (on_this != num_entries) refuse("it is one part of several");
  if (begin > end || size != end - begin) {
    refuse("its directory has " + counted(size, "byte") + " from " + std::to_string(begin) +
           ", expected to end at " + std::to_string(end));
  }
  if (num_entries > size / kDirectoryBytes) {
    refuse("its directory of " + counted(size, "byte") + " has no room for " +
           counted(num_entries, "entry", "entries"));
  }
  return {begin, end, num_entries};
}

/// Reads numbers too large for their fields, in the order of the zip64 field.
void Archive::apply_zip64(std::span<uint64_t*> masked, uint64_t extra, uint64_t extra_bytes,
                          std::string_view name) const {
  const uint64_t end = extra + extra_bytes;
  bool is_there = false;
  while (extra < end) {
    if (end - extra < 4 || end - extra - 4 < u16(extra + 2))
      refuse(name, "has an extra field that is cut");
    const uint64_t field_end = extra + 4 + u16(extra + 2);
    if (u16(extra) == 1) {
      if (is_there) refuse(name, "has two zip64 fields");
      is_there = true;
      uint64_t at = extra + 4;
      for (uint64_t* value : masked) {
        if (field_end - at < 8) refuse(name, "has a zip64 field that is too short");
        *value = u64(at);
        at += 8;
      }
    }
    extra = field_end;
  }
  if (!masked.empty() && !is_there) refuse(name, "has no zip64 field");
}

/// Compares the header before the entry's bytes; returns where these begin.
uint64_t Archive::require_same(const Header& header, uint64_t at, std::string_view name) const {
  require_room(at, kEntryBytes, "entry " + in_quotes(name));
  if (u32(at) != kEntrySignature) refuse(name, "is not where the directory says");
  const uint64_t name_bytes = u16(at + 26), extra_bytes = u16(at + 28);
  require_room(at + kEntryBytes, name_bytes + extra_bytes, "entry " + in_quotes(name));
  const std::string_view own_name = text(at + kEntryBytes, name_bytes);
  if (own_name != name) refuse(name, "calls itself " + in_quotes(own_name));
  const bool sizes_follow = (header.flags & kSizesFollow) != 0;
  uint64_t packed_bytes = u32(at + 18), bytes = u32(at + 22);
  std::vector<uint64_t*> masked;
  if (bytes == kMask32) masked.push_back(&bytes);
  if (packed_bytes == kMask32) masked.push_back(&packed_bytes);
  apply_zip64(masked, at + kEntryBytes + name_bytes, extra_bytes, name);
  const bool is_same = u32(at + 14) == header.checksum && packed_bytes == header.packed_bytes &&
                       bytes == header.bytes;
  if (u16(at + 6) != header.flags || u16(at + 8) != header.method || !(is_same || sizes_follow))
    refuse(name, "differs from what the directory says of it");
  return at + kEntryBytes + name_bytes + extra_bytes;
}

Archive::Located Archive::read_entry(uint64_t& at, uint64_t directory_begin) const {
  require_room(at, kDirectoryBytes, "its directory");
  if (u32(at) != kDirectorySignature) refuse("its directory is broken");
  const uint64_t name_bytes = u16(at + 28), extra_bytes = u16(at + 30),
                 comment_bytes = u16(at + 32);
  require_room(at + kDirectoryBytes, name_bytes + extra_bytes + comment_bytes, "its directory");
  const std::string_view name = text(at + kDirectoryBytes, name_bytes);
  Header header{u16(at + 8), u16(at + 10), u32(at + 16), u32(at + 20), u32(at + 24)};
  uint64_t begin = u32(at + 42), part = u16(at + 34);
  std::vector<uint64_t*> masked;
  if (header.bytes == kMask32) masked.push_back(&header.bytes);
  if (header.packed_bytes == kMask32) masked.push_back(&header.packed_bytes);
  if (begin == kMask32) masked.push_back(&begin);
  apply_zip64(masked, at + kDirectoryBytes + name_bytes, extra_bytes, name);
  if (part != 0) refuse(name, "is in another part");
  if (header.flags & (kEncrypted | kStrongEncryption | kMaskedHeaders))
    refuse(name, "is encrypted");
  if (header.flags & kPatch) refuse(name, "is a patch");
  if (header.method != 0 && header.method != 8) {
    refuse(name, "is packed by method " + std::to_string(header.method) +
                     ", expected 0 (stored) or 8 (deflated)");
  }
  const uint64_t data = require_same(header, begin, name);
  if (data > directory_begin || directory_begin - data < header.packed_bytes)
    refuse(name, "reaches into the directory");
  const uint64_t most =
      header.method == 0 ? header.packed_bytes : kMaxDeflateRatio * header.packed_bytes;
  if (header.bytes > most || (header.method == 0 && header.bytes != most)) {
    refuse(name, "has " + counted(header.packed_bytes, "byte") + ", which cannot be the " +
                     std::to_string(header.bytes) + " that it says");
  }
  at += kDirectoryBytes + name_bytes + extra_bytes + comment_bytes;
  return {{std::string(name), bytes_.subspan(data, header.packed_bytes),
           static_cast<int64_t>(header.bytes), header.checksum, header.method == 8},
          begin,
          data + header.packed_bytes};
}

std::vector<ZipEntry> Archive::read() {
  const Directory directory = find_directory();
  std::vector<Located> located;
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.num_entries; ++i)
    located.push_back(read_entry(at, directory.begin));
  if (at != directory.end) refuse("its directory continues after its last entry");
  std::sort(located.begin(), located.end(),
            [](const Located& a, const Located& b) { return a.begin < b.begin; });
  std::vector<ZipEntry> entries;
  uint64_t end = 0;
  for (Located& one : located) {
    if (entries.empty() && one.begin != 0) refuse("something lies in front of its first entry");
    if (one.begin < end) refuse(one.entry.name, "overlaps " + in_quotes(entries.back().name));
    end = one.end;
    entries.push_back(std::move(one.entry));
  }
  return entries;
}

}  // namespace

std::vector<ZipEntry> read_zip(std::span<const std::byte> archive, const std::string& what) {
  return Archive(archive, what).read();
}

}  // namespace wide
