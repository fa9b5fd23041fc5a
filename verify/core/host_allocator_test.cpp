// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Huge pages: asked for where whole ones fit, and nowhere else, by what the kernel says it was
// asked.
#include "host/core/host_allocator.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace wide {

namespace {

/// VmFlags of the mapping that holds `address`; empty: the kernel does not tell.
std::string mapping_flags(uintptr_t address) {
  std::ifstream file("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (in >> std::hex >> begin >> dash >> end && dash == '-') {
      is_inside = begin <= address && address < end;
    } else if (is_inside && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

bool is_on_huge_pages(uintptr_t address) {
  return mapping_flags(address).find(" hg ") != std::string::npos;
}

void require_huge_pages() {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    SKIP("this system has no transparent huge pages");
  static int somewhere = 0;
  if (mapping_flags(reinterpret_cast<uintptr_t>(&somewhere)).empty())
    SKIP("this system does not say how memory is mapped");
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables != nullptr && std::string(tunables).find("malloc.hugetlb") != std::string::npos)
    SKIP("malloc asks for huge pages itself: " << tunables);
}

}  // namespace

TEST_CASE("the CPU's memory is on huge pages where whole ones fit, and not beyond") {
  require_huge_pages();
  const auto allocator = make_host_allocator();
  // Too large for malloc to take it from what was freed before.
  for (const int64_t rest : {int64_t{0}, int64_t{4096}, kHugePageBytes - 4096}) {
    const int64_t whole = 32 * kHugePageBytes, bytes = whole + rest;
    void* data = allocator->allocate(bytes);
    const auto address = reinterpret_cast<uintptr_t>(data);
    CHECK(address % kHugePageBytes == 0);
    CHECK(is_on_huge_pages(address));
    CHECK(is_on_huge_pages(address + static_cast<uintptr_t>(whole) - 1));
    if (rest > 0) CHECK_FALSE(is_on_huge_pages(address + static_cast<uintptr_t>(whole)));
    allocator->deallocate(data, bytes);
  }
}

TEST_CASE("the CPU's memory is aligned as workspaces are, whatever its size") {
  const auto allocator = make_host_allocator();
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{255}, kHugePageBytes - 1,
                              kHugePageBytes, kHugePageBytes + 1}) {
    void* data = allocator->allocate(bytes);
    const auto alignment = bytes < kHugePageBytes ? kWorkspaceAlignment : kHugePageBytes;
    CHECK(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) == 0);
    allocator->deallocate(data, bytes);
  }
}

}  // namespace wide
