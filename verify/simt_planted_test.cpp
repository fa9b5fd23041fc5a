// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Kernels with one bug each, as they happen: a barrier too few, a wrong parity, a stage given back
// too early. Most of them compute the right numbers on most days. The simulated GPU must find all
// of them, and must have nothing to say about the kernels without.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "verify/ptx/module.hpp"
#include "verify/simt/formats.hpp"
#include "verify/simt/tensor_map.hpp"

namespace wide::simt {
namespace {

/// One launch's world: memory, findings, and what became of it.
class Bench {
 public:
  GlobalMemory memory;
  Findings findings;
  std::string fault;  ///< what ended the launch; empty: nothing

  template <class T>
  uint64_t buffer(const char* name, const std::vector<T>& values) {
    const uint64_t at = memory.allocate(bytes_of(values), name, BufferKind::device, true, true);
    std::memcpy(memory.data(at), values.data(), values.size() * sizeof(T));
    return at;
  }
  uint64_t output(const char* name, int64_t bytes) {
    return memory.allocate(bytes, name, BufferKind::device);
  }
  uint64_t counter() {
    const uint64_t at = memory.allocate(4, "counter", BufferKind::device, true);
    std::memset(memory.data(at), 0, 4);
    return at;
  }

  /// Runs the kernel whose mangled name has `variant` in it, "gemm_sm80ILi3EE".
  void run(const std::string& file, const std::string& variant, const LaunchConfig& config,
           std::vector<std::byte> parameters, const Options& options) {
    std::ifstream in(std::string(WIDE_PTX_DIR) + "/" + file);
    REQUIRE(in);
    std::stringstream text;
    text << in.rdbuf();
    module_ = std::make_unique<ptx::Module>(text.str(), memory);
    for (const std::string& name : module_->kernel_names()) {
      if (name.find(variant) == std::string::npos) continue;
      Launch launch(memory, module_->kernel(name), config, std::move(parameters), options,
                    findings);
      try {
        launch.run();
      } catch (const Fault& ended) {
        fault = ended.what();
      }
      return;
    }
    FAIL("no kernel " << variant);
  }

  bool found(FindingKind kind) const {
    for (const Finding& finding : findings.list()) {
      if (finding.kind == kind) return true;
    }
    return false;
  }
  std::string said() const {
    std::string text;
    for (const Finding& finding : findings.list()) text += to_string(finding) + "\n";
    return text;
  }

 private:
  template <class T>
  static int64_t bytes_of(const std::vector<T>& values) {
    return static_cast<int64_t>(values.size() * sizeof(T));
  }
  std::unique_ptr<ptx::Module> module_;
};

std::string variant(const char* kernel, int bug) {
  return std::string(kernel) + "ILi" + std::to_string(bug) + "EE";
}

/// Small integers: sums are exact whatever the order.
std::vector<uint16_t> bfloats(int64_t count, int salt) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = to_bf16(
        static_cast<float>(static_cast<int>(i * 7 + i / 5 + static_cast<size_t>(salt)) % 9 - 4));
  return values;
}

float exact(float sum) {
  return sum;
}
float rounded(float sum) {
  return from_bf16(to_bf16(sum));
}

bool is_product(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, int m, int n, int k,
                float (*stored)(float), const std::function<float(int, int)>& got) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l)
        sum += from_bf16(a[static_cast<size_t>(i * k + l)]) *
               from_bf16(b[static_cast<size_t>(j * k + l)]);
      if (got(i, j) != stored(sum)) return false;
    }
  }
  return true;
}

/// Whether the numbers came out right; findings are in the bench.
bool run_row_mean(Bench& bench, int bug, const Options& options) {
  constexpr int kRows = 3, kColumns = 200;
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11);
  const uint64_t from = bench.buffer("x", x), to = bench.output("y", kRows * 4);
  LaunchConfig config;
  config.grid = {kRows, 1, 1};
  config.block = {128, 1, 1};
  config.id = 1;
  bench.run("planted_sm80.ptx", variant("row_mean", bug), config, ptx::pack(from, to, kColumns),
            options);
  for (int r = 0; r < kRows; ++r) {
    float sum = 0, got = 0;
    for (int c = 0; c < kColumns; ++c) sum += x[static_cast<size_t>(r * kColumns + c)];
    std::memcpy(&got, bench.memory.data(to) + r * 4, 4);
    if (!(std::fabs(got - sum / kColumns) < 1e-4f)) return false;
  }
  return true;
}

bool run_gemm_sm80(Bench& bench, int bug, const Options& options) {
  constexpr int m = 70, n = 65, k = 200;
  const auto a = bfloats(m * k, 1), b = bfloats(n * k, 2);
  const uint64_t from_a = bench.buffer("a", a), from_b = bench.buffer("b", b),
                 to = bench.output("c", m * n * 4);
  LaunchConfig config;
  config.grid = {2, 2, 1};
  config.block = {128, 1, 1};
  config.id = 1;
  bench.run("planted_sm80.ptx", variant("gemm_sm80", bug), config,
            ptx::pack(from_a, from_b, to, m, n, k), options);
  return is_product(a, b, m, n, k, exact, [&](int i, int j) {
    float value = 0;
    std::memcpy(&value, bench.memory.data(to) + (i * n + j) * 4, 4);
    return value;
  });
}

TensorMap tile_map(uint64_t address, int columns, int rows, bool is_swizzled) {
  TensorMap map;
  map.magic = TensorMap::kMagic;
  map.address = address;
  map.extent = {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)};
  map.stride_bytes = {static_cast<uint64_t>(columns) * 2};
  map.box = {64, 64};
  map.element_stride = {1, 1};
  map.rank = 2;
  map.element_bytes = 2;
  map.swizzle = is_swizzled ? Swizzle::bytes_128 : Swizzle::none;
  return map;
}

bool run_gemm_sm90(Bench& bench, int bug, const Options& options) {
  constexpr int m = 72, n = 128, k = 328;  // more steps than stages, and ragged everywhere
  const auto a = bfloats(m * k, 1), b = bfloats(n * k, 2);
  const uint64_t from_a = bench.buffer("a", a), from_b = bench.buffer("b", b),
                 to = bench.output("c", m * n * 2);
  LaunchConfig config;
  config.grid = {2, 2, 1};
  config.block = {160, 1, 1};
  config.dynamic_shared_bytes = 2 * 2 * 8192 + 8192 + 1024 + 1024;
  config.id = 1;
  bench.run("planted_sm90.ptx", variant("gemm_sm90", bug), config,
            ptx::pack(tile_map(from_a, k, m, true), tile_map(from_b, k, n, true),
                      tile_map(to, n, m, false), k),
            options);
  return is_product(a, b, m, n, k, rounded, [&](int i, int j) {
    uint16_t value = 0;
    std::memcpy(&value, bench.memory.data(to) + (i * n + j) * 2, 2);
    return from_bf16(value);
  });
}

bool run_hand_off(Bench& bench, int bug, const Options& options) {
  const uint64_t values = bench.output("values", 4), counter = bench.counter(),
                 out = bench.output("out", 4);
  LaunchConfig config;
  config.grid = {2, 1, 1};
  config.block = {32, 1, 1};
  config.id = 1;
  bench.run("planted_sm90.ptx", variant("hand_off", bug), config, ptx::pack(values, counter, out),
            options);
  float got = 0;
  std::memcpy(&got, bench.memory.data(out), 4);
  return got == 42.0f;
}

using Run = bool (*)(Bench&, int, const Options&);

struct Planted {
  Run run;
  const char* kernel;
  int bug;
  std::set<FindingKind> expected;  ///< one of these; none: only the numbers can tell
};

const std::vector<Planted>& planted() {
  using enum FindingKind;
  static const std::vector<Planted> all{
      {run_row_mean, "row_mean", 1, {out_of_bounds}},
      {run_row_mean, "row_mean", 2, {warp}},
      {run_row_mean, "row_mean", 3, {race, uninitialised_read}},
      {run_row_mean, "row_mean", 4, {barrier}},
      {run_row_mean, "row_mean", 5, {out_of_bounds, uninitialised_read}},
      {run_row_mean, "row_mean", 6, {race}},
      {run_gemm_sm80, "gemm_sm80", 7, {}},
      {run_gemm_sm80, "gemm_sm80", 8, {out_of_bounds}},
      {run_gemm_sm80, "gemm_sm80", 9, {in_flight}},
      {run_gemm_sm80, "gemm_sm80", 10, {in_flight}},
      {run_gemm_sm80, "gemm_sm80", 11, {race, in_flight}},
      {run_gemm_sm80, "gemm_sm80", 12, {race, in_flight}},
      {run_gemm_sm90, "gemm_sm90", 1, {race, in_flight}},
      {run_gemm_sm90, "gemm_sm90", 2, {deadlock}},
      {run_gemm_sm90, "gemm_sm90", 3, {race, in_flight, mbarrier}},
      {run_gemm_sm90, "gemm_sm90", 4, {deadlock}},
      {run_gemm_sm90, "gemm_sm90", 5, {race, uninitialised_read}},
      {run_gemm_sm90, "gemm_sm90", 6, {wgmma}},
      {run_gemm_sm90, "gemm_sm90", 7, {}},
      {run_gemm_sm90, "gemm_sm90", 8, {race, in_flight}},
      {run_gemm_sm90, "gemm_sm90", 9, {wgmma}},
      {run_gemm_sm90, "gemm_sm90", 10, {proxy}},
      {run_gemm_sm90, "gemm_sm90", 11, {unfinished}},
      {run_gemm_sm90, "gemm_sm90", 12, {race, in_flight}},
      {run_gemm_sm90, "gemm_sm90", 13, {proxy, mbarrier}},
      {run_gemm_sm90, "gemm_sm90", 14, {race, mbarrier}},
      {run_hand_off, "hand_off", 15, {race}},
      {run_hand_off, "hand_off", 16, {race}},
  };
  return all;
}

}  // namespace

TEST_CASE("kernels without a bug: right numbers and no findings, in every order") {
  const Options options{.seed = GENERATE(0u, 1u, 2u),
                        .delivery = GENERATE(Delivery::lazy, Delivery::eager, Delivery::random)};
  INFO("seed " << options.seed << ", delivery " << static_cast<int>(options.delivery));
  for (const Run run : {run_row_mean, run_gemm_sm80, run_gemm_sm90, run_hand_off}) {
    Bench bench;
    const bool is_right = run(bench, 0, options);
    INFO(bench.said() << bench.fault);
    CHECK(is_right);
    CHECK(bench.findings.count() == 0);
    CHECK(bench.fault.empty());
  }
}

TEST_CASE("every planted bug is found") {
  for (const Planted& one : planted()) {
    Bench bench;
    const bool is_right = one.run(bench, one.bug, {});
    INFO(one.kernel << ", bug " << one.bug << ":\n" << bench.said() << bench.fault);
    if (one.expected.empty()) {
      CHECK(bench.findings.count() == 0);
      CHECK(!is_right);
      continue;
    }
    bool is_found = false;
    for (const FindingKind kind : one.expected) is_found = is_found || bench.found(kind);
    CHECK(is_found);
  }
}

}  // namespace wide::simt
