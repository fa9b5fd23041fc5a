// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU's prefetches into L2: nothing to see of what they bring, but what they name is
// checked like a load's, and counted.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "verify/simt/tensor_map.hpp"
#include "verify/support/simt_launch.hpp"

namespace wide::test {
namespace {

using simt::FindingKind;

constexpr const char* kPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry prefetch_run(.param .u64 from, .param .u32 bytes)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [from];
  ld.param.u32 %r1, [bytes];
  cp.async.bulk.prefetch.L2.global [%rd1], %r1;
  griddepcontrol.wait;
  ret;
}
.visible .entry prefetch_box(.param .u64 map, .param .u32 column, .param .u32 row)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [map];
  ld.param.u32 %r1, [column];
  ld.param.u32 %r2, [row];
  cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];
  griddepcontrol.wait;
  ret;
}
)";

struct PrefetchCase {
  SimtDevice device{kPtx};
  uint64_t data = device.allocate<float>("data", 64 * 8);

  SimtOutcome launch(const std::string& kernel, auto... arguments) {
    SimtShape shape{{1}, {1}};
    shape.is_programmatic = true;
    return device.launch(kernel, shape, {}, arguments...);
  }
  /// Of a tensor of 8 rows of 64 floats, boxes of 2 by 32.
  SimtOutcome box(int32_t column, int32_t row, uint64_t extent = 8) {
    simt::TensorMap map{};
    map.magic = simt::TensorMap::kMagic;
    map.rank = 2, map.element_bytes = 4, map.address = data;
    map.extent[0] = 64, map.extent[1] = extent;
    map.box[0] = 32, map.box[1] = 2;
    map.element_stride[0] = map.element_stride[1] = 1;
    map.stride_bytes[0] = 256;
    const std::array<simt::TensorMap, 1> maps{map};
    return launch("prefetch_box", device.upload<simt::TensorMap>("map", maps, true), column, row);
  }
};

TEST_CASE("a prefetch reads nothing, waits for nobody, and counts its bytes") {
  PrefetchCase test;  // its data are uninitialised, and may be the kernel's before
  const SimtOutcome run = test.launch("prefetch_run", test.data + 16, uint32_t{2048 - 16});
  INFO(run.text());
  CHECK(run.is_silent());
  CHECK((run.counters.bulk_prefetch_bytes == 2032 && run.counters.bulk_load_bytes == 0));
  CHECK(run.counters.unique_read_bytes == 0);
}

TEST_CASE("a prefetch of a box counts what is inside the tensor") {
  PrefetchCase test;
  const auto [column, row, bytes] =
      GENERATE(std::array{32, 6, 256}, std::array{48, 7, 64}, std::array{0, 8, 0});
  const SimtOutcome run = test.box(column, row);
  INFO(run.text());
  CHECK(run.is_silent());
  CHECK(run.counters.bulk_prefetch_bytes == bytes);
}

TEST_CASE("a prefetch must lie in memory, at sixteens of bytes") {
  struct Wrong {
    int64_t at;
    uint32_t bytes;
    FindingKind kind;
  };
  const Wrong wrong =
      GENERATE(Wrong{0, 2064, FindingKind::out_of_bounds},
               Wrong{-16, 16, FindingKind::out_of_bounds}, Wrong{8, 16, FindingKind::misaligned},
               Wrong{0, 24, FindingKind::tma}, Wrong{0, 0, FindingKind::tma});
  PrefetchCase test;
  const SimtOutcome run =
      test.launch("prefetch_run", test.data + static_cast<uint64_t>(wrong.at), wrong.bytes);
  INFO(run.text());
  CHECK(run.fault.has_value());
  CHECK(run.reports(wrong.kind, "bulk prefetch"));
}

TEST_CASE("a prefetch of a box needs a right map and begins at sixteens of bytes") {
  PrefetchCase test;
  const SimtOutcome outside = test.box(0, 8, 9);
  CHECK(outside.reports(FindingKind::out_of_bounds, "tile prefetch"));
  const SimtOutcome crooked = test.box(2, 0);
  CHECK(crooked.reports(FindingKind::tma, "tile prefetch at coordinate 2"));
  const uint64_t no_map = test.device.upload<float>("no map", std::array<float, 32>{}, true);
  CHECK(
      test.launch("prefetch_box", no_map, 0, 0).reports(FindingKind::tma, "none that the driver"));
}

}  // namespace
}  // namespace wide::test
