// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's tiles: random ones of every rank, element size and swizzle against a copy
// element by element, and the driver's rules for tensor maps.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <numeric>
#include <random>

#include "verify/simulator/simt_tile_case.hpp"

namespace wide::simt {
namespace {

/// Where the byte of a tile lies: its 16-byte piece is exchanged within 128 bytes, by row.
uint32_t place(uint32_t address, Swizzle swizzle) {
  const uint32_t row = address / 128, piece = address / 16 % 8;
  const uint32_t used = swizzle == Swizzle::bytes_128  ? row % 8
                        : swizzle == Swizzle::bytes_64 ? row % 4
                        : swizzle == Swizzle::bytes_32 ? row % 2
                                                       : 0;
  return row * 128 + (piece ^ used) * 16 + address % 16;
}

struct Tile {
  TensorMap map;
  std::vector<int32_t> coordinates;
  std::vector<int64_t> counts;  ///< elements of the tile, innermost first
  int64_t tensor_bytes = 0;

  int64_t elements() const {
    return std::accumulate(counts.begin(), counts.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t bytes() const { return elements() * map.element_bytes; }
  /// Offset in the tensor of the tile's n-th element, or -1 where it is outside of what is loaded,
  /// or `stored`.
  int64_t offset(int64_t n, bool stored = false) const {
    int64_t offset = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const int64_t step = i == 0 ? 1 : map.element_stride[i];
      const int64_t at = coordinates[i] + n % counts[i] * step;
      n /= counts[i];
      auto extent = static_cast<int64_t>(map.extent[i]);
      if (i == 0 && stored)  // the end is cut off at whole 16 bytes
        extent = (extent * map.element_bytes + 15) / 16 * 16 / map.element_bytes;
      if (at < 0 || at >= extent) return -1;
      offset += at * (i == 0 ? map.element_bytes : static_cast<int64_t>(map.stride_bytes[i - 1]));
    }
    return offset;
  }
};

Tile random_tile(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  Tile tile{};
  TensorMap& map = tile.map;
  map.magic = TensorMap::kMagic;
  map.rank = static_cast<uint8_t>(pick(1, 5));
  map.element_bytes = static_cast<uint8_t>(1 << pick(0, 3));
  map.swizzle = static_cast<Swizzle>(pick(0, 3));
  map.fills_nan = map.element_bytes > 1 && pick(0, 1) == 1;
  int64_t stride = 0, budget = 4096;
  for (size_t i = 0; i < map.rank; ++i) {
    map.extent[i] = static_cast<uint64_t>(pick(1, i == 0 ? 80 : 6));
    map.element_stride[i] = static_cast<uint8_t>(pick(1, 3) == 1 ? pick(1, 8) : 1);
    if (i == 0) {
      const int64_t inner =
          map.swizzle == Swizzle::none ? 16 * pick(1, 10) : 16 << static_cast<int>(map.swizzle);
      map.box[0] = static_cast<uint16_t>(std::min<int64_t>(inner / map.element_bytes, 256));
      stride = (static_cast<int64_t>(map.extent[0]) * map.element_bytes + 15) / 16 * 16;
      tile.counts.push_back(map.box[0]);
    } else {
      map.box[i] = static_cast<uint16_t>(pick(1, 5));
      map.stride_bytes[i - 1] = static_cast<uint64_t>(stride + 16 * pick(0, 2));
      stride = static_cast<int64_t>(map.stride_bytes[i - 1] * map.extent[i]);
      // The n-th, 2 n-th ... element of the box.
      int64_t count = 0;
      for (int j = 0; j < map.box[i]; j += map.element_stride[i]) ++count;
      tile.counts.push_back(count);
    }
    budget = std::max(budget, stride);
    const auto extent = static_cast<int64_t>(map.extent[i]);
    const int64_t step = i == 0 ? 16 / map.element_bytes : 1;  // boxes begin at 16 bytes
    tile.coordinates.push_back(static_cast<int32_t>(pick(-extent, extent + 1) / step * step));
  }
  tile.tensor_bytes = budget;
  return tile;
}

bool is_fill(const std::byte* element, const TensorMap& map) {
  const int bytes = map.element_bytes;
  for (int i = 0; i < bytes; ++i) {
    const int expected = map.fills_nan == 0 ? 0 : i == bytes - 1 ? 0x7f : 0xff;
    if (static_cast<int>(element[i]) != expected) return false;
  }
  return true;
}

void check_load(TileCase& test, Tile& tile, std::span<const std::byte> tensor, uint32_t parity) {
  test.set_map(tile.map);
  const int64_t before = test.launch->counters.bulk_load_bytes;
  test.expect(static_cast<uint32_t>(tile.bytes()));
  test.load(tile.coordinates);
  REQUIRE(test.wait(parity));
  test.read(kTile, tile.bytes());
  int64_t inside = 0;
  for (int64_t n = 0; n < tile.elements(); ++n) {
    const auto address = kTile + static_cast<uint32_t>(n * tile.map.element_bytes);
    const std::byte* got = test.shared().at(place(address, tile.map.swizzle));
    const int64_t from = tile.offset(n);
    inside += from >= 0;
    const bool is_right = from < 0 ? is_fill(got, tile.map)
                                   : std::memcmp(got, tensor.data() + from,
                                                 static_cast<size_t>(tile.map.element_bytes)) == 0;
    if (!is_right) {
      FAIL("element " << n << " of a tile of rank " << int{tile.map.rank} << ", swizzle "
                      << static_cast<int>(tile.map.swizzle));
    }
  }
  CHECK(test.launch->counters.bulk_load_bytes - before == inside * tile.map.element_bytes);
}

void check_store(TileCase& test, Tile& tile, std::span<std::byte> tensor, std::mt19937& random) {
  for (int64_t i = 0; i < tile.bytes(); ++i) {
    *test.shared().at(kTile + static_cast<uint32_t>(i)) = static_cast<std::byte>(random());
  }
  test.write(kTile, tile.bytes());
  test.async().fence_proxy(test.thread(0));
  std::vector<std::byte> expected(tensor.begin(), tensor.end());
  int64_t inside = 0;
  for (int64_t n = 0; n < tile.elements(); ++n) {
    const int64_t to = tile.offset(n, true);
    if (to < 0) continue;
    inside += tile.map.element_bytes;
    const auto address = kTile + static_cast<uint32_t>(n * tile.map.element_bytes);
    std::memcpy(expected.data() + to, test.shared().at(place(address, tile.map.swizzle)),
                static_cast<size_t>(tile.map.element_bytes));
  }
  const int64_t before = test.launch->counters.bulk_store_bytes;
  test.store(tile.coordinates);
  test.async().commit_stores(test.thread(0));
  test.async().wait_stores(test.thread(0), 0, false);
  CHECK(std::equal(expected.begin(), expected.end(), tensor.begin()));
  CHECK(test.launch->counters.bulk_store_bytes - before == inside);
}

TEST_CASE("tiles of every rank and swizzle move the elements inside the tensor") {
  std::mt19937 random(7);
  for (const Delivery delivery : {Delivery::lazy, Delivery::eager, Delivery::random}) {
    TileCase test(delivery);
    test.make_mbarrier();
    for (uint32_t i = 0; i < 300; ++i) {
      Tile tile = random_tile(random);
      const uint64_t buffer =
          test.memory.allocate(tile.tensor_bytes, "tensor", BufferKind::device, true);
      tile.map.address = buffer;
      REQUIRE(tensor_map_error(tile.map).empty());
      const std::span<std::byte> tensor(test.memory.data(buffer),
                                        static_cast<size_t>(tile.tensor_bytes));
      for (std::byte& byte : tensor) byte = static_cast<std::byte>(random());
      check_load(test, tile, tensor, i % 2);
      check_store(test, tile, tensor, random);
      test.memory.free(buffer);
    }
    test.async().end_of_block();
    const bool is_clean = test.found_nothing();
    INFO(test.said);
    CHECK(is_clean);
  }
}

TEST_CASE("the driver's rules for tensor maps") {
  TensorMap good{};
  good.rank = 2, good.element_bytes = 2, good.address = 0x1000;
  good.extent = {100, 50};
  good.stride_bytes = {208};
  good.box = {64, 64};
  good.element_stride = {0, 1};
  good.swizzle = Swizzle::bytes_128;
  CHECK(tensor_map_error(good).empty());
  const auto error = [&](auto change) {
    TensorMap map = good;
    change(map);
    return tensor_map_error(map);
  };
  CHECK(error([](TensorMap& m) { m.rank = 0; }) == "tensorRank is 0, expected 1 to 5");
  CHECK(error([](TensorMap& m) { m.rank = 6; }) == "tensorRank is 6, expected 1 to 5");
  CHECK(error([](TensorMap& m) { m.element_bytes = 3; }) ==
        "an element has 3 bytes, expected 1, 2, 4 or 8");
  CHECK(error([](TensorMap& m) { m.address = 0x1008; }) ==
        "globalAddress is 0x1008, expected a multiple of 16");
  CHECK(error([](TensorMap& m) { m.extent[1] = 0; }) == "globalDim[1] is 0, expected 1 to 2^32");
  CHECK(error([](TensorMap& m) { m.box[1] = 257; }) == "boxDim[1] is 257, expected 1 to 256");
  CHECK(error([](TensorMap& m) { m.box[0] = 0; }) == "boxDim[0] is 0, expected 1 to 256");
  CHECK(error([](TensorMap& m) { m.element_stride[1] = 9; }) ==
        "elementStrides[1] is 9, expected 1 to 8");
  CHECK(error([](TensorMap& m) { m.stride_bytes[0] = 200; }) ==
        "globalStrides[0] is 200 bytes, expected a multiple of 16 below 2^40");
  CHECK(error([](TensorMap& m) { m.stride_bytes[0] = uint64_t{1} << 40; }).size() > 0);
  CHECK(error([](TensorMap& m) { m.box[0] = 4; }) ==
        "boxDim[0] is 8 bytes, expected a multiple of 16");
  CHECK(error([](TensorMap& m) { m.swizzle = Swizzle::bytes_64; }) ==
        "boxDim[0] is 128 bytes, expected at most the swizzle's 64");
  CHECK(error([](TensorMap& m) { m.element_bytes = 1, m.fills_nan = 1; }) ==
        "oobFill is NaN, expected zeros for a type that is not floating-point");
}

}  // namespace
}  // namespace wide::simt
