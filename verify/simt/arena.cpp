// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Large buffers get their NaNs from private mappings of one small file, so that allocating
// gigabytes costs neither time nor memory until they are written.
#include "verify/simt/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace wide::simt {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kNanFile = 4 << 20;
constexpr uint64_t kMinMapped = 1 << 20;  // below, writing the NaNs is cheaper
constexpr int kUnaccounted = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Addresses without access; null: not to be had.
std::byte* reserve(uint64_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_NONE, kUnaccounted, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

int make_nan_file() {
  const int file = memfd_create("nan", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kNanFile) != 0) return file;
  void* bytes = mmap(nullptr, kNanFile, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) return file;
  std::memset(bytes, 0xff, kNanFile);
  munmap(bytes, kNanFile);
  return file;
}

}  // namespace

Arena::Arena(int64_t wanted_bytes, int64_t min_bytes, bool is_host_accessible) {
  const auto least = static_cast<uint64_t>(min_bytes);
  for (range_ = static_cast<uint64_t>(wanted_bytes); data_ == nullptr; range_ /= 2) {
    if (range_ < least) throw std::bad_alloc();
    std::byte* device = reserve(range_);
    std::byte* data = is_host_accessible ? device : reserve(range_);
    if (data != nullptr && device != nullptr) {
      base_ = reinterpret_cast<uint64_t>(device);
      data_ = data;
      break;
    }
    if (device != nullptr) munmap(device, range_);
    if (data != nullptr && data != device) munmap(data, range_);
  }
}

Arena::~Arena() {
  munmap(reinterpret_cast<void*>(base_), range_);
  if (reinterpret_cast<uint64_t>(data_) != base_) munmap(data_, range_);
  if (nan_file_ >= 0) close(nan_file_);
}

uint64_t Arena::allocate(int64_t bytes, bool is_nan) {
  const uint64_t begin = round_up(used_ + kRedZone, 2 * kAlignment) + kAlignment;
  const auto size = static_cast<uint64_t>(bytes);
  if (size > range_ || begin + size + kRedZone > range_) return 0;
  const uint64_t end = round_up(begin + size, kPage);
  if (end > accessible_) {
    // Up to what is accessible already, red zone included: neighbours stay one mapping.
    if (mprotect(data_ + accessible_, end - accessible_, PROT_READ | PROT_WRITE) != 0) return 0;
    accessible_ = end;
  }
  used_ = begin + size;
  if (is_nan) fill_nan(base_ + begin, bytes);
  return base_ + begin;
}

void Arena::fill_nan(uint64_t address, int64_t bytes) {
  std::byte* begin = data(address);
  std::byte* const end = begin + bytes;
  if (static_cast<uint64_t>(bytes) >= kMinMapped) {
    if (nan_file_ < 0) nan_file_ = make_nan_file();
    const auto misalignment = reinterpret_cast<uint64_t>(begin) % kPage;
    std::byte* page = misalignment == 0 ? begin : begin + (kPage - misalignment);
    std::memset(begin, 0xff, static_cast<size_t>(page - begin));
    while (nan_file_ >= 0 && static_cast<uint64_t>(end - page) >= kPage) {
      const uint64_t piece = std::min(kNanFile, static_cast<uint64_t>(end - page) / kPage * kPage);
      if (mmap(page, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
               nan_file_, 0) == MAP_FAILED) {
        break;  // too many mappings: the rest is written
      }
      page += piece;
    }
    begin = page;
  }
  std::memset(begin, 0xff, static_cast<size_t>(end - begin));
}

void Arena::release(uint64_t address, int64_t bytes) {
  // A red zone is a page: no other buffer is on these.
  const uint64_t begin = (address - base_) / kPage * kPage;
  const uint64_t end = round_up(address - base_ + static_cast<uint64_t>(bytes), kPage);
  if (mmap(data_ + begin, end - begin, PROT_READ | PROT_WRITE, kUnaccounted | MAP_FIXED, -1, 0) ==
      MAP_FAILED) {
    madvise(data_ + begin, end - begin, MADV_DONTNEED);
  }
}

}  // namespace wide::simt
