// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A warpgroup for tests: registers of four warps, and products issued from them.
#pragma once

#include <random>
#include <vector>

#include "verify/simulator/simt_case.hpp"
#include "verify/simulator/simt_values.hpp"

namespace wide::simt {

using Lanes = std::array<uint32_t, kLanes>;
constexpr int kWarps = 4, kM = 64;

struct GroupCase : SimtCase {
  explicit GroupCase(Delivery delivery = Delivery::lazy, int threads = 128) : SimtCase(threads) {
    config.dynamic_shared_bytes = 200 << 10;
    options.delivery = delivery;
    begin();
  }
  Block& block() { return *blocks[0]; }
  Async& async() { return *block().async; }
  Warp& warp(int index) { return block().warps[static_cast<size_t>(index)]; }
  void barrier() {
    for (Warp& each : block().warps) {
      reach_barrier(each, each.paths[0], kAllLanes, {.at = line(90)});
    }
  }
  /// Thread 0 writes a range of shared memory for all, and for the asynchronous proxy.
  void write(uint32_t address, int64_t bytes, int at = 1) {
    block().shared->write(thread(0), address, bytes, SharedAccess::generic, line(at));
  }
  void publish() {
    async().fence_proxy(thread(0));
    barrier();
  }
};

struct Fragment {
  explicit Fragment(size_t count) : registers(kWarps, std::vector<Lanes>(count)) {}
  std::vector<uint32_t*> of(int warp) {
    std::vector<uint32_t*> all;
    for (Lanes& lanes : registers[static_cast<size_t>(warp)]) all.push_back(lanes.data());
    return all;
  }
  uint32_t& word(int thread, int index) {
    return registers[static_cast<size_t>(thread / 32)][static_cast<size_t>(index)]
                    [static_cast<size_t>(thread % 32)];
  }
  uint32_t element(int thread, int i, int bits) {
    const int each = 32 / bits;
    const uint32_t value = word(thread, i / each) >> (i % each * bits);
    return bits == 32 ? value : value & ((1u << bits) - 1);
  }
  std::vector<std::vector<Lanes>> registers;  ///< by warp
};

struct Product {
  Product(const WgmmaShape& s, std::mt19937& random)
      : shape(s), d(static_cast<size_t>(s.n / (s.d_is_half ? 4 : 2))), a(4) {
    for (auto& warp : d.registers) {
      for (Lanes& lanes : warp) fill_small(accumulator(), lanes, random);
    }
    for (auto& warp : a.registers) {
      for (Lanes& lanes : warp) fill_small(shape.type_a, lanes, random);
    }
  }
  MatrixType accumulator() const { return shape.d_is_half ? MatrixType::f16 : MatrixType::tf32; }
  int accumulator_bits() const { return shape.d_is_half ? 16 : 32; }
  double d_value(int thread, int i) {
    return value_of(accumulator(), d.element(thread, i, accumulator_bits()));
  }
  void issue(GroupCase& test, int warp, uint64_t of_a, uint64_t of_b, bool scale_d, int at = 10) {
    const auto registers = d.of(warp);
    const auto mutable_a = a.of(warp);
    const std::vector<const uint32_t*> a_registers(mutable_a.begin(), mutable_a.end());
    WgmmaOperands operands{registers, {}, of_a, of_b, scale_d};
    if (shape.a_in_registers) operands.a = a_registers;
    test.async().wgmma(test.warp(warp), shape, operands, line(at));
  }

  WgmmaShape shape;
  Fragment d, a;
};

}  // namespace wide::simt
