// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is allocated on the host while something runs, by any thread: by malloc and operator new. A
// program that includes this takes the place of both; so one file of it does, and none of a build
// with sanitizers, which do the same. Not counted is what the CUDA runtime allocates for itself,
// nor what is called by it.
#pragma once

#include <link.h>
#include <unwind.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

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

namespace allocations {

inline std::atomic<bool> is_counting{false};
inline std::atomic<int64_t> count{0};
inline std::atomic<uintptr_t> runtime_begin{0}, runtime_end{0};  ///< of libcudart's code

inline int find_runtime(dl_phdr_info* info, size_t, void*) {
  if (std::strstr(info->dlpi_name, "libcudart") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    runtime_begin = info->dlpi_addr + header.p_vaddr;
    runtime_end = runtime_begin + header.p_memsz;
  }
  return 1;
}

inline _Unwind_Reason_Code look_at(_Unwind_Context* context, void* is_runtime) {
  const uintptr_t at = _Unwind_GetIP(context);
  const bool is_inside = at >= runtime_begin && at < runtime_end;
  *static_cast<bool*>(is_runtime) |= is_inside;
  return is_inside ? _URC_END_OF_STACK : _URC_NO_REASON;
}

inline void note() {
  if (!is_counting.load(std::memory_order_relaxed)) return;
  bool is_runtime = false;
  if (runtime_end != 0) _Unwind_Backtrace(look_at, &is_runtime);
  if (!is_runtime) ++count;
}

}  // namespace allocations

inline AllocationCount::AllocationCount() {
  dl_iterate_phdr(allocations::find_runtime, nullptr);
  allocations::count = 0;
  allocations::is_counting = true;
}
inline AllocationCount::~AllocationCount() {
  allocations::is_counting = false;
}
inline int64_t AllocationCount::get() const {
  return allocations::count;
}

}  // namespace wide::test

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t bytes) {
  wide::test::allocations::note();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  wide::test::allocations::note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* data, size_t bytes) {
  wide::test::allocations::note();
  return __libc_realloc(data, bytes);
}
}
// operator new calls malloc; that of aligned memory does not.

void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  wide::test::allocations::note();
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
