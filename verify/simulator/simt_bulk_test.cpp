// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's bulk copies: mbarriers that loads land on, groups of stores, and whom the
// bytes belong to in between. Each check must report what is wrong and stay silent about what is
// right, whenever things land.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>

#include "verify/simulator/simt_tile_case.hpp"

namespace wide::simt {
namespace {

/// A row of 256 bytes in four boxes of 64.
struct RowCase : TileCase {
  explicit RowCase(Delivery delivery = Delivery::lazy)
      : TileCase(delivery, 4096), row(memory.allocate(256, "row", BufferKind::device, true)) {
    map.magic = TensorMap::kMagic;
    map.rank = 1, map.element_bytes = 4, map.address = row;
    map.extent[0] = 64, map.box[0] = 16;
    set_map(map);
  }
  void load_box(int32_t number, uint32_t to = kTile, int at = 3) {
    const std::array<int32_t, 1> coordinates{number * 16};
    load(coordinates, to, at);
  }
  void store_box(int32_t number, uint32_t from = kTile, int at = 4) {
    const std::array<int32_t, 1> coordinates{number * 16};
    store(coordinates, from, at);
  }
  uint64_t row;
  TensorMap map{};
};

TEST_CASE("a tile is known to who waited for its phase") {
  for (const Delivery delivery : {Delivery::lazy, Delivery::eager, Delivery::random}) {
    RowCase test(delivery);
    test.make_mbarrier();
    test.expect(64);
    test.load_box(1);
    test.read(kTile, 4);
    CHECK(test.found_only(FindingKind::race));
    REQUIRE(test.wait(0));
    test.read(kTile, 64, 31);
    CHECK(test.found_nothing());
    test.read(kTile, 4, 32);  // the other warp has not
    CHECK(test.found_only(FindingKind::race));
    test.barrier();
    test.read(kTile + 4, 4, 32);
    CHECK(test.found_nothing());
  }
}

TEST_CASE("what CUTLASS clears in the maps of small tensors is nothing of ours") {
  TensorMap map{};  // bit 21 of the second word, which of a driver's own maps is a hint
  map.address = ~uint64_t{0};
  map.extent.fill(~uint64_t{0});
  TensorMap cleared = map;
  const uint64_t word = 0;
  std::memcpy(reinterpret_cast<std::byte*>(&cleared) + 8, &word, sizeof word);
  CHECK(cleared.magic == map.magic);
  CHECK(cleared.address == map.address);
  CHECK(cleared.extent == map.extent);
}

TEST_CASE("an mbarrier's successor does not inherit who waited for it") {
  RowCase test;
  for (int i = 0; i < 2; ++i) {
    test.make_mbarrier();
    test.expect(64);
    test.load_box(0);
    if (i == 1) break;
    REQUIRE(test.wait(0));
    test.async().invalidate(test.thread(0), kMbarrier, line(8));
  }
  CHECK(test.found_nothing());
  test.read(kTile, 4);
  CHECK(test.found_only(FindingKind::race));
}

TEST_CASE("a tile lands late, at once, or in between") {
  RowCase lazy, eager(Delivery::eager);
  for (RowCase* test : {&lazy, &eager}) {
    test->make_mbarrier();
    test->expect(64);
    test->load_box(0);
  }
  CHECK(*lazy.shared().at(kTile) == std::byte{0xff});
  CHECK(*eager.shared().at(kTile) == std::byte{0});
  Warp& warp = lazy.blocks[0]->warps[0];
  CHECK_FALSE(lazy.async().test_wait(warp, kAllLanes, kMbarrier, 0, line(5)));
  CHECK(lazy.async().progress());
  CHECK(lazy.async().test_wait(warp, kAllLanes, kMbarrier, 0, line(5)));
  CHECK_FALSE(lazy.async().progress());
  CHECK(eager.async().test_wait(eager.blocks[0]->warps[0], 1, kMbarrier, 0, line(5)));
  int at_once = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RowCase random(Delivery::random);
    random.options.seed = seed;
    random.begin();
    random.make_mbarrier();
    random.load_box(0);
    at_once += *random.shared().at(kTile) == std::byte{0};
  }
  CHECK((at_once > 5 && at_once < 35));
}

TEST_CASE("an overwritten destination, source or mbarrier of a load is found") {
  RowCase test;
  SECTION("readers are not done with the destination") {
    test.make_mbarrier();
    test.write(kTile, 64);
    test.async().fence_proxy(test.thread(0));
    test.barrier();
    test.read(kTile, 64, 40);
    test.expect(64);
    test.load_box(0);
    CHECK(test.found_only(FindingKind::race));
  }
  SECTION("the destination was written, and not fenced") {
    test.make_mbarrier();
    test.write(kTile, 64);
    test.barrier();
    test.expect(64);
    test.load_box(0);
    CHECK(test.found_only(FindingKind::proxy));
  }
  SECTION("the mbarrier's init was not fenced for the asynchronous proxy") {
    test.async().init(test.thread(0), kMbarrier, 1, line(1));
    test.barrier();
    test.expect(64);
    test.load_box(0);
    CHECK(test.found_only(FindingKind::proxy));
  }
  SECTION("it was fenced, but nobody knows that") {
    test.async().init(test.thread(9), kMbarrier, 1, line(1));
    test.barrier();
    test.async().fence_mbarrier_init(test.thread(9));
    test.expect(64);
    test.load_box(0);
    CHECK(test.found_only(FindingKind::proxy));
  }
  SECTION("a proxy fence of the initialising thread does as well") {
    test.async().init(test.thread(0), kMbarrier, 1, line(1));
    test.async().fence_proxy(test.thread(0));
    test.expect(64);
    test.load_box(0);
    CHECK(test.found_nothing());
  }
  SECTION("the issuing thread fenced instead") {
    test.async().init(test.thread(9), kMbarrier, 1, line(1));
    test.barrier();
    test.async().fence_proxy(test.thread(0));
    test.expect(64);
    test.load_box(0);
    CHECK(test.found_nothing());
  }
  SECTION("the source was never written") {
    const uint64_t other = test.memory.allocate(256, "other", BufferKind::device);
    test.map.address = other;
    test.set_map(test.map);
    test.make_mbarrier();
    test.load_box(0);
    CHECK(test.found_only(FindingKind::uninitialised_read));
  }
}

TEST_CASE("loads that nobody waits for, and bytes that nobody counted") {
  RowCase test;
  test.make_mbarrier();
  SECTION("in flight at the end") {
    test.expect(64);
    test.load_box(0);
    test.async().end_of_block();
    CHECK(test.found_only(FindingKind::unfinished));
  }
  SECTION("too few bytes expected") {
    test.expect(64);
    test.load_box(0);
    test.load_box(1, kTile + 128);
    REQUIRE(test.wait(0));
    CHECK(test.found_nothing());
    test.async().progress();
    CHECK(test.found_only(FindingKind::mbarrier));
    test.read(kTile + 128, 4);
    CHECK(test.found_only(FindingKind::race));  // of the next phase
    test.async().end_of_block();
    CHECK(test.found_only(FindingKind::mbarrier));
    CHECK(test.said.find("64 bytes more") != std::string::npos);
  }
  SECTION("too many bytes expected") {
    test.expect(128);
    test.load_box(0);
    CHECK_FALSE(test.wait(0));
    test.async().end_of_block();
    CHECK(test.found_only(FindingKind::mbarrier));
  }
}

TEST_CASE("what the hardware would not do is refused") {
  RowCase test;
  test.make_mbarrier();
  SECTION("a destination off 128 bytes") {
    CHECK_THROWS_AS(test.load_box(0, kTile + 64), Fault);
    CHECK(test.found_only(FindingKind::misaligned));
  }
  SECTION("a destination past the end") {
    CHECK_THROWS_AS(test.load_box(0, kSharedBase + 5120), Fault);
    CHECK(test.found_only(FindingKind::out_of_bounds));
  }
  SECTION("coordinates of another rank") {
    const std::array<int32_t, 2> two{0, 0};
    CHECK_THROWS_AS(test.load(two), Fault);
    CHECK(test.found_only(FindingKind::tma));
  }
  SECTION("a box that begins within 16 bytes") {
    for (const int32_t coordinate : {2, -1, 63}) {
      CHECK_THROWS_AS(test.load(std::array{coordinate}), Fault);
      CHECK(test.found_only(FindingKind::tma));
    }
  }
  SECTION("no tensor map") {
    test.map.magic = 0;
    test.set_map(test.map);
    CHECK_THROWS_AS(test.load_box(0), Fault);
    CHECK(test.found_only(FindingKind::tma));
  }
  SECTION("a tensor map that the driver would not make") {
    test.map.box[0] = 2;
    test.set_map(test.map);
    CHECK_THROWS_AS(test.load_box(0), Fault);
    CHECK(test.found_only(FindingKind::tma));
  }
  SECTION("a tensor map past its buffer") {
    test.map.extent[0] = 65;
    test.set_map(test.map);
    CHECK_THROWS_AS(test.load_box(4), Fault);
    CHECK(test.found_only(FindingKind::out_of_bounds));
  }
  SECTION("a swizzle that is not filled") {
    test.map.swizzle = Swizzle::bytes_128;
    test.set_map(test.map);
    CHECK_THROWS_AS(test.load_box(0), Unsupported);
  }
  SECTION("half a piece") {
    CHECK_THROWS_AS(test.async().load_bulk(test.thread(0), kTile, test.row, 24, kMbarrier, line(3)),
                    Fault);
    CHECK(test.found_only(FindingKind::tma));
  }
}

TEST_CASE("a tensor map may be a parameter") {
  RowCase test;
  test.parameters.resize(352);
  test.begin();
  const auto parameters = reinterpret_cast<uint64_t>(test.launch->parameters.data());
  for (const uint64_t offset : {64, 224}) {
    std::memcpy(reinterpret_cast<void*>(parameters + offset), &test.map, sizeof test.map);
  }
  test.make_mbarrier();
  const std::array<int32_t, 1> coordinates{0};
  const auto load = [&](uint64_t map) {
    test.async().load_tile(test.thread(0), kTile, map, coordinates, kMbarrier, line(3));
  };
  load(parameters + 64);
  CHECK(test.found_nothing());
  CHECK_THROWS_AS(load(parameters + 224), Fault);  // not at a multiple of 64
  CHECK(test.found_only(FindingKind::tma));
  CHECK_THROWS_AS(load(parameters + 256), Fault);  // ends after the parameters
}

TEST_CASE("stores read their source when they land, and guard it until then") {
  for (const Delivery delivery : {Delivery::lazy, Delivery::eager}) {
    RowCase test(delivery);
    const auto value = [&] { return *test.memory.data(test.row); };
    const auto put = [&](int byte) {
      test.write(kTile, 64);
      std::memset(test.shared().at(kTile), byte, 64);
    };
    put(1);
    test.store_box(0);
    CHECK(test.found_only(FindingKind::proxy));
    test.async().commit_stores(test.thread(0));
    test.async().wait_stores(test.thread(0), 0, false);
    CHECK(value() == std::byte{1});

    put(2);
    test.async().fence_proxy(test.thread(0));
    test.store_box(0);
    test.async().commit_stores(test.thread(0));
    test.async().wait_stores(test.thread(0), 1, true);  // for none
    CHECK(test.found_nothing());
    put(3);
    CHECK(test.found_only(FindingKind::in_flight));
    test.async().wait_stores(test.thread(0), 0, true);
    put(4);
    CHECK(test.found_nothing());
    test.async().wait_stores(test.thread(0), 0, false);
    CHECK(value() == (delivery == Delivery::lazy ? std::byte{3} : std::byte{2}));
    test.write(kTile, 4, 50);  // of another warp
    CHECK(test.count(FindingKind::race) > 0);
  }
}

TEST_CASE("results of stores are there after the wait for them") {
  RowCase test;
  test.write(kTile, 256);
  test.async().fence_proxy(test.thread(0));
  test.async().store_bulk(test.thread(0), test.row, kTile, 256, line(4));
  test.async().commit_stores(test.thread(0));
  test.async().wait_stores(test.thread(0), 0, true);
  SECTION("not before") {
    test.barrier();
    test.memory.read(test.thread(40), test.row, 4, GlobalAccess::weak, line(8));
    test.async().wait_stores(test.thread(0), 0, false);
    CHECK(test.found_only(FindingKind::race));
  }
  SECTION("after the wait and a barrier") {
    test.async().wait_stores(test.thread(0), 0, false);
    test.barrier();
    test.memory.read(test.thread(40), test.row, 4, GlobalAccess::weak, line(8));
    CHECK(test.found_nothing());
  }
  SECTION("at the end of the block") {
    test.async().end_of_block();
    CHECK(test.found_nothing());
    CHECK(*test.memory.data(test.row) == std::byte{0xff});
    CHECK(test.launch->counters.bulk_store_bytes == 256);
  }
}

TEST_CASE("stores cut rows off at whole 16 bytes, loads at elements") {
  RowCase test;
  test.map.extent[0] = 57;
  test.set_map(test.map);
  std::memset(test.memory.data(test.row), 1, 256);
  test.write(kTile, 64);  // 0xff
  test.async().fence_proxy(test.thread(0));
  test.store_box(3);
  test.async().commit_stores(test.thread(0));
  test.async().end_of_block();
  const std::byte* row = test.memory.data(test.row);
  CHECK((row[48 * 4] == std::byte{0xff} && row[60 * 4 - 1] == std::byte{0xff}));
  CHECK(row[60 * 4] == std::byte{1});
}

TEST_CASE("stores whose source is never waited for are unfinished") {
  RowCase test;
  test.write(kTile, 256);
  test.async().fence_proxy(test.thread(0));
  test.store_box(0);
  const bool is_committed = GENERATE(false, true);
  if (is_committed) test.async().commit_stores(test.thread(0));
  test.async().end_of_block();
  CHECK(test.found_only(FindingKind::unfinished));
  CHECK(test.said.find(is_committed ? "never waited for" : "never committed") != std::string::npos);
}

TEST_CASE("bulk copies count their bytes and sectors") {
  RowCase test;
  test.make_mbarrier();
  test.expect(256);
  test.async().load_bulk(test.thread(0), kTile, test.row, 256, kMbarrier, line(3));
  REQUIRE(test.wait(0));
  test.read(kTile, 256);
  test.async().store_bulk(test.thread(0), test.row, kTile, 128, line(4));
  test.async().commit_stores(test.thread(0));
  test.async().wait_stores(test.thread(0), 0, false);
  CHECK(test.found_nothing());
  const Counters counters = test.end();
  CHECK((counters.bulk_load_bytes == 256 && counters.bulk_store_bytes == 128));
  const auto traffic =
      std::find_if(counters.buffers.begin(), counters.buffers.end(),
                   [](const BufferTraffic& buffer) { return buffer.name == "row"; });
  REQUIRE(traffic != counters.buffers.end());
  CHECK((traffic->read_sectors == 8 && traffic->write_sectors == 4));
}

}  // namespace
}  // namespace wide::simt
