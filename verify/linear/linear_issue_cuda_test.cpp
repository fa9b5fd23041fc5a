// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What linear's kernels have a warp issue, as the simulated GPU counts it in PTX: for one stage
// more of k, and for wgmma's tiles beside their products. Tensor cores and memory wait for a
// scheduler that computes addresses; the limits are what the kernels take, and a twentieth.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "verify/support/simulation.hpp"
#include "verify/support/traffic.hpp"

namespace wide::test {
namespace {

struct Shape {
  const char* strategy;
  int64_t batch, out;
  const char *dtype, *weights;
};

double instructions_of(Session& session, const Shape& shape, int64_t in) {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("linear");
  const std::pair<std::string, catalog::AxisValue> axes[] = {
      {"n", int64_t{1}},
      {"batch", shape.batch},
      {"in", in},
      {"out", shape.out},
      {"dtype", std::string(shape.dtype)},
      {"weights", std::string(shape.weights)}};
  const auto workload = spec.make_workload(session.context(), catalog::make_case(spec, axes), {});
  INFO(shape.strategy << ", " << in << " inputs");
  double sum = 0;
  for (const auto& launch : launches_of(session, *workload, shape.strategy)) {
    for (const auto& [name, value] : launch.values) {
      if (std::string_view(name).starts_with("instructions_")) sum += static_cast<double>(value);
    }
  }
  REQUIRE(sum > 0);
  return sum;
}

TEST_CASE("linear: what a thread issues for a stage") {
  require_simulation();
  struct Row {
    Shape shape;
    int64_t stage;  ///< of k
    double threads, limit;
  };
  const Row rows[] = {
      {{"small_m:m16n64", 16, 64, "fp16", "packed"}, 64, 128, 140},
      {{"tensor_core:m64n64", 64, 64, "bf16", "packed"}, 64, 128, 203},
      {{"tensor_core:m128n128", 128, 128, "fp16", "packed"}, 64, 256, 268},
      {{"weight_only:m16n64", 16, 64, "fp16", "int4"}, 128, 128, 372},
      {{"weight_only:m16n64", 16, 64, "bf16", "fp4_e2m1"}, 128, 128, 439},
      {{"weight_only:m16n64", 16, 64, "bf16", "int8"}, 128, 128, 522},
  };
  Session session(Context::cuda(0));
  for (const Row& row : rows) {
    INFO(row.shape.strategy << " " << row.shape.weights);
    const double more =
        instructions_of(session, row.shape, 1024) - instructions_of(session, row.shape, 512);
    const double issued = more / row.threads / (512.0 / static_cast<double>(row.stage));
    CHECK(issued <= row.limit);
    CHECK(issued >= 0.8 * row.limit);  // else the limit says nothing
  }
}

TEST_CASE("linear decoded: codes are read once, sectors written whole, and little is issued") {
  require_simulation();
  struct Row {
    const char *dtype, *weights;
    double limit;  ///< a lane's instructions for its two tiles of 64 inputs
  };
  const Row rows[] = {{"bf16", "int4", 459}, {"bf16", "int8", 581}, {"fp16", "fp6_e3m2", 807}};
  Session session(Context::cuda(0));
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("linear");
  for (const Row& row : rows) {
    const std::pair<std::string, catalog::AxisValue> axes[] = {
        {"n", int64_t{2}},
        {"batch", int64_t{2}},
        {"in", int64_t{1024}},
        {"out", int64_t{48}},
        {"rounded", "yes"},
        {"dtype", std::string(row.dtype)},
        {"weights", std::string(row.weights)}};
    const auto workload = spec.make_workload(session.context(), catalog::make_case(spec, axes), {});
    const bench::LaunchCounters decoding = launches_of(session, *workload, "decoded").front();
    INFO(row.weights << " to " << row.dtype << " by " << decoding.kernel);
    int64_t written = 0, write_sectors = 0, instructions = 0;
    for (const auto& buffer : decoding.buffers) {
      written += bench::value_of(buffer.values, "unique_write_bytes");
      write_sectors += bench::value_of(buffer.values, "write_sectors");
    }
    CHECK(written == 2 * 48 * 1024 * 2);
    CHECK(write_sectors * 32 == written);
    CHECK(worst_streamed({decoding}).ratio <= 1.04);  // a group's scales are read with either tile
    for (const auto& [name, value] : decoding.values) {
      if (name.starts_with("instructions_")) instructions += value;
      if (name.starts_with("shared_")) CHECK(value == 0);
    }
    const double issued = static_cast<double>(instructions) / (2 * 3 * 8 * 32);
    CHECK(issued <= row.limit);
    CHECK(issued >= 0.8 * row.limit);
  }
}

TEST_CASE("linear by wgmma: what a tile of one stage takes") {
  require_simulation();
  Session session(Context::cuda(0));
  if (session.context().info().compute_capability != 90) SKIP("wgmma needs compute capability 9.0");
  // By the threads of the warpgroup that multiplies and stores; two boxes with a bias.
  constexpr double kThreads = 128, kLimit = 1055;
  const double issued =
      instructions_of(session, {"wgmma:m64n128", 64, 128, "bf16", "packed"}, 64) / kThreads;
  CHECK(issued <= kLimit);
  CHECK(issued >= 0.8 * kLimit);
}

}  // namespace
}  // namespace wide::test
