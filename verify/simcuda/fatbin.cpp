// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The container is undocumented; what stands here was read off what nvcc 13.0 writes: a header,
// then entries of PTX (kind 1) and machine code (kind 2), usually compressed with zstd.
#include "verify/simcuda/fatbin.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace wide::simcuda {

namespace {

struct Wrapper {
  int32_t magic, version;
  const std::byte* container;
  const void* unused;
};
struct Header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  ///< of all entries
};
struct Entry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;  ///< of the payload, padding included
  uint32_t compressed_bytes, options;
  uint16_t minor, major;
  uint32_t architecture;
  uint32_t name_offset, name_bytes;
  uint64_t flags;
  uint64_t zero, uncompressed_bytes;
};
constexpr int32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kHeaderMagic = 0xba55ed50;
constexpr uint16_t kPtx = 1;
constexpr uint64_t kZstd = 0x8000, kLz4 = 0x2000;

template <class T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// By the shared library where it is, which it is wherever dpkg is; nothing is linked for it.
bool decompress(std::string& to, const std::byte* from, size_t bytes) {
  using Function = size_t(void*, size_t, const void*, size_t);
  static void* library = ::dlopen("libzstd.so.1", RTLD_NOW);
  static auto* function = library == nullptr
                              ? nullptr
                              : reinterpret_cast<Function*>(::dlsym(library, "ZSTD_decompress"));
  return function != nullptr && function(to.data(), to.size(), from, bytes) == to.size();
}

std::optional<std::string> text_of(const Entry& entry, const std::byte* payload, std::string& why) {
  if ((entry.flags & kLz4) != 0) {
    why = "its PTX is compressed in an old way: build it with --compress-mode=none";
    return std::nullopt;
  }
  std::string text(reinterpret_cast<const char*>(payload), entry.bytes);
  if ((entry.flags & kZstd) != 0) {
    text.assign(entry.uncompressed_bytes, '\0');
    if (!decompress(text, payload, entry.compressed_bytes)) {
      why =
          "its PTX is compressed and there is no libzstd.so.1: build it with --compress-mode=none";
      return std::nullopt;
    }
  }
  text.resize(std::strlen(text.c_str()));  // the padding is zeros
  return text;
}

/// 2 * architecture, and one more for text that is for this architecture alone; -1: does not run.
int rank_of(const std::string& text, int device) {
  const size_t at = text.find(".target sm_");
  if (at == std::string::npos) return -1;
  char* suffix = nullptr;
  const auto wanted = static_cast<int>(std::strtol(text.c_str() + at + 11, &suffix, 10));
  const bool is_specific = *suffix == 'a' || *suffix == 'f';
  if (wanted > device || (is_specific && wanted != device)) return -1;
  return 2 * wanted + (is_specific ? 1 : 0);
}

}  // namespace

ChosenText choose_ptx(const void* wrapper_address, int architecture) {
  const auto wrapper = read<Wrapper>(wrapper_address);
  const auto header = read<Header>(wrapper.container);
  if (wrapper.magic != kWrapperMagic || header.magic != kHeaderMagic)
    return {"", "its fat binary is of an unknown kind"};
  ChosenText chosen{"", "it has no PTX for sm_" + std::to_string(architecture) +
                            ": build it with code=compute_80 or the like"};
  int best = -1;
  const std::byte* at = wrapper.container + header.header_bytes;
  const std::byte* const end = at + header.bytes;
  while (at < end) {
    const auto entry = read<Entry>(at);
    const std::byte* payload = at + entry.header_bytes;
    at = payload + entry.bytes;
    if (entry.kind != kPtx) continue;
    std::optional<std::string> text = text_of(entry, payload, chosen.why_none);
    if (!text) continue;
    if (const int rank = rank_of(*text, architecture); rank > best) {
      best = rank;
      chosen.ptx = std::move(*text);
    }
  }
  return chosen;
}

}  // namespace wide::simcuda
