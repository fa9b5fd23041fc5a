// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategies prefetch their weights into L2 before they wait for the kernel before, and how
// much of them: what the first loads ask for, of blocks that may be there by then.
#include <catch2/catch_test_macros.hpp>

#include "bench/process/simulation.hpp"
#include "verify/support/session.hpp"
#include "verify/support/simulation.hpp"
#include "verify/support/traffic.hpp"
#include "wide/catalog.hpp"
#include "wide/quantize.hpp"

namespace wide::test {
namespace {

using Axes = std::vector<std::pair<std::string, catalog::AxisValue>>;

/// Of all launches of one call whose kernels' names have `kernel` in them.
int64_t prefetched_bytes(const char* op, const char* strategy, const Axes& axes,
                         int64_t misalign_elements = 0, const char* kernel = "") {
  static Session session(Context::cuda(0));
  const catalog::PrimitiveSpec& spec = catalog::find_primitive(op);
  catalog::WorkloadOptions options;
  options.misalign_elements = misalign_elements;
  const auto workload =
      spec.make_workload(session.context(), catalog::make_case(spec, axes), options);
  INFO(op << " " << strategy);
  const std::string name = strategy;
  REQUIRE(workload->unsupported_reason(name.substr(0, name.find(':'))) == "");
  int64_t bytes = 0;
  for (const bench::LaunchCounters& launch : launches_of(session, *workload, strategy)) {
    if (launch.kernel.find(kernel) == std::string::npos) continue;
    bytes += bench::value_of(launch.values, "bulk_prefetch_bytes");
  }
  return bytes;
}

Axes linear_axes(int64_t n, int64_t batch, int64_t in, int64_t out, const char* dtype = "bf16") {
  return {{"n", n}, {"batch", batch}, {"in", in}, {"out", out}, {"dtype", std::string(dtype)}};
}

TEST_CASE("wgmma prefetches its ring's first round, across tiles") {
  require_simulation();
  // 140 tiles of two stages, for 132 blocks of eight: all of the weights.
  CHECK(prefetched_bytes("linear", "wgmma:m64n128", linear_axes(140, 8, 128, 128)) ==
        140 * 128 * 128 * 2);
  // Three tiles of ten stages; blocks have one each.
  CHECK(prefetched_bytes("linear", "wgmma:m64n128", linear_axes(3, 8, 640, 128)) ==
        3 * 128 * 8 * 128);
}

TEST_CASE("linear of few rows prefetches what is loaded first of each weight row") {
  require_simulation();
  for (const char* tile : {"small_m:m16n64", "small_m:m16n16"}) {
    CHECK(prefetched_bytes("linear", tile, linear_axes(3, 16, 256, 72)) == 3 * 72 * 256 * 2);
    CHECK(prefetched_bytes("linear", tile, linear_axes(3, 16, 200, 72)) == 3 * 72 * 200 * 2);
  }
  // Six stages of 128 bytes, whose tiles are many enough for k to be whole.
  CHECK(prefetched_bytes("linear", "small_m:m16n64", linear_axes(140, 16, 512, 64)) ==
        140 * 64 * 6 * 128);
  CHECK(prefetched_bytes("linear", "tf32x3:m16n64", linear_axes(3, 16, 128, 64, "fp32")) ==
        3 * 64 * 128 * 4);
  // Rows that begin anywhere, and of many rows, which take longer than their weight.
  CHECK(prefetched_bytes("linear", "small_m:m16n64", linear_axes(3, 16, 256, 72), 1) == 0);
  CHECK(prefetched_bytes("linear", "tensor_core", linear_axes(3, 128, 256, 72)) == 0);
}

TEST_CASE("gemv prefetches a kilobyte of each weight row, of the blocks that come first") {
  require_simulation();
  CHECK(prefetched_bytes("linear", "gemv", linear_axes(3, 1, 104, 24)) == 3 * 24 * 104 * 2);
  CHECK(prefetched_bytes("linear", "gemv", linear_axes(3, 1, 100, 24)) == 0);  // begin anywhere
  CHECK(prefetched_bytes("linear", "gemv", linear_axes(3, 1, 1024, 24)) == 3 * 24 * 1024);
  // 16 outputs a block, 8 blocks for each of 132 multiprocessors.
  CHECK(prefetched_bytes("linear", "gemv", linear_axes(140, 1, 136, 256)) ==
        132 * 8 * 16 * 136 * 2);
}

TEST_CASE("linear on quantised weights prefetches the first round of each strip") {
  require_simulation();
  const auto axes = [](int64_t in, const char* group) {
    Axes all = linear_axes(3, 16, in, 40);
    all.emplace_back("weights", std::string("int4"));
    all.emplace_back("group", std::string(group));
    return all;
  };
  const QuantizedWeight weight{WeightFormat::int4, 128, 40, 256};
  CHECK(prefetched_bytes("linear", "weight_only:m16n64", axes(256, "128")) ==
        3 * quantized_bytes(weight));
  // Four stages of two tiles of 512 bytes, with scales of 32 for each or for both.
  CHECK(prefetched_bytes("linear", "weight_only:m16n64", axes(640, "128")) ==
        3 * 3 * 4 * (1024 + 32));
  CHECK(prefetched_bytes("linear", "weight_only:m16n64", axes(640, "64")) ==
        3 * 3 * 4 * (1024 + 64));
}

TEST_CASE("fused kernels prefetch what they keep in shared memory, once for each member") {
  require_simulation();
  // Biases of 128 bytes a layer; rows of 64 features and 16 bytes.
  const Axes narrow{{"n", int64_t{3}}, {"batch", int64_t{600}}, {"dtype", std::string("bf16")}};
  CHECK(prefetched_bytes("mlp", "fused", narrow) == 3 * 2 * (128 + 64 * (128 + 16)));
  CHECK(prefetched_bytes("routed_mlp", "fused", narrow) == 0);  // who has no parameter for it
  // Two layers of 256 do not fit: as many strips of 64 rows as the ring has slots.
  const Axes wide{{"n", int64_t{3}},
                  {"batch", int64_t{40}},
                  {"d", int64_t{256}},
                  {"dtype", std::string("bf16")}};
  const int64_t ring = prefetched_bytes("mlp", "fused", wide) / 3 - 2 * 512;
  constexpr int64_t kSlot = 64 * (512 + 16);
  CHECK((ring == 2 * kSlot || ring == 3 * kSlot || ring == 4 * kSlot));
  // Of several blocks of sequences a member, one.
  const Axes steps{{"n", int64_t{2}},
                   {"batch", int64_t{40}},
                   {"seq", int64_t{2}},
                   {"d", int64_t{40}},
                   {"dtype", std::string("bf16")}};
  CHECK(prefetched_bytes("recurrent", "fused", steps, 0, "recurrent_fused") == 2 * 4 * 40 * 80);
}

}  // namespace
}  // namespace wide::test
