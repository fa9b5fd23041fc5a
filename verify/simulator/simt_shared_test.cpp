// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's clocks, findings and shared memory: each check must report what is wrong and
// stay silent about what is right.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>
#include <set>

#include "verify/simulator/simt_case.hpp"

namespace wide::simt {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr uint32_t kWord = kSharedBase + 0x40;

struct SharedCase : SimtCase {
  SharedCase() : SimtCase(96) { begin(); }
  SharedMemory& shared() { return *blocks[0]->shared; }
  void read(size_t reader, uint32_t address, int64_t bytes, int at = 20,
            SharedAccess kind = SharedAccess::generic) {
    shared().read(thread(reader), address, bytes, kind, line(at));
  }
  void write(size_t writer, uint32_t address, int64_t bytes, int at = 10,
             SharedAccess kind = SharedAccess::generic) {
    shared().write(thread(writer), address, bytes, kind, line(at));
  }
  /// A barrier of the whole block.
  void barrier() {
    Knowledge all;
    for (Thread& each : blocks[0]->threads) all.join(each.release());
    for (Thread& each : blocks[0]->threads) each.known = all;
  }
};

TEST_CASE("a clock knows what was joined, and no more") {
  Knowledge a, b;
  CHECK(a.includes({-1, 7}));
  CHECK_FALSE(a.includes({0, 1}));
  a.join({3, 5}, 8);
  CHECK(a.includes({3, 5}));
  CHECK_FALSE(a.includes({3, 6}));
  b = a;
  b.join({4, 2}, 8);
  CHECK_FALSE(a.includes({4, 2}));  // a copy, though they shared a vector
  Knowledge c;
  c.join({4, 9}, 8);
  c.join({3, 1}, 8);
  b.join(c);
  CHECK((b.includes({3, 5}) && b.includes({4, 9})));
  CHECK_FALSE((b.includes({3, 6}) || b.includes({4, 10})));
  c.join({5, 1}, 8);
  b.join(c);  // it has grown since
  CHECK(b.includes({5, 1}));
  b.clear();
  CHECK_FALSE(b.includes({3, 1}));
}

TEST_CASE("equal joins of clocks that are shared give equal clocks") {
  Knowledge base, news;
  base.join({0, 4}, 4);
  news.join({1, 6}, 4);
  std::vector<Knowledge> lanes(32, base);
  for (Knowledge& lane : lanes) lane.join(news);
  news.join({2, 1}, 4);
  for (Knowledge& lane : lanes) {
    CHECK((lane.includes({0, 4}) && lane.includes({1, 6})));
    CHECK_FALSE(lane.includes({2, 1}));
  }
  lanes[0].join({3, 1}, 4);
  CHECK_FALSE(lanes[1].includes({3, 1}));
  Knowledge others, first = base, second = base;
  others.join({3, 2}, 4);
  first.join(news);
  second.join(others);  // equal clocks, other news
  CHECK((first.includes({1, 6}) && !first.includes({3, 2})));
  CHECK((second.includes({3, 2}) && !second.includes({1, 6})));
}

TEST_CASE("a clock passes from block to block") {
  Knowledge a;
  a.join({3, 5}, 8);
  Knowledge b;
  b.join({1, 1}, 8);
  b.import(a.exported(7), 9);
  CHECK(b.includes(7, {3, 5}));
  CHECK_FALSE(b.includes(7, {3, 6}));
  CHECK_FALSE(b.includes(8, {3, 5}));
  CHECK_FALSE(b.includes({3, 5}));  // of its own block it knows what it knew
  CHECK(b.includes({1, 1}));
  Knowledge c;
  c.import(b.exported(9), 7);  // back to the first block, through another
  CHECK(c.includes({3, 5}));
  CHECK(c.includes(9, {1, 1}));
  CHECK_FALSE(c.includes(7, {3, 5}));
  Knowledge d;
  d.join({2, 2}, 8);
  Knowledge e;
  e.import(d.exported(7), 1);
  e.join(b);
  CHECK((e.includes(7, {3, 5}) && e.includes(7, {2, 2})));
}

TEST_CASE("a finding is kept once for a pair of lines and counted always") {
  Findings findings;
  for (int i = 0; i < 3; ++i) findings.report(FindingKind::race, "a", line(12), line(10));
  findings.report(FindingKind::race, "b", line(12), line(11));
  findings.report(FindingKind::proxy, "c", line(12), line(10));
  findings.report(FindingKind::host, "d");
  findings.report(FindingKind::host, "e");
  findings.report(FindingKind::host, "e");
  CHECK(findings.count() == 8);
  REQUIRE(findings.list().size() == 5);
  CHECK(to_string(findings.list()[0]) == "race: a [kernel.cu:12] against [kernel.cu:10]");
  CHECK(to_string(findings.list()[3]) == "host: d");
  std::string file = "gone.cu";
  findings.report(FindingKind::warp, "f", {file.c_str(), 1});
  file = "xxxx.cu";  // a module that was unloaded
  CHECK(to_string(findings.list()[5]) == "warp: f [gone.cu:1]");
  findings.clear();
  CHECK((findings.count() == 0 && findings.list().empty()));
}

TEST_CASE("shared memory: a write is known after a barrier and not before") {
  SharedCase test;
  test.write(37, kWord, 4);
  test.read(37, kWord, 4);
  CHECK(test.found_nothing());
  test.read(3, kWord, 4);
  CHECK(test.found_only(FindingKind::race));
  CHECK(
      test.said ==
      "race: test block (0,0,0): thread 3 (warp 0 lane 3) reads shared+0x40 that thread 37 (warp "
      "1 lane 5) wrote, without synchronisation in between [kernel.cu:20] against [kernel.cu:10]");
  test.barrier();
  test.read(3, kWord, 4);
  CHECK(test.found_nothing());
  test.write(36, kWord, 4, 30);  // over thread 3's read
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("thread 36 (warp 1 lane 4) writes shared+0x40 over what "
                                          "thread 3 (warp 0 lane 3) read"));
  test.write(2, kWord, 4, 31);
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("over what thread 36 (warp 1 lane 4) wrote"));
  test.barrier();
  test.write(50, kWord, 4);
  CHECK(test.found_nothing());
}

TEST_CASE("shared memory: lanes of a warp are threads like any other") {
  SharedCase test;
  test.write(0, kWord, 4);
  test.barrier();
  for (size_t lane = 0; lane < 32; ++lane) test.read(lane, kWord, 4);
  test.write(31, kWord, 4);  // the last reader itself: the one before it does not know
  CHECK(test.found_only(FindingKind::race));
  test.barrier();
  test.read(64, kWord, 4);
  test.read(1, kWord, 4);
  test.hand_over(test.thread(1), test.thread(2));
  test.write(2, kWord, 4);  // knows of thread 1, not of thread 64
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("thread 64 (warp 2 lane 0) read"));
}

TEST_CASE("shared memory: neighbours of every size do not race") {
  SharedCase test;
  for (const int64_t size : {1, 2, 4, 8, 16}) {
    for (int64_t i = 0; i < 32; ++i) {
      const auto address = static_cast<uint32_t>(kSharedBase + 512 + i * size);
      test.write(static_cast<size_t>(i), address, size);
      test.read(static_cast<size_t>(i), address, size);
    }
    test.barrier();
  }
  CHECK(test.found_nothing());
  for (const int64_t size : {1, 2, 4, 8, 16}) {  // and those that overlap do
    test.write(0, kWord, 16);
    test.barrier();
    test.write(1, static_cast<uint32_t>(kWord + 16 - size), size);
    test.read(2, kWord, 16);
    CHECK(test.found_only(FindingKind::race));
    CHECK_THAT(test.said, ContainsSubstring("that thread 1 (warp 0 lane 1) wrote"));
    test.barrier();
  }
}

TEST_CASE("shared memory: a split keeps what was known of the whole") {
  SharedCase test;
  test.write(5, kWord, 16, 10);
  test.read(70, kWord + 3, 1);
  CHECK(test.found_only(FindingKind::race));
  const uint32_t other = kWord + 64;  // not split yet
  test.write(5, other, 16);
  test.barrier();
  test.read(40, other, 16);
  test.write(6, other + 15, 1);  // over thread 40's read of the sixteen
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("shared+0x8f over what thread 40"));
}

TEST_CASE("shared memory: an access finds what its bytes find one by one") {
  std::mt19937 random(1);
  SharedCase whole, bytes;
  int num_found = 0, num_silent = 0;
  for (int step = 0; step < 20000; ++step) {
    if (step % 5000 == 4999) {
      whole.begin();
      bytes.begin();
    }
    const size_t who = random() % 96, other = random() % 96;
    const int64_t size = int64_t{1} << random() % 5;
    const auto address = kSharedBase + static_cast<uint32_t>(random() % 128 / size * size);
    const auto kind = random() % 4 == 0 ? SharedAccess::atomic : SharedAccess::generic;
    const size_t what = random() % 40;
    for (SharedCase* test : {&whole, &bytes}) {
      if (what == 0) test->barrier();
      if (what < 5) test->hand_over(test->thread(who), test->thread(other));
      const int64_t piece = test == &whole ? size : 1;
      for (int64_t i = 0; i < size; i += piece) {
        const auto at = static_cast<uint32_t>(address + i);
        if (what % 2 == 0) test->read(who, at, piece, 20, kind);
        if (what % 3 == 0) test->write(who, at, piece, 10, kind);
      }
    }
    const auto kinds = [](const SharedCase& test) {
      std::set<FindingKind> found;
      for (const Finding& finding : test.findings.list()) found.insert(finding.kind);
      return found;
    };
    REQUIRE(kinds(whole) == kinds(bytes));
    ++(whole.findings.count() == 0 ? num_silent : num_found);
    whole.findings.clear();
    bytes.findings.clear();
  }
  CHECK((num_found > 1000 && num_silent > 1000));
}

TEST_CASE("shared memory: what was never written is found, also after another block") {
  SharedCase test;
  test.write(0, kWord, 4);
  test.read(0, kWord, 8);
  CHECK(test.found_only(FindingKind::uninitialised_read));
  CHECK_THAT(test.said, ContainsSubstring("thread 0 (warp 0 lane 0) reads shared+0x44"));
  test.read(0, kWord + 4, 4);
  CHECK(test.found_nothing());                                    // said once
  CHECK(static_cast<uint8_t>(*test.shared().at(kWord)) == 0xff);  // NaN in every format
  test.begin();  // the next block's shared memory is new, whatever storage its shadow has
  test.read(0, kWord, 4);
  CHECK(test.found_only(FindingKind::uninitialised_read));
}

TEST_CASE("shared memory: atomics race with plain accesses and not with each other") {
  SharedCase test;
  const auto add = [&](size_t who, int at) {
    test.read(who, kWord, 4, at, SharedAccess::atomic);
    test.write(who, kWord, 4, at, SharedAccess::atomic);
  };
  add(0, 10);
  CHECK(test.found_only(FindingKind::uninitialised_read));
  test.write(0, kWord, 4);
  test.barrier();
  for (size_t i = 0; i < 96; ++i) add(i, 10);
  CHECK(test.found_nothing());
  test.read(4, kWord, 4);
  CHECK(test.found_only(FindingKind::race));
  test.barrier();
  test.read(4, kWord, 4);
  CHECK(test.found_nothing());
  test.hand_over(test.thread(4), test.thread(40));
  add(40, 10);  // knows of thread 4's read
  CHECK(test.found_nothing());
  add(41, 11);  // does not, though an atomic came in between
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("over what thread 4 (warp 0 lane 4) read"));
}

TEST_CASE("shared memory: a cp.async owns its destination until it lands") {
  SharedCase test;
  test.write(3, kWord, 16, 10, SharedAccess::async_copy);
  test.read(3, kWord + 4, 4);
  CHECK(test.found_only(FindingKind::in_flight));
  CHECK_THAT(test.said, ContainsSubstring("reads shared+0x44 while a cp.async of thread 3 (warp 0 "
                                          "lane 3) to it has not been waited for"));
  test.write(3, kWord, 4);
  CHECK(test.found_only(FindingKind::in_flight));
  test.write(3, kWord + 16, 16, 10, SharedAccess::async_copy);
  test.shared().land(test.thread(3), kWord + 16, 16);
  test.read(3, kWord + 16, 16);
  CHECK(test.found_nothing());
  test.read(4, kWord + 16, 16);
  CHECK(test.found_only(FindingKind::race));
  test.barrier();
  test.read(4, kWord + 16, 16);
  CHECK(test.found_nothing());
}

TEST_CASE("shared memory: an asynchronous copy writes in its mbarrier's name") {
  SharedCase test;
  Block& block = *test.blocks[0];
  const Epoch landed{block.mbarrier_slot(2), 1};
  test.write(9, kWord, 4);
  test.shared().write_as(test.thread(0), landed, kWord, 256, line(10));
  CHECK(test.found_only(FindingKind::race));  // thread 0 did not know of thread 9's write
  test.read(0, kWord, 4);
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("that an asynchronous copy on mbarrier 2 wrote"));
  test.thread(5).known.join(landed, block.num_slots());
  test.read(5, kWord, 256);
  CHECK(test.found_nothing());
  test.shared().write_as(test.thread(0), {block.mbarrier_slot(2), 2}, kWord, 256, line(11));
  test.findings.clear();  // thread 0 knew neither of the first copy nor of thread 5's read
  test.read(5, kWord + 128, 4);
  CHECK(test.found_only(FindingKind::race));  // knows the first phase only
  test.thread(6).known.join({block.mbarrier_slot(2), 2}, block.num_slots());
  test.write(6, kWord, 4);  // knows of the copy, not of who read what it overwrote
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("over what thread 5 (warp 0 lane 5) read"));
}

TEST_CASE("shared memory: an asynchronous read keeps writers away until they know of its end") {
  SharedCase test;
  Block& block = *test.blocks[0];
  test.write(0, kWord, 16, 10, SharedAccess::async_proxy);
  test.barrier();
  test.shared().begin_async_read(test.thread(32), kWord, 16, line(15));
  test.shared().begin_async_read(test.thread(32), kWord, 16, line(15));
  test.read(32, kWord, 16);
  CHECK(test.found_nothing());
  test.write(32, kWord + 8, 4);
  CHECK(test.found_only(FindingKind::in_flight));
  CHECK_THAT(test.said, ContainsSubstring("while an asynchronous operation of thread 32"));
  CHECK_THAT(test.said, ContainsSubstring("against [kernel.cu:15]"));
  test.write(32, kWord + 16, 4);  // the next sixteen are free
  CHECK(test.found_nothing());
  test.barrier();
  const Epoch end{block.warp_slot(1), 3};
  test.shared().end_async_read(test.thread(32), kWord, 16, end);
  test.thread(33).known.join(end, block.num_slots());
  test.write(33, kWord, 4);
  CHECK(test.found_only(FindingKind::in_flight));  // the second one is still under way
  test.shared().end_async_read(test.thread(32), kWord, 16, end);
  test.write(33, kWord, 4);
  CHECK(test.found_nothing());
  test.write(34, kWord + 12, 4);
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("over what a wgmma of warp 1 read"));
}

TEST_CASE("shared memory: the async proxy sees generic writes behind a fence") {
  SharedCase test;
  const auto fence = [&](size_t who) {
    Thread& thread = test.thread(who);
    thread.proxy_known = thread.known;
    thread.proxy_fences.push_back(thread.time++);
  };
  const auto read = [&](size_t who) { test.read(who, kWord, 16, 20, SharedAccess::async_proxy); };
  test.write(1, kWord, 16);
  read(1);
  CHECK(test.found_only(FindingKind::proxy));
  fence(1);
  read(1);
  CHECK(test.found_nothing());
  test.barrier();
  test.write(1, kWord, 16);
  test.barrier();
  read(40);
  CHECK(test.found_only(FindingKind::proxy));
  CHECK_THAT(test.said, ContainsSubstring("that thread 1 (warp 0 lane 1) wrote through the generic "
                                          "proxy, without fence.proxy.async"));
  fence(40);  // the reader may fence as well
  read(40);
  CHECK(test.found_nothing());
  test.barrier();
  test.write(40, kWord, 16, 10, SharedAccess::async_proxy);
  read(40);
  CHECK(test.found_nothing());
}

TEST_CASE("shared memory: what is out of range or misaligned ends the launch") {
  SharedCase test;
  const Thread& thread = test.thread(3);
  const auto require = [&](uint32_t address, int64_t bytes) {
    test.shared().require(thread, address, bytes, bytes, "read", line(20));
  };
  require(kSharedBase, 16);
  require(kSharedBase + 1008, 16);
  CHECK(test.found_nothing());
  CHECK_THROWS_AS(require(kSharedBase + 1024, 4), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK(test.said ==
        "out of bounds: test block (0,0,0): read of 4 bytes at shared+0x400, 4 bytes past the end "
        "of the block's 1024 bytes of shared memory, by thread 3 (warp 0 lane 3) [kernel.cu:20]");
  CHECK_THROWS_AS(require(kSharedBase - 4, 4), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK_THAT(test.said, ContainsSubstring("shared address 0x3fc, 4 bytes before"));
  CHECK_THROWS_AS(require(kSharedBase + 1020, 8), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK_THROWS_AS(require(0xffffffff, 1), Fault);
  CHECK(test.found_only(FindingKind::out_of_bounds));
  CHECK_THROWS_AS(require(kSharedBase + 4, 8), Fault);
  CHECK(test.found_only(FindingKind::misaligned));
  CHECK_THAT(test.said, ContainsSubstring("at shared+0x4, expected a multiple of 8"));
}

TEST_CASE("shared memory: bank conflicts, by hand") {
  const auto count = [](int bytes, LaneMask lanes, auto&& address) {
    Request request{.lanes = lanes, .bytes = bytes, .address = {}};
    for (size_t lane = 0; lane < kLanes; ++lane) request.address[lane] = address(lane);
    Counters counters;
    count_shared(counters, false, request);
    CHECK(counters.shared_store_passes == 0);
    return std::pair(counters.shared_load_passes, counters.shared_load_extra);
  };
  using Passes = std::pair<int64_t, int64_t>;
  CHECK(count(4, kAllLanes, [](size_t lane) { return 4 * lane; }) == Passes(1, 0));
  CHECK(count(4, kAllLanes, [](size_t) { return 64; }) == Passes(1, 0));  // one word
  CHECK(count(4, kAllLanes, [](size_t lane) { return 8 * lane; }) == Passes(2, 1));
  CHECK(count(4, kAllLanes, [](size_t lane) { return 128 * lane; }) == Passes(32, 31));
  CHECK(count(4, kAllLanes, [](size_t lane) { return 132 * lane; }) == Passes(1, 0));  // padded
  CHECK(count(4, 0x3, [](size_t lane) { return 128 * lane; }) == Passes(2, 1));
  CHECK(count(2, kAllLanes, [](size_t lane) { return 2 * lane; }) == Passes(1, 0));
  CHECK(count(1, kAllLanes, [](size_t lane) { return 128 * (lane % 4); }) == Passes(4, 3));
  CHECK(count(8, kAllLanes, [](size_t lane) { return 8 * lane; }) == Passes(2, 0));  // halves
  CHECK(count(8, kAllLanes, [](size_t lane) { return 128 * lane; }) == Passes(32, 30));
  CHECK(count(8, 0xffff, [](size_t lane) { return 8 * lane; }) == Passes(1, 0));
  CHECK(count(16, kAllLanes, [](size_t lane) { return 16 * lane; }) == Passes(4, 0));  // quarters
  CHECK(count(16, kAllLanes, [](size_t lane) { return 32 * lane; }) == Passes(8, 4));
  Counters counters;
  count_shared(counters, true, {.lanes = 1, .bytes = 4, .address = {}});
  CHECK((counters.shared_store_passes == 1 && counters.shared_load_passes == 0));
}

}  // namespace
}  // namespace wide::simt
