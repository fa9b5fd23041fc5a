// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Kernels with one bug each, as they happen: a barrier too few, a wrong parity, a stage given back
// too early. Most of them compute the right numbers on most days. The simulated GPU must find all
// of them, and must have nothing to say about the kernels without.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <set>

#include "verify/simt/formats.hpp"
#include "verify/simt/tensor_map.hpp"
#include "verify/support/simt_launch.hpp"

namespace wide::test {
namespace {

using simt::FindingKind;
using simt::Options;

/// Small integers: sums are exact whatever the order.
std::vector<uint16_t> bfloats(int64_t count, int salt) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = simt::to_bf16(
        static_cast<float>(static_cast<int>(i * 7 + i / 5 + static_cast<size_t>(salt)) % 9 - 4));
  return values;
}

float exact(float sum) {
  return sum;
}
float rounded(float sum) {
  return simt::from_bf16(simt::to_bf16(sum));
}

bool is_product(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, int m, int n, int k,
                float (*stored)(float), const std::function<float(int, int)>& got) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l)
        sum += simt::from_bf16(a[static_cast<size_t>(i * k + l)]) *
               simt::from_bf16(b[static_cast<size_t>(j * k + l)]);
      if (got(i, j) != stored(sum)) return false;
    }
  }
  return true;
}

struct Ran {
  SimtOutcome outcome;
  bool is_right;  ///< the numbers
};

Ran run_row_mean(int bug, const Options& options) {
  constexpr int kRows = 3, kColumns = 200;
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11);
  SimtDevice device(kernel_ptx("planted_sm80"));
  const uint64_t from = device.input("x", x), to = device.allocate<float>("y", kRows);
  const SimtShape shape{{kRows, 1, 1}, {128, 1, 1}};
  Ran ran{device.launch(instance("row_mean", bug), shape, options, from, to, kColumns), true};
  const std::vector<float> y = device.download<float>(to, kRows);
  for (size_t r = 0; r < kRows; ++r) {
    float sum = 0;
    for (size_t c = 0; c < kColumns; ++c) sum += x[r * kColumns + c];
    ran.is_right = ran.is_right && std::fabs(y[r] - sum / kColumns) < 1e-4f;
  }
  return ran;
}

Ran run_gemm_sm80(int bug, const Options& options) {
  constexpr int m = 70, n = 65, k = 200;
  const auto a = bfloats(m * k, 1), b = bfloats(n * k, 2);
  SimtDevice device(kernel_ptx("planted_sm80"));
  const uint64_t from_a = device.input("a", a), from_b = device.input("b", b),
                 to = device.allocate<float>("c", m * n);
  const SimtShape shape{{2, 2, 1}, {128, 1, 1}};
  SimtOutcome outcome =
      device.launch(instance("gemm_sm80", bug), shape, options, from_a, from_b, to, m, n, k);
  const std::vector<float> c = device.download<float>(to, m * n);
  return {std::move(outcome), is_product(a, b, m, n, k, exact, [&](int i, int j) {
            return c[static_cast<size_t>(i * n + j)];
          })};
}

simt::TensorMap tile_map(uint64_t address, int columns, int rows, bool is_swizzled) {
  simt::TensorMap map;
  map.magic = simt::TensorMap::kMagic;
  map.address = address;
  map.extent = {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)};
  map.stride_bytes = {static_cast<uint64_t>(columns) * 2};
  map.box = {64, 64};
  map.element_stride = {1, 1};
  map.rank = 2;
  map.element_bytes = 2;
  map.swizzle = is_swizzled ? simt::Swizzle::bytes_128 : simt::Swizzle::none;
  return map;
}

Ran run_gemm_sm90(int bug, const Options& options) {
  constexpr int m = 72, n = 128, k = 328;  // more steps than stages, and ragged everywhere
  const auto a = bfloats(m * k, 1), b = bfloats(n * k, 2);
  SimtDevice device(kernel_ptx("planted_sm90"));
  const uint64_t from_a = device.input("a", a), from_b = device.input("b", b),
                 to = device.allocate<uint16_t>("c", m * n);
  const SimtShape shape{{2, 2, 1}, {160, 1, 1}, 2 * 2 * 8192 + 8192 + 1024 + 1024};
  SimtOutcome outcome =
      device.launch(instance("gemm_sm90", bug), shape, options, tile_map(from_a, k, m, true),
                    tile_map(from_b, k, n, true), tile_map(to, n, m, false), k);
  const std::vector<uint16_t> c = device.download<uint16_t>(to, m * n);
  return {std::move(outcome), is_product(a, b, m, n, k, rounded, [&](int i, int j) {
            return simt::from_bf16(c[static_cast<size_t>(i * n + j)]);
          })};
}

Ran run_hand_off(int bug, const Options& options) {
  SimtDevice device(kernel_ptx("planted_sm90"));
  const std::vector<int> zero{0};
  const uint64_t values = device.allocate<float>("values", 1),
                 counter = device.upload<int>("counter", zero, false),
                 out = device.allocate<float>("out", 1);
  const SimtShape shape{{2, 1, 1}, {32, 1, 1}};
  SimtOutcome outcome =
      device.launch(instance("hand_off", bug), shape, options, values, counter, out);
  return {std::move(outcome), device.download<float>(out, 1)[0] == 42.0f};
}

using Run = Ran (*)(int, const Options&);

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
  for (const Options& options : all_options()) {
    for (const Run run : {run_row_mean, run_gemm_sm80, run_gemm_sm90, run_hand_off}) {
      const Ran ran = run(0, options);
      INFO(to_string(options) << ": " << ran.outcome.text());
      CHECK(ran.is_right);
      CHECK(ran.outcome.is_silent());
    }
  }
}

TEST_CASE("every planted bug is found") {
  for (const Planted& one : planted()) {
    const Ran ran = one.run(one.bug, {});
    INFO(one.kernel << ", bug " << one.bug << ": " << ran.outcome.text());
    if (one.expected.empty()) {
      CHECK(ran.outcome.findings.empty());
      CHECK(!ran.is_right);
      continue;
    }
    bool is_found = false;
    for (const simt::Finding& finding : ran.outcome.findings) {
      is_found = is_found || one.expected.contains(finding.kind);
    }
    CHECK(is_found);
  }
}

}  // namespace wide::test
