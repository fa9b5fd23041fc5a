// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/host_allocator.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include <new>
#include <string>

#include "wide/error.hpp"

namespace wide {

namespace {

/// A wish: where the system has none, or forbids them, `data` is memory like any other.
void ask_for_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#ifdef MADV_HUGEPAGE
  // Not of a last one that others share: it would take memory that nobody asked for.
  ::madvise(data, static_cast<size_t>(bytes / kHugePageBytes * kHugePageBytes), MADV_HUGEPAGE);
#endif
}

class HostAllocator final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    void* data = ::operator new(static_cast<size_t>(bytes), alignment(bytes), std::nothrow);
    if (data == nullptr)
      throw Error(ErrorCode::out_of_memory, "cpu: no room for " + std::to_string(bytes) + " bytes");
    if (bytes >= kHugePageBytes) ask_for_huge_pages(data, bytes);
    return data;
  }
  void deallocate(void* data, int64_t bytes) noexcept override {
    ::operator delete(data, alignment(bytes));
  }

 private:
  static std::align_val_t alignment(int64_t bytes) {
    return std::align_val_t(bytes < kHugePageBytes ? kWorkspaceAlignment : kHugePageBytes);
  }
};

}  // namespace

std::shared_ptr<Allocator> make_host_allocator() {
  return std::make_shared<HostAllocator>();
}

}  // namespace wide
