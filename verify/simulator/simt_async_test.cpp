// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's cp.async groups and mbarriers: when copies land, whom they belong to until
// then, and what a phase orders. Each check must report what is wrong and stay silent about what is
// right, whenever things land.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "verify/simulator/simt_case.hpp"

namespace wide::simt {
namespace {

constexpr uint32_t kData = kSharedBase, kMbarrier = kSharedBase + 512;
constexpr Delivery kDeliveries[] = {Delivery::lazy, Delivery::eager, Delivery::random};

struct AsyncCase : SimtCase {
  explicit AsyncCase(Delivery delivery = Delivery::lazy)
      : SimtCase(64), source(memory.allocate(1024, "source", BufferKind::device, true)) {
    options.delivery = delivery;
    begin();
    for (int i = 0; i < 1024; ++i) memory.data(source)[i] = static_cast<std::byte>(i % 200 + 1);
  }
  Async& async() { return *blocks[0]->async; }
  SharedMemory& shared() { return *blocks[0]->shared; }
  Warp& warp(size_t index) { return blocks[0]->warps[index]; }
  void copy(size_t by, uint32_t to, int bytes = 16, int source_bytes = 16, int at = 1) {
    async().copy(thread(by), to, source + (to - kData), bytes, source_bytes, line(at));
  }
  void read(size_t by, uint32_t address, int64_t bytes = 4) {
    shared().read(thread(by), address, bytes, SharedAccess::generic, line(2));
  }
  void write(size_t by, uint32_t address, int64_t bytes = 4) {
    shared().write(thread(by), address, bytes, SharedAccess::generic, line(3));
  }
  int byte(uint32_t address) { return static_cast<int>(*shared().at(address)); }
  int source_byte(uint32_t address) { return static_cast<int>(address - kData) % 200 + 1; }
  void barrier() {
    for (Warp& each : blocks[0]->warps) {
      reach_barrier(each, each.paths[0], kAllLanes, {.at = line(90)});
    }
  }
  void init(uint32_t count, size_t by = 0) { async().init(thread(by), kMbarrier, count, line(4)); }
  void init_for_all(uint32_t count) {
    init(count);
    barrier();
  }
  uint64_t arrive(size_t by, uint32_t count = 1) {
    return async().arrive(thread(by), kMbarrier, count, 0, line(5));
  }
  bool test_wait(size_t warp_index, uint32_t parity, LaneMask lanes = kAllLanes) {
    return async().test_wait(warp(warp_index), lanes, kMbarrier, parity, line(6));
  }
  void wait(size_t warp_index) {
    async().wait(warp(warp_index), warp(warp_index).paths[0], kMbarrier, line(6));
  }
  uint64_t source;
};

// ---- cp.async

TEST_CASE("a copy is nobody's until its thread has waited") {
  for (const Delivery delivery : kDeliveries) {
    AsyncCase test(delivery);
    test.copy(0, kData);
    test.async().commit(test.thread(0));
    SECTION("not its own thread's") {
      test.read(0, kData);
      CHECK(test.found_only(FindingKind::in_flight));
    }
    SECTION("nor another's") {
      test.barrier();
      test.read(40, kData);
      CHECK(test.found_only(FindingKind::in_flight));
      test.write(40, kData + 8);
      CHECK(test.found_only(FindingKind::in_flight));
    }
    SECTION("its own after the wait") {
      test.async().wait_group(test.thread(0), 0);
      test.read(0, kData, 16);
      CHECK(test.found_nothing());
      CHECK(test.byte(kData + 15) == test.source_byte(kData + 15));
      test.read(40, kData);
      CHECK(test.found_only(FindingKind::race));
      test.barrier();
      test.read(40, kData + 4);
      CHECK(test.found_nothing());
    }
    SECTION("a barrier before the wait does not hand it over") {
      test.barrier();
      test.async().wait_group(test.thread(0), 0);
      test.read(40, kData);
      CHECK(test.found_only(FindingKind::race));
    }
  }
}

TEST_CASE("data of a copy are there late, at once, or in between") {
  AsyncCase lazy, eager(Delivery::eager), random(Delivery::random);
  for (AsyncCase* test : {&lazy, &eager, &random}) {
    for (uint32_t i = 0; i < 16; ++i) test->copy(i, kData + 16 * i);
  }
  CHECK(lazy.byte(kData) == 0xff);
  CHECK(eager.byte(kData) == eager.source_byte(kData));
  int num_landed = 0;
  for (uint32_t i = 0; i < 16; ++i) num_landed += random.byte(kData + 16 * i) != 0xff;
  CHECK((num_landed > 0 && num_landed < 16));
  for (uint32_t i = 0; i < 16; ++i) random.async().wait_all(random.thread(i));
  for (uint32_t i = 0; i < 16; ++i) {
    CHECK(random.byte(kData + 16 * i) == random.source_byte(kData + 16 * i));
  }
}

TEST_CASE("groups land in order, all but the last few") {
  AsyncCase test;
  for (uint32_t i = 0; i < 4; ++i) {
    test.copy(0, kData + 16 * i);
    if (i < 3) test.async().commit(test.thread(0));
  }
  const auto landed = [&] {
    int count = 0;
    for (uint32_t i = 0; i < 4; ++i) count += test.byte(kData + 16 * i) != 0xff;
    return count;
  };
  test.async().wait_group(test.thread(0), 3);
  CHECK(landed() == 0);
  test.async().wait_group(test.thread(0), 2);
  CHECK(landed() == 1);
  test.read(0, kData, 16);
  CHECK(test.found_nothing());
  test.read(0, kData + 16);
  CHECK(test.found_only(FindingKind::in_flight));
  test.async().wait_group(test.thread(0), 0);
  CHECK(landed() == 3);  // the fourth is in no group yet
  test.async().end_of_block();
  CHECK(test.found_only(FindingKind::unfinished));
  CHECK(test.said.find("never committed") != std::string::npos);
  test.async().wait_all(test.thread(0));
  CHECK(landed() == 4);
  test.async().end_of_block();
  CHECK(test.found_nothing());
}

TEST_CASE("empty groups count like others") {
  AsyncCase test;
  test.copy(0, kData);
  test.async().commit(test.thread(0));
  test.async().commit(test.thread(0));
  test.async().wait_group(test.thread(0), 1);
  test.read(0, kData);
  CHECK(test.found_nothing());
}

TEST_CASE("copies of fewer bytes than their size are filled with zeros") {
  AsyncCase test;
  const int bytes = GENERATE(4, 8, 16);
  const int source_bytes = GENERATE(0, 1, 3, 4);
  test.copy(3, kData + 32, bytes, source_bytes);
  test.async().wait_all(test.thread(3));
  for (int i = 0; i < bytes; ++i) {
    const uint32_t at = kData + 32 + static_cast<uint32_t>(i);
    CHECK(test.byte(at) == (i < source_bytes ? test.source_byte(at) : 0));
  }
  CHECK(test.byte(kData + 32 + static_cast<uint32_t>(bytes)) == 0xff);
  CHECK(test.launch->counters.async_copy_bytes == source_bytes);
  CHECK(test.found_nothing());
}

TEST_CASE("copies are in range, aligned, and of initialised memory") {
  AsyncCase test;
  SECTION("destination") {
    CHECK_THROWS_AS(test.copy(0, kData + 8), Fault);
    CHECK(test.found_only(FindingKind::misaligned));
    CHECK_THROWS_AS(test.copy(0, kData + 1024), Fault);
    CHECK(test.found_only(FindingKind::out_of_bounds));
  }
  SECTION("source") {
    const auto copy = [&](uint64_t from, int bytes) {
      test.async().copy(test.thread(0), kData, from, 16, bytes, line(1));
    };
    CHECK_THROWS_AS(copy(test.source + 8, 16), Fault);
    CHECK(test.found_only(FindingKind::misaligned));
    CHECK_THROWS_AS(copy(test.source + 1024, 16), Fault);
    CHECK(test.found_only(FindingKind::out_of_bounds));
    copy(test.source + 1024, 0);  // nothing is read there
    CHECK(test.found_nothing());
  }
  SECTION("more bytes than are copied") {
    CHECK_THROWS_AS(test.copy(0, kData, 8, 16), Fault);
    CHECK(test.found_only(FindingKind::out_of_bounds));
  }
  SECTION("never written") {
    const uint64_t other = test.memory.allocate(16, "other", BufferKind::device);
    test.async().copy(test.thread(0), kData, other, 16, 16, line(1));
    CHECK(test.found_only(FindingKind::uninitialised_read));
  }
  SECTION("over what others have read") {
    test.write(0, kData, 16);
    test.barrier();
    test.read(40, kData);
    test.copy(0, kData);
    CHECK(test.found_only(FindingKind::race));
  }
}

TEST_CASE("copies that nobody waits for are unfinished") {
  for (const Delivery delivery : kDeliveries) {
    AsyncCase test(delivery);
    test.copy(7, kData);
    test.async().commit(test.thread(7));
    test.async().end_of_block();
    CHECK(test.found_only(FindingKind::unfinished));
    CHECK(test.said.find("thread 7") != std::string::npos);
    CHECK(test.said.find("never waited for") != std::string::npos);
  }
}

// ---- mbarriers

TEST_CASE("a phase is complete after all its arrivals, and hands over what they did") {
  AsyncCase test;
  test.init_for_all(3);
  test.write(0, kData);
  test.write(1, kData + 4);
  CHECK(test.arrive(0) == 0);
  CHECK(test.arrive(1) == 0);
  CHECK_FALSE(test.test_wait(1, 0));
  CHECK(test.test_wait(1, 1));  // the phase before the first counts as complete
  test.read(40, kData);
  CHECK(test.found_only(FindingKind::race));
  test.arrive(2);
  CHECK(test.test_wait(1, 0, 1u << 8));
  test.read(40, kData);
  test.read(40, kData + 4);
  CHECK(test.found_nothing());
  test.read(41, kData);  // of the same warp, but it has not waited
  CHECK(test.found_only(FindingKind::race));
  CHECK(test.arrive(0) == 1);  // the next phase's token
  test.arrive(0, 2);
  CHECK_FALSE(test.test_wait(1, 0));
  CHECK(test.test_wait(1, 1));
  CHECK(test.found_nothing());
}

TEST_CASE("an arrival hands on what its thread knows of others") {
  AsyncCase test;
  test.init_for_all(1);
  test.write(5, kData);
  test.hand_over(test.thread(5), test.thread(0));
  test.arrive(0);
  CHECK(test.test_wait(1, 0));
  test.read(40, kData);
  CHECK(test.found_nothing());
}

TEST_CASE("what a thread does after its arrival is not handed over") {
  AsyncCase test;
  test.init_for_all(1);
  test.arrive(0);
  test.write(0, kData);
  CHECK(test.test_wait(1, 0));
  test.read(40, kData);
  CHECK(test.found_only(FindingKind::race));
}

TEST_CASE("who waits is woken by the end of its phase") {
  AsyncCase test;
  test.init_for_all(1);
  CHECK_FALSE(test.test_wait(1, 0));
  test.wait(1);
  CHECK_FALSE(test.warp(1).paths[0].is_ready);
  CHECK(std::string(test.warp(1).paths[0].waits_for) == "mbarrier");
  CHECK(test.async().describe() ==
        "the mbarrier at shared+0x200 [kernel.cu:4]: phase 0 lacks 1 of 1 arrivals and 0 bytes; "
        "waited for by warp 1");
  test.arrive(0);
  CHECK(test.warp(1).paths[0].is_ready);
  SECTION("in time") {
    CHECK(test.test_wait(1, 0));
    CHECK(test.found_nothing());
  }
  SECTION("nobody waits any more") {
    CHECK(test.async().describe().find("waited for") == std::string::npos);
  }
  SECTION("two phases on, for some lanes") {
    CHECK(test.test_wait(1, 0, 0xffff));
    CHECK(test.found_nothing());
    test.arrive(0);
    CHECK(test.test_wait(1, 0, 0xffff0000u));
    CHECK(test.found_only(FindingKind::mbarrier));
    CHECK(test.said.find("advanced 2 phases") != std::string::npos);
  }
}

TEST_CASE("expected bytes hold a phase back") {
  AsyncCase test;
  test.init_for_all(1);
  test.async().expect_bytes(test.thread(0), kMbarrier, 100, line(7));
  test.async().arrive(test.thread(0), kMbarrier, 1, 28, line(7));
  CHECK_FALSE(test.test_wait(1, 0));
  CHECK(test.async().describe().find("lacks 0 of 1 arrivals and 128 bytes") != std::string::npos);
  test.async().end_of_block();
  CHECK(test.found_only(FindingKind::mbarrier));
  test.async().expect_bytes(test.thread(0), kMbarrier, 1 << 20, line(7));
  CHECK(test.found_only(FindingKind::mbarrier));
}

TEST_CASE("misused mbarriers are found") {
  AsyncCase test;
  SECTION("not initialised") {
    test.arrive(0);
    CHECK(test.found_only(FindingKind::mbarrier));
    CHECK(test.test_wait(0, 0));  // goes on rather than hang
    CHECK(test.found_only(FindingKind::mbarrier));
  }
  SECTION("an init that is not ordered before its use") {
    test.init(1);
    test.arrive(40);
    CHECK(test.found_only(FindingKind::race));
    test.barrier();
    test.arrive(40);
    CHECK(test.found_nothing());
  }
  SECTION("a second init") {
    test.init(1);
    test.init(2);
    CHECK(test.found_only(FindingKind::mbarrier));
    test.arrive(0);
    CHECK_FALSE(test.test_wait(0, 0, 1));  // it is the second one's count that holds
  }
  SECTION("a second init after an invalidation") {
    test.init(1);
    test.arrive(0);
    test.async().invalidate(test.thread(0), kMbarrier, line(8));
    test.init(2);
    CHECK_FALSE(test.test_wait(0, 0, 1));  // begins anew
    test.arrive(0, 2);
    CHECK(test.test_wait(0, 0, 1));
    CHECK(test.found_nothing());
  }
  SECTION("an invalidation while others wait") {
    test.init_for_all(1);
    test.wait(1);
    test.async().invalidate(test.thread(0), kMbarrier, line(8));
    CHECK(test.found_only(FindingKind::mbarrier));
  }
  SECTION("an invalidation while bytes are expected") {
    test.init(1);
    test.async().expect_bytes(test.thread(0), kMbarrier, 16, line(7));
    test.async().invalidate(test.thread(0), kMbarrier, line(8));
    CHECK(test.found_only(FindingKind::mbarrier));
  }
  SECTION("used after its invalidation") {
    test.init(1);
    test.async().invalidate(test.thread(0), kMbarrier, line(8));
    CHECK(test.found_nothing());
    test.arrive(0);
    CHECK(test.found_only(FindingKind::mbarrier));
  }
  SECTION("more arrivals than its count") {
    test.init_for_all(2);
    test.arrive(0, 3);
    CHECK(test.found_only(FindingKind::mbarrier));
  }
  SECTION("a count of nothing") {
    test.init(0);
    CHECK(test.found_only(FindingKind::mbarrier));
  }
  SECTION("misaligned, out of range") {
    CHECK_THROWS_AS(test.async().init(test.thread(0), kMbarrier + 4, 1, line(4)), Fault);
    CHECK(test.found_only(FindingKind::misaligned));
    CHECK_THROWS_AS(test.async().arrive(test.thread(0), kData + 1024, 1, 0, line(4)), Fault);
    CHECK(test.found_only(FindingKind::out_of_bounds));
  }
  SECTION("in memory that others use") {
    test.write(40, kMbarrier);
    test.init(1);
    CHECK(test.found_only(FindingKind::race));
  }
}

TEST_CASE("there are mbarriers for everybody, used again and again") {
  AsyncCase test;
  for (uint32_t i = 0; i < 1000; ++i) {
    test.init(1);
    warp_sync(test.warp(0), test.warp(0).paths[0], kAllLanes, kAllLanes, line(4));
    test.write(0, kData);
    test.arrive(0);
    REQUIRE(test.test_wait(0, 0, 2));
    test.read(1, kData);
    test.async().arrive(test.thread(1), kMbarrier, 1, 0, line(5));
    REQUIRE(test.test_wait(0, 1, 1));
    test.async().invalidate(test.thread(0), kMbarrier, line(8));
  }
  CHECK(test.found_nothing());
  AsyncCase full;
  for (uint32_t i = 0; i < 128; ++i) {
    full.async().init(full.thread(0), kData + 8 * i, 1, line(4));
  }
  CHECK(full.found_nothing());
}

TEST_CASE("a loop that only tests gets there") {
  AsyncCase test;
  test.init_for_all(1);
  test.async().fence_mbarrier_init(test.thread(0));
  test.barrier();
  test.async().arrive(test.thread(0), kMbarrier, 1, 64, line(5));
  test.async().load_bulk(test.thread(0), kData, test.source, 64, kMbarrier, line(9));
  int tests = 1;
  while (!test.test_wait(1, 0) && tests < 1000) ++tests;
  CHECK((tests > 1 && tests < 1000));
  test.read(40, kData);
  CHECK(test.found_nothing());
}

// ---- copies that arrive

TEST_CASE("copies arrive on an mbarrier when they have landed") {
  for (const Delivery delivery : kDeliveries) {
    for (const bool is_counted : {false, true}) {
      AsyncCase test(delivery);
      // With the extra arrival the phase still needs the thread's own.
      test.init_for_all(1);
      test.copy(0, kData);
      test.copy(0, kData + 16);
      test.async().copy_arrive(test.thread(0), kMbarrier, is_counted, line(9));
      test.write(0, kData + 64);  // after it
      if (delivery == Delivery::lazy) CHECK_FALSE(test.test_wait(1, 0));
      while (test.async().progress()) continue;
      if (is_counted) {
        CHECK_FALSE(test.test_wait(1, 0));
        test.arrive(40);
      }
      CHECK(test.test_wait(1, 0));
      test.read(40, kData, 32);
      CHECK(test.found_nothing());
      CHECK(test.byte(kData + 31) == test.source_byte(kData + 31));
      test.read(40, kData + 64);
      CHECK(test.found_only(FindingKind::race));
      test.async().end_of_block();
      CHECK(test.found_nothing());
    }
  }
}

TEST_CASE("a wait for the copies lets them arrive as well") {
  AsyncCase test;
  test.init_for_all(1);
  test.copy(0, kData);
  test.async().copy_arrive(test.thread(0), kMbarrier, false, line(9));
  test.copy(0, kData + 16);
  CHECK_FALSE(test.test_wait(1, 0));
  test.async().wait_all(test.thread(0));
  CHECK(test.test_wait(1, 0));
  test.read(0, kData, 32);
  CHECK(test.found_nothing());
}

TEST_CASE("an arrival covers the copies before it only") {
  AsyncCase test;
  test.init_for_all(1);
  test.copy(0, kData);
  test.async().copy_arrive(test.thread(0), kMbarrier, false, line(9));
  test.copy(0, kData + 16);
  test.async().commit(test.thread(0));
  CHECK(test.async().progress());
  CHECK_FALSE(test.async().progress());
  CHECK(test.test_wait(1, 0));
  test.read(40, kData);
  CHECK(test.found_nothing());
  test.read(40, kData + 16);
  CHECK(test.found_only(FindingKind::in_flight));
  test.async().wait_group(test.thread(0), 0);
  test.read(0, kData + 16);
  CHECK(test.found_nothing());
}

}  // namespace
}  // namespace wide::simt
