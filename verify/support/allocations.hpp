// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is allocated on the host while something runs, by any thread: by malloc and operator new;
// and allocations that fail. A program that includes this takes the place of both; so one file of
// it does, and none of a build with sanitizers, which do the same. Not counted is what the CUDA
// runtime and the vendors' libraries allocate for themselves (cuDNN has a variant pack for every
// call), nor what is called by them.
#pragma once

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "wide/error.hpp"

namespace wide::test {

/// Counts from its making on. One at a time.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  int64_t get() const;
};

/// The k-th allocation from now on, from 1, of the thread that makes this fails, and no other one.
class AllocationFailure {
 public:
  explicit AllocationFailure(int64_t k);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;
  /// Whether there was a k-th.
  bool was_reached() const;
};

/// Whether the body runs out of memory; what else it throws passes.
template <class Body>
bool runs_out(const Body& body) {
  try {
    body();
    return false;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return true;
  }
}

namespace allocations {

inline std::atomic<bool> is_counting{false};
inline std::atomic<int64_t> count{0};

/// Code of the libraries that are not counted; found before there is anything to count.
struct Code {
  uintptr_t begin, end;
};
inline std::array<Code, 64> others{};
inline std::atomic<size_t> num_others{0};

inline int find_others(dl_phdr_info* info, size_t, void*) {
  const auto is_called = [&](const char* name) {
    return std::strstr(info->dlpi_name, name) != nullptr;
  };
  if (!is_called("libcudart") && !is_called("libcublas") && !is_called("libcudnn") &&
      !is_called("libwide_simvendors")) {
    return 0;
  }
  for (int i = 0; i < info->dlpi_phnum && num_others < others.size(); ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    others[num_others++] = {begin, begin + header.p_memsz};
  }
  return 0;
}

inline _Unwind_Reason_Code look_at(_Unwind_Context* context, void* is_others) {
  const uintptr_t at = _Unwind_GetIP(context);
  const auto is_inside = [at](const Code& code) { return at >= code.begin && at < code.end; };
  const bool found = std::any_of(others.begin(), others.begin() + num_others.load(), is_inside);
  *static_cast<bool*>(is_others) |= found;
  return found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

inline void note() {
  if (!is_counting.load(std::memory_order_relaxed)) return;
  bool is_others = false;
  if (num_others != 0) _Unwind_Backtrace(look_at, &is_others);
  if (!is_others) ++count;
}

inline constinit thread_local int64_t until_failure = 0;  // 0: none fails

/// Notes an allocation and says whether it is the one that fails.
inline bool fails() {
  note();
  return until_failure > 0 && --until_failure == 0;
}

}  // namespace allocations

inline AllocationCount::AllocationCount() {
  allocations::num_others = 0;
  dl_iterate_phdr(allocations::find_others, nullptr);
  allocations::count = 0;
  allocations::is_counting = true;
}
inline AllocationCount::~AllocationCount() {
  allocations::is_counting = false;
}
inline int64_t AllocationCount::get() const {
  return allocations::count;
}
inline AllocationFailure::AllocationFailure(int64_t k) {
  allocations::until_failure = k;
}
inline AllocationFailure::~AllocationFailure() {
  allocations::until_failure = 0;
}
inline bool AllocationFailure::was_reached() const {
  return allocations::until_failure == 0;
}

}  // namespace wide::test

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t bytes) {
  return wide::test::allocations::fails() ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  return wide::test::allocations::fails() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* data, size_t bytes) {
  return wide::test::allocations::fails() ? nullptr : __libc_realloc(data, bytes);
}
}
// operator new calls malloc; that of aligned memory does not.

void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  if (wide::test::allocations::fails()) return nullptr;
  const auto unit = static_cast<size_t>(alignment);
  return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  if (void* data = operator new(bytes, alignment, std::nothrow)) return data;
  throw std::bad_alloc();
}
void operator delete(void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete(void* data, size_t, std::align_val_t) noexcept {
  std::free(data);
}
