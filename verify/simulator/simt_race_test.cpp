// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Races in the simulated GPU's global memory: between threads of a block, between blocks, and
// between operations on streams. Each check must report what is wrong and stay silent about what is
// right.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>
#include <set>

#include "verify/simulator/simt_case.hpp"

namespace wide::simt {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("threads of a block race where nothing orders them") {
  GlobalCase test;
  const uint64_t a = test.buffer(4096, "a");
  test.write(test.thread(40), a + 64);
  test.read(test.thread(40), a + 64);
  CHECK(test.found_nothing());
  test.read(test.thread(3), a + 64);
  CHECK(test.found_only(FindingKind::race));
  CHECK(test.said ==
        "race: test block (0,0,0): thread 3 (warp 0 lane 3) reads a+0x40 that thread 40 (warp 1 "
        "lane 8) wrote, without synchronisation in between [kernel.cu:20] against [kernel.cu:10]");
  test.hand_over(test.thread(40), test.thread(4));
  test.read(test.thread(4), a + 64);
  CHECK(test.found_nothing());
  test.write(test.thread(40), a + 64, 4, kWeak, 11);
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said,
             ContainsSubstring("thread 40 (warp 1 lane 8) writes over a+0x40 that thread "
                               "4 (warp 0 lane 4) read"));
  CHECK_THAT(test.said, ContainsSubstring("[kernel.cu:11] against [kernel.cu:20]"));
  test.write(test.thread(5), a + 64);
  CHECK(test.found_only(FindingKind::race));
  for (const int64_t size : {1, 2, 4, 8, 16}) {  // neighbours do not
    for (size_t i = 0; i < 64; ++i) {
      const uint64_t address = a + 2048 + i * static_cast<uint64_t>(size);
      test.write(test.thread(i), address, size);
      test.read(test.thread(i), address, size);
    }
    CHECK(test.found_nothing());
    test.begin();
  }
}

TEST_CASE("a write is checked against several readers") {
  GlobalCase test;
  const uint64_t a = test.buffer(64, "a");
  for (size_t i = 0; i < 64; ++i) test.read(test.thread(i), a);
  test.hand_over(test.thread(62), test.thread(63));
  test.write(test.thread(63), a);  // the last one; of its own warp it knows enough
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("(warp 0 lane 31) read"));
  test.begin();
  test.read(test.thread(0, 2), a);
  for (size_t i = 0; i < 64; ++i) test.read(test.thread(i), a);
  for (size_t i = 0; i < 64; ++i) test.hand_over(test.thread(i), test.thread(5));
  test.write(test.thread(5), a);
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("that thread 0 (warp 0 lane 0) of block (2,0,0) read"));
  test.begin();
  for (size_t i = 0; i < 64; ++i) test.read(test.thread(i), a);
  for (size_t i = 0; i < 64; ++i) test.hand_over(test.thread(i), test.thread(5));
  test.write(test.thread(5), a);
  CHECK(test.found_nothing());
}

TEST_CASE("blocks race but for what they hand over") {
  GlobalCase test;
  const uint64_t a = test.buffer(64, "a"), flag = test.buffer(4, "flag");
  test.write(test.thread(7, 3), a);
  test.read(test.thread(7, 1), a);
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("test block (1,0,0)"));
  CHECK_THAT(test.said, ContainsSubstring("that thread 7 (warp 0 lane 7) of block (3,0,0) wrote"));
  CHECK(test.memory.published(flag) == nullptr);
  test.write(test.thread(7, 0), a + 8);
  test.hand_over_at(flag, test.thread(7, 0), test.thread(8, 1));
  test.read(test.thread(8, 1), a + 8);
  CHECK(test.found_nothing());
  test.read(test.thread(9, 1), a + 8);  // another thread learnt nothing
  CHECK(test.found_only(FindingKind::race));
  test.write(test.thread(7, 0), a + 16);  // after the release
  test.read(test.thread(8, 1), a + 16);
  CHECK(test.found_only(FindingKind::race));
  test.write(test.thread(0, 0), a + 24);  // through a third block
  test.hand_over_at(flag, test.thread(0, 0), test.thread(0, 1));
  test.hand_over_at(flag, test.thread(0, 1), test.thread(0, 2));
  test.write(test.thread(0, 2), a + 24);
  CHECK(test.found_nothing());
  test.begin();
  CHECK(test.memory.published(flag) == nullptr);  // forgotten with the launch
  test.read(test.thread(0), a);
  CHECK(test.found_nothing());
}

TEST_CASE("strong accesses race with weak ones and not with each other") {
  GlobalCase test;
  const uint64_t a = test.buffer(64, "a"), flag = test.buffer(4, "flag");
  for (size_t block = 0; block < 4; ++block) {
    for (size_t i = 0; i < 64; ++i) test.add(test.thread(i, block), a);
  }
  CHECK(test.found_nothing());
  test.read(test.thread(3, 3), a, 4, kStrong);
  CHECK(test.found_nothing());
  test.read(test.thread(3, 3), a);
  CHECK(test.found_only(FindingKind::race));
  // Two adders, of which a reader knows only the later one.
  test.add(test.thread(0, 0), a + 8);
  test.add(test.thread(0, 1), a + 8);
  test.hand_over_at(flag, test.thread(0, 1), test.thread(0, 2));
  test.read(test.thread(0, 2), a + 8);
  CHECK(test.found_only(FindingKind::race));
  CHECK_THAT(test.said, ContainsSubstring("of block (0,0,0) wrote"));
  test.hand_over_at(flag, test.thread(0, 0), test.thread(0, 2));
  test.read(test.thread(0, 2), a + 8);
  CHECK(test.found_nothing());
  test.add(test.thread(0, 3), a + 8);  // over a weak read
  CHECK(test.found_only(FindingKind::race));
  test.write(test.thread(0, 0), a + 16);
  test.add(test.thread(1, 0), a + 16);
  test.findings.clear();
  test.write(test.thread(2, 0), a + 24, 4, kStrong);
  test.write(test.thread(3, 0), a + 24);
  CHECK(test.found_only(FindingKind::race));
}

TEST_CASE("an access finds what its bytes find one by one") {
  std::mt19937 random(1);
  GlobalCase whole, bytes;
  const uint64_t in_whole = whole.buffer(3000, "a", false), flag_whole = whole.buffer(4, "flag");
  const uint64_t in_bytes = bytes.buffer(3000, "a", false), flag_bytes = bytes.buffer(4, "flag");
  int num_found = 0, num_silent = 0;
  for (uint32_t step = 1; step < 30000; ++step) {
    const size_t who = random() % 64, other = random() % 64;
    const size_t block = random() % 2, other_block = random() % 2;
    const int64_t size = int64_t{1} << random() % 5;
    const uint64_t offset = random() % 100 * static_cast<uint64_t>(size) + 1024 * (random() % 2);
    const GlobalAccess access = random() % 4 == 0 ? kStrong : kWeak;
    const size_t what = random() % 60;
    const auto is_ordered_after = [step](uint32_t id) { return (step ^ id) % 3 != 0; };
    const auto host = random() % 2 == 0 ? HostAccess::read : HostAccess::write;
    for (GlobalCase* test : {&whole, &bytes}) {
      const uint64_t a = test == &whole ? in_whole : in_bytes;
      const int64_t piece = test == &whole ? size : 1;
      if (what == 0) {
        test->end();
        const int64_t host_piece = test == &whole ? 3000 : 1;
        if (step % 2 == 0) {
          for (int64_t i = 0; i < 3000; i += host_piece) {
            test->host(a + static_cast<uint64_t>(i), host_piece, host, step, is_ordered_after);
          }
        }
        test->begin(step + 1, is_ordered_after);
      }
      Thread& thread = test->thread(who, block);
      if (what < 9) {
        const uint64_t flag = test == &whole ? flag_whole : flag_bytes;
        test->hand_over_at(flag, thread, test->thread(other, other_block));
      }
      for (int64_t i = 0; i < size; i += piece) {
        const uint64_t at = a + offset + static_cast<uint64_t>(i);
        if (what % 2 == 0) test->read(thread, at, piece, access);
        if (what % 3 == 0) test->write(thread, at, piece, access);
      }
    }
    const auto kinds = [](const GlobalCase& test) {
      std::set<FindingKind> found;
      for (const Finding& finding : test.findings.list()) found.insert(finding.kind);
      return found;
    };
    REQUIRE(kinds(whole) == kinds(bytes));
    ++(whole.findings.count() == 0 ? num_silent : num_found);
    whole.findings.clear();
    bytes.findings.clear();
  }
  const Counters counted = whole.end(), counted_bytes = bytes.end();
  CHECK(counted.unique_read_bytes == counted_bytes.unique_read_bytes);
  CHECK(counted.unique_write_bytes == counted_bytes.unique_write_bytes);
  CHECK((num_found > 1000 && num_silent > 1000));
}

TEST_CASE("operations on streams race where nothing orders them") {
  GlobalCase test;
  const uint64_t a = test.buffer(1 << 20, "a");
  const auto after = [](std::vector<uint32_t> ids) {
    return [ids](uint32_t id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); };
  };
  test.begin(5);
  for (uint64_t i = 0; i < 4096; i += 4) test.write(test.thread(0), a + i);
  test.begin(6, after({5}));
  test.read(test.thread(1), a + 40);
  CHECK(test.found_nothing());
  test.begin(7, after({}));
  test.read(test.thread(1), a + 44);
  CHECK(test.found_only(FindingKind::stream_race));
  CHECK_THAT(test.said, ContainsSubstring("reads a+0x2c, which operation 5 writes"));
  CHECK_THAT(test.said, ContainsSubstring("[kernel.cu:20] against [kernel.cu:10]"));
  test.begin(8, after({5}));
  test.write(test.thread(1), a + 40);
  CHECK(test.found_only(FindingKind::stream_race));
  CHECK_THAT(test.said, ContainsSubstring("operation 6 reads"));
  test.begin(9, after({5, 6, 7, 8}));
  test.write(test.thread(1), a + 40);
  test.write(test.thread(1), a + 44);
  CHECK(test.found_nothing());
  test.end();
  CHECK(test.host(a, 1 << 20, HostAccess::read, 10, after({5, 6, 7, 8, 9})));
  CHECK(test.found_nothing());
  CHECK(test.host(a, 1 << 20, HostAccess::read, 11, after({5, 7, 8})));
  CHECK(test.found_only(FindingKind::stream_race));
  CHECK(test.said ==
        "stream race: cudaMemcpyAsync reads a+0x28, which operation 9 writes, of another stream "
        "and not ordered before it against [kernel.cu:10]");
  CHECK(test.host(a + 512, 16, HostAccess::write, 12, after({5, 7, 8, 11})));  // not after 10
  CHECK(test.found_only(FindingKind::stream_race));
  CHECK_THAT(test.said, ContainsSubstring("writes a+0x200, which operation 10 reads"));
  test.begin(13, after({10, 11, 12}));
  test.write(test.thread(0), a + 4096 + 512, 16);
  CHECK(test.found_nothing());
  test.begin(14, after({13}));
  test.read(test.thread(0), a + 512, 16);
  CHECK(test.found_only(FindingKind::stream_race));
}

TEST_CASE("a launch is ordered after all that used what it writes") {
  GlobalCase test;
  const uint64_t a = test.buffer(64, "a"), b = test.buffer(64, "b"), c = test.buffer(64, "c");
  const auto after = [](uint32_t only) { return [only](uint32_t id) { return id == only; }; };
  const auto never = [](uint32_t) { return false; };
  test.begin(5, never);
  test.write(test.thread(0), a);
  test.read(test.thread(0), b);
  test.read(test.thread(0), c);
  test.begin(6, never);
  test.read(test.thread(0), b);
  test.write(test.thread(0), a);
  CHECK(test.found_only(FindingKind::stream_race));
  CHECK_THAT(test.said, ContainsSubstring("writes a+0x0, which operation 5 writes"));
  test.begin(7, after(6));
  test.write(test.thread(0), b);
  CHECK(test.found_only(FindingKind::stream_race));
  CHECK_THAT(test.said, ContainsSubstring("writes b+0x0, which operation 5 reads"));
  test.end();
  CHECK(test.host(c, 4, HostAccess::write, 8, after(7)));
  CHECK(test.found_only(FindingKind::stream_race));
  CHECK_THAT(test.said, ContainsSubstring("writes c+0x0, which operation 5 reads"));
}

TEST_CASE("threads of earlier launches are not this one's") {
  GlobalCase test;
  const uint64_t a = test.buffer(64, "a");
  for (int launch = 0; launch < 3; ++launch) {
    const auto first = static_cast<size_t>(10 * launch);
    test.begin();
    test.add(test.thread(first), a + 8);
    test.add(test.thread(first + 1), a + 8);
    test.read(test.thread(first), a);
    test.write(test.thread(first), a);
    test.read(test.thread(first), a + 16);
    test.write(test.thread(first), a + 8 * static_cast<uint64_t>(launch) + 24);
    test.write(test.thread(first + 2), a + 4);
    test.begin();
    test.write(test.thread(first + 3), a + 8);
    test.read(test.thread(first + 3), a + 16);
    test.write(test.thread(first + 3), a + 16);
  }
  CHECK(test.found_nothing());
}

TEST_CASE("a programmatic launch waits before it touches memory") {
  GlobalCase test;
  const uint64_t a = test.buffer(64, "a");
  test.begin(5);
  test.write(test.thread(0), a);
  test.config.is_programmatic = true;
  test.begin(6);
  test.read(test.thread(1), a);
  CHECK(test.found_only(FindingKind::programmatic_launch));
  CHECK_THAT(test.said, ContainsSubstring("reads a+0x0 before griddepcontrol.wait"));
  test.write(test.thread(1), a + 8);
  CHECK(test.found_only(FindingKind::programmatic_launch));
  test.thread(2).waited_for_grid = true;
  test.read(test.thread(2), a);
  test.write(test.thread(2), a + 16);
  CHECK(test.found_nothing());
  test.config.is_programmatic = false;
  test.begin(7);
  test.read(test.thread(1), a);
  CHECK(test.found_nothing());
}

}  // namespace
}  // namespace wide::simt
