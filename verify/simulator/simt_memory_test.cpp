// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's global memory: addresses, bounds, initialisation, and what is counted. Each
// check must report what is wrong and stay silent about what is right.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "verify/simt/global_shadow.hpp"
#include "verify/simulator/simt_case.hpp"

namespace wide::simt {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Whether a read of the address kills the process that makes it.
bool kills(const void* address) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    const volatile char value = *static_cast<const volatile char*>(address);
    _exit(value == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST_CASE("device addresses are not the host's, pinned and managed ones are") {
  GlobalCase test;
  const uint64_t device = test.buffer(100, "device", false);
  const uint64_t pinned = test.memory.allocate(100, "pinned", BufferKind::pinned);
  const uint64_t managed = test.memory.allocate(100, "managed", BufferKind::managed, true);
  // What cudaMalloc promises, and no more.
  for (const uint64_t address : {device, pinned, managed}) CHECK(address % 512 == 256);
  CHECK(kills(reinterpret_cast<void*>(device)));
  CHECK_FALSE(kills(reinterpret_cast<void*>(pinned)));
  CHECK_FALSE(kills(reinterpret_cast<void*>(managed)));
  CHECK(test.memory.data(pinned) == reinterpret_cast<std::byte*>(pinned));
  std::byte* bytes = test.memory.data(device);
  CHECK(test.memory.data(device + 99) == bytes + 99);
  CHECK((bytes[0] == std::byte{0xff} && bytes[99] == std::byte{0xff}));  // NaN
  CHECK(test.memory.data(managed)[0] == std::byte{0});
  int own = 0;
  CHECK(test.memory.data(&own) == reinterpret_cast<std::byte*>(&own));
}

TEST_CASE("allocations are counted, bounded, and never at an address twice") {
  GlobalMemory memory(1 << 20);
  CHECK(memory.capacity_bytes() == 1 << 20);
  const uint64_t a = memory.allocate(1 << 19, "a", BufferKind::device);
  const uint64_t b = memory.allocate(1000, "b", BufferKind::device, false, false, true);
  CHECK(memory.used_bytes() == (1 << 19) + 1000);
  CHECK(b >= a + (1 << 19) + 4096);  // a red zone in between
  CHECK(memory.allocate(1 << 19, "c", BufferKind::device) == 0);
  CHECK(memory.allocate(-1, "c", BufferKind::device) == 0);
  CHECK(memory.allocate(INT64_MAX, "c", BufferKind::device) == 0);
  CHECK(memory.allocate(1 << 20, "pinned", BufferKind::pinned) != 0);  // the host's own limit
  CHECK(memory.allocate(1, "pinned", BufferKind::managed) == 0);
  CHECK(memory.used_bytes() == (1 << 19) + 1000);
  CHECK(memory.live().size() == 3);
  memory.free(a);
  memory.free(a);
  memory.free(a + 1);
  CHECK(memory.used_bytes() == 1000);
  CHECK(memory.live().front().name == "b");
  CHECK(memory.live().front().is_module);
  for (int i = 0; i < 100; ++i) {
    const uint64_t again = memory.allocate(1 << 19, "a", BufferKind::device);
    CHECK(again > b);
    memory.data(again)[0] = std::byte{1};
    memory.free(again);
  }
  REQUIRE(memory.find(a + 5).has_value());
  CHECK(memory.find(a + 5)->is_freed);
  CHECK(memory.find(b + 999)->address == b);
  CHECK(memory.find(b + 1000)->address == b);  // where it ends
  CHECK_FALSE(memory.find(b + 1001).has_value());
  CHECK_FALSE(memory.find(b - 1).has_value());
  CHECK_FALSE(memory.find(0).has_value());
}

TEST_CASE("large buffers are NaN, and take pages only where they are written") {
  const auto resident_bytes = [] {
    int64_t pages = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "r")) {
      long long total = 0, resident = 0;
      if (std::fscanf(file, "%lld %lld", &total, &resident) == 2) pages = resident;
      std::fclose(file);
    }
    return pages * sysconf(_SC_PAGESIZE);
  };
  GlobalMemory memory(int64_t{1} << 34);
  const int64_t bytes = (int64_t{1} << 33) + 1234;
  const int64_t before = resident_bytes();
  const uint64_t large = memory.allocate(bytes, "large", BufferKind::device);
  CHECK(resident_bytes() - before < 32 << 20);
  const std::byte* data = memory.data(large);
  for (const int64_t at : {int64_t{0}, int64_t{5000}, int64_t{1} << 32, bytes - 1}) {
    CHECK(data[at] == std::byte{0xff});
  }
  const int64_t written = 64 << 20;
  std::memset(memory.data(large), 0, written);
  const int64_t with_pages = resident_bytes();
  CHECK(with_pages - before >= written);
  memory.free(large);
  CHECK(with_pages - resident_bytes() > written / 2);
}

TEST_CASE("what is out of bounds, freed or misaligned ends the launch") {
  GlobalCase test;
  const uint64_t a = test.buffer(1000, "a");
  const uint64_t b = test.buffer(100, "b");
  const auto require = [&](uint64_t address, int64_t bytes) {
    test.memory.require(test.thread(3), address, bytes, bytes, "read", line(20));
  };
  require(a, 16);
  require(a + 992, 8);
  require(b + 99, 1);
  CHECK(test.found_nothing());
  CHECK_THROWS_AS(require(a + 1000, 4), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK(test.said ==
        "out of bounds: test block (0,0,0): read of 4 bytes, 4 bytes past the end of buffer a of "
        "1000 bytes, by thread 3 (warp 0 lane 3) [kernel.cu:20]");
  CHECK_THROWS_AS(require(a + 992, 16), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK_THAT(test.said, ContainsSubstring("8 bytes past the end of buffer a"));
  CHECK_THROWS_AS(require(b - 4, 4), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK_THAT(test.said, ContainsSubstring("4 bytes before buffer b of 100 bytes"));
  CHECK_THROWS_AS(require(0, 4), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK_THAT(test.said, ContainsSubstring("at 0x0, which is not device memory"));
  CHECK_THROWS_AS(require(a + 4, 8), Fault);
  CHECK(test.found_only(FindingKind::misaligned));
  CHECK_THAT(test.said, ContainsSubstring("a+0x4"));
  CHECK_THAT(test.said, ContainsSubstring("expected a multiple of 8"));
  test.memory.free(a);
  CHECK_THROWS_AS(require(a + 4, 4), Fault);
  CHECK(test.found_only(FindingKind::use_after_free));
  CHECK_THAT(test.said, ContainsSubstring("a+0x4, in buffer a of 1000 bytes, which was freed"));
  require(b, 4);
  CHECK(test.found_nothing());
  try {
    require(b + 2, 4);
  } catch (const Fault& fault) {
    CHECK(fault.kind == Fault::Kind::misaligned);
  }
}

TEST_CASE("reads before writes, and writes to what may only be read, are found") {
  GlobalCase test;
  const uint64_t a = test.buffer(64, "a", false);
  test.write(test.thread(0), a + 4);
  test.read(test.thread(0), a + 4);
  CHECK(test.found_nothing());
  test.read(test.thread(0), a, 8);
  CHECK(test.found_only(FindingKind::uninitialised_read));
  CHECK_THAT(test.said, ContainsSubstring("reads a+0x0, which nothing has written"));
  const uint64_t c = test.memory.allocate(64, "c", BufferKind::constant, true, true);
  test.read(test.thread(0), c, 16);
  CHECK(test.found_nothing());
  test.write(test.thread(0), c + 8);
  CHECK(test.found_only(FindingKind::read_only_write));
  CHECK_THAT(test.said, ContainsSubstring("writes c+0x8, which may only be read"));
}

TEST_CASE("copies carry along what is not initialised") {
  GlobalCase test;
  const uint64_t from = test.buffer(5000, "from", false), to = test.buffer(5000, "to", false);
  for (uint64_t i = 0; i < 5000; i += 250) test.write(test.thread(0), from + i, 2);
  test.end();
  CHECK(test.host(from, 4000, HostAccess::read, 1));
  CHECK(test.host(to + 2, 4000, HostAccess::write, 1));
  test.memory.copy_initialised(to + 2, from, 4000);
  test.begin();
  for (uint64_t i = 0; i < 4000; i += 250) test.read(test.thread(0), to + i + 2, 2);
  CHECK(test.found_nothing());
  test.read(test.thread(0), to + 1004, 1);
  CHECK(test.found_only(FindingKind::uninitialised_read));
  CHECK_THAT(test.said, ContainsSubstring("to+0x3ec"));
  test.read(test.thread(0), to + 4002, 1);  // behind the copy
  CHECK(test.found_only(FindingKind::uninitialised_read));
  test.end();
  int own = 0;  // host memory is initialised
  CHECK(test.host(to, 5000, HostAccess::write, 2));
  test.memory.copy_initialised(to, reinterpret_cast<uint64_t>(&own), 4);
  test.begin();
  for (uint64_t i = 0; i < 5000; i += 8) test.read(test.thread(0), to + i, 8);
  CHECK(test.found_nothing());
}

TEST_CASE("what a library may have left anywhere is read by nobody before it is written") {
  GlobalCase test;
  const uint64_t a = test.buffer(5000, "a");
  test.end();
  CHECK(test.host(a + 16, 4000, HostAccess::leave, 1));
  test.begin();
  test.read(test.thread(0), a + 12, 4);
  test.read(test.thread(0), a + 4016, 4);
  CHECK(test.found_nothing());
  test.read(test.thread(0), a + 2048, 4);
  CHECK(test.found_only(FindingKind::uninitialised_read));
  test.write(test.thread(0), a + 2048, 4);
  test.read(test.thread(0), a + 2048, 4);
  CHECK(test.found_nothing());
}

TEST_CASE("a host's ranges must lie in one live buffer") {
  GlobalCase test;
  test.end();
  const uint64_t a = test.buffer(1000, "a");
  CHECK(test.host(a, 1000, HostAccess::write, 1));
  CHECK(test.host(a + 1000, 0, HostAccess::write, 1));
  CHECK(test.found_nothing());
  CHECK_FALSE(test.host(a + 8, 1000, HostAccess::read, 1));
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK(test.said ==
        "out of bounds: cudaMemcpyAsync of 1000 bytes, 8 bytes past the end of buffer a of 1000 "
        "bytes");
  int own = 0;
  CHECK_FALSE(test.host(reinterpret_cast<uint64_t>(&own), 4, HostAccess::read, 1));
  CHECK(test.found_only(FindingKind::out_of_bounds));
  test.memory.free(a);
  CHECK_FALSE(test.host(a, 8, HostAccess::read, 1));
  CHECK(test.found_only(FindingKind::use_after_free));
}

TEST_CASE("sectors of requests, by hand") {
  GlobalCase test;
  const uint64_t a = test.buffer(1 << 16, "a");  // 256-byte aligned: sectors begin at multiples
  const auto count = [&](int bytes, LaneMask lanes, auto&& offset) {
    Request request{.lanes = lanes, .bytes = bytes, .address = {}};
    for (size_t lane = 0; lane < kLanes; ++lane) request.address[lane] = a + offset(lane);
    test.launch->counters = {};
    count_global(*test.launch, GlobalRequest::load, request);
    const Counters& counters = test.launch->counters;
    CHECK((counters.load_requests == 1 && counters.store_requests == 0));
    return std::pair(counters.load_sectors, counters.load_ideal_sectors);
  };
  using Sectors = std::pair<int64_t, int64_t>;
  CHECK(count(4, kAllLanes, [](size_t lane) { return 4 * lane; }) == Sectors(4, 4));
  CHECK(count(4, kAllLanes, [](size_t lane) { return 4 * (31 - lane); }) == Sectors(4, 4));
  CHECK(count(4, kAllLanes, [](size_t lane) { return 4 * lane + 4; }) == Sectors(5, 4));
  CHECK(count(4, kAllLanes, [](size_t) { return 8; }) == Sectors(1, 1));
  CHECK(count(4, kAllLanes, [](size_t lane) { return 32 * lane; }) == Sectors(32, 4));
  CHECK(count(2, kAllLanes, [](size_t lane) { return 2 * lane; }) == Sectors(2, 2));
  CHECK(count(16, kAllLanes, [](size_t lane) { return 16 * lane; }) == Sectors(16, 16));
  CHECK(count(16, kAllLanes, [](size_t lane) { return 64 * lane; }) == Sectors(32, 16));
  CHECK(count(4, 0x7, [](size_t lane) { return 1000 * lane; }) == Sectors(3, 1));  // 12 bytes
  CHECK(count(4, kAllLanes, [](size_t lane) { return lane % 2 * 512; }) == Sectors(2, 1));
  const auto counted = [&](GlobalRequest kind) {
    test.launch->counters = {};
    count_global(*test.launch, kind, {.lanes = 1, .bytes = 4, .address = {a}});
    return test.launch->counters;
  };
  CHECK(counted(GlobalRequest::store).store_sectors == 1);
  CHECK(counted(GlobalRequest::atomic).atomic_sectors == 1);
  CHECK(counted(GlobalRequest::async_copy).async_copy_ideal_sectors == 1);
}

TEST_CASE("traffic is counted by buffer, and summed") {
  GlobalCase test;
  const uint64_t a = test.buffer(4096, "a"), b = test.buffer(4096, "b");
  for (size_t block = 0; block < 2; ++block) {
    for (size_t i = 0; i < 32; ++i) {
      test.read(test.thread(i, block), a + 4 * i);
      test.read(test.thread(i, block), a + 1024);  // one request for one word
    }
  }
  test.read(test.thread(0), a + 1024, 4, kWeak, 21);  // the first block's own again
  test.write(test.thread(0), b, 16);
  test.write(test.thread(0), b, 16);
  Request request{.lanes = kAllLanes, .bytes = 4, .address = {}};
  for (size_t lane = 0; lane < kLanes; ++lane) request.address[lane] = a + 4 * lane;
  count_global(*test.launch, GlobalRequest::load, request);
  count_global(*test.launch, GlobalRequest::store, {.lanes = 1, .bytes = 4, .address = {b}});
  Counters counters = test.end();
  CHECK(counters.unique_read_bytes == 132);
  CHECK(counters.unique_write_bytes == 16);
  REQUIRE(counters.buffers.size() == 2);
  CHECK(counters.buffers[0].name == "a");
  CHECK(counters.buffers[0].unique_read_bytes == 132);
  CHECK(counters.buffers[0].reread_bytes == 132);  // by the second block
  CHECK(counters.buffers[0].read_sectors == 4);
  CHECK(counters.buffers[1].unique_write_bytes == 16);
  CHECK(counters.buffers[1].write_sectors == 1);
  test.begin();
  test.read(test.thread(0), a);
  const Counters next = test.end();
  CHECK(next.buffers.size() == 1);
  counters.add(next);
  CHECK(counters.buffers[0].unique_read_bytes == 136);
  CHECK(counters.unique_read_bytes == 136);
  CHECK(name(InstructionClass::tensor) == std::string("tensor"));
  CHECK(name(InstructionClass::integer) == std::string("integer"));
}

TEST_CASE("a shadow's cells are as many as kernels need") {
  const int64_t others = GlobalShadow::num_cells();
  const auto cells = [&] { return GlobalShadow::num_cells() - others; };
  {
    GlobalShadow shadow(1 << 20, true);
    const auto nothing = [](GlobalCell&, int64_t, int64_t) {};
    shadow.for_range(0, 1 << 20, true, nothing);
    CHECK(cells() == 0);
    const auto mark = [](GlobalCell& cell, int64_t, int64_t) { cell.writer_operation = 2; };
    shadow.for_cells(0, 1024, mark);
    CHECK(cells() == 64);
    shadow.for_cells(4, 4, mark);
    CHECK(cells() == 256);
    shadow.for_cells(1024, 16, mark);
    CHECK(cells() == 256 + 64);
    shadow.merge_alike();  // the first kilobyte is alike, the second is not
    CHECK(cells() == 64);
    shadow.for_cells(0, 16, nothing);
    shadow.merge_alike();
    CHECK(cells() == 64);
    shadow.for_range(1000, 4000, true, nothing);
    CHECK(cells() == 128 + 128);  // both ends, at multiples of eight
  }
  CHECK(cells() == 0);
}

}  // namespace
}  // namespace wide::simt
