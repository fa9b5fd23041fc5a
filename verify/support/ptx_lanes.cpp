// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/ptx_lanes.hpp"

#include <limits>
#include <random>

#include "verify/support/simt_launch.hpp"

namespace wide::test {

namespace {

constexpr uint32_t kThreads = 256;

/// Loads an operand into its registers of all types; `name` is its letter.
std::string load(char name, int offset) {
  const std::string r = std::string("%") + name;
  return "ld.global.b64 " + r + "l, [%at+" + std::to_string(offset) + "];\n" + "mov.b64 {" + r +
         "w, %unused}, " + r + "l;\n" + "mov.b32 {" + r + "h, %unused_h}, " + r + "w;\n" +
         "mov.b32 " + r + "f, " + r + "w;\n" + "mov.b64 " + r + "d, " + r + "l;\n" +
         "and.b32 %unused, " + r + "w, 1;\n" + "setp.ne.u32 " + r + "p, %unused, 0;\n";
}

std::string registers(const std::string& name) {
  return ".reg .b16 %" + name + "h; .reg .b32 %" + name + "w; .reg .b64 %" + name +
         "l; .reg .f32 %" + name + "f; .reg .f64 %" + name + "d; .reg .pred %" + name + "p;\n";
}

/// The results are zero but for the one that the line writes: the sum of all is that one.
std::string kernel_of(const std::string& line) {
  return std::string(
             ".version 8.7\n.target sm_90a\n.address_size 64\n"
             ".visible .entry line(.param .u64 in, .param .u64 out)\n{\n") +
         registers("a") + registers("b") + registers("c") + registers("") +
         ".reg .b32 %unused, %i, %block, %size; .reg .b16 %unused_h;\n"
         ".reg .b64 %at, %to, %place, %sum;\n"
         "mov.u32 %i, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %size, %ntid.x;\n"
         "mad.lo.u32 %i, %block, %size, %i;\n"
         "ld.param.u64 %at, [in]; ld.param.u64 %to, [out];\n"
         "mul.wide.u32 %place, %i, 24; add.u64 %at, %at, %place;\n"
         "mul.wide.u32 %place, %i, 8; add.u64 %to, %to, %place;\n" +
         load('a', 0) + load('b', 8) + load('c', 16) +
         "mov.b16 %h, 0; mov.b32 %w, 0; mov.b64 %l, 0; mov.f32 %f, 0f00000000;\n"
         "mov.f64 %d, 0d0000000000000000; setp.ne.u32 %p, %w, 0;\n" +
         line + "\n" +
         "selp.b64 %sum, 1, 0, %p;\n"
         "add.u64 %sum, %sum, %l;\n"
         "mov.b64 %place, %d; add.u64 %sum, %sum, %place;\n"
         "cvt.u64.u16 %place, %h; add.u64 %sum, %sum, %place;\n"
         "cvt.u64.u32 %place, %w; add.u64 %sum, %sum, %place;\n"
         "mov.b32 %unused, %f; cvt.u64.u32 %place, %unused; add.u64 %sum, %sum, %place;\n"
         "st.global.b64 [%to], %sum;\nret;\n}\n";
}

/// All pairs of `special` (c goes round), then random bits.
std::vector<Operands> pairs(const std::vector<uint64_t>& special, uint64_t mask) {
  std::vector<Operands> all;
  for (size_t i = 0; i < special.size(); ++i) {
    for (size_t j = 0; j < special.size(); ++j) {
      all.push_back({special[i], special[j], special[(i + 3 * j + 1) % special.size()]});
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) all.push_back({random() & mask, random() & mask, random() & mask});
  while (all.size() % kThreads != 0) all.push_back(all.back());
  return all;
}

template <class T>
std::vector<Operands> floating_operands() {
  using L = std::numeric_limits<T>;
  std::vector<uint64_t> special;
  for (const T value : {T{0}, T{1}, T{1.5}, T(0.1), T{2}, T(3.14159265358979), T{100}, T(1e-3),
                        T{8388609}, L::min(), L::denorm_min(), L::min() * T(0.7), L::max(),
                        L::epsilon(), T{1} + L::epsilon(), L::infinity()}) {
    special.push_back(to_bits(value));
    special.push_back(to_bits(-value));
  }
  special.push_back(to_bits(L::quiet_NaN()));
  return pairs(special, sizeof(T) == 4 ? 0xffffffff : ~uint64_t{0});
}

}  // namespace

std::vector<uint64_t> execute(const std::string& line, const std::vector<Operands>& operands) {
  SimtDevice device(kernel_of(line));
  const auto count = static_cast<int64_t>(operands.size());
  const uint64_t in = device.input("in", operands), out = device.allocate<uint64_t>("out", count);
  const SimtShape shape{{static_cast<uint32_t>(count) / kThreads, 1, 1}, {kThreads, 1, 1}};
  const SimtOutcome outcome = device.launch("line", shape, {}, in, out);
  if (!outcome.refused.empty()) throw simt::Unsupported(outcome.refused);
  INFO(outcome.text());
  REQUIRE(outcome.is_silent());
  return device.download<uint64_t>(out, count);
}

std::vector<Operands> integer_operands() {
  return pairs({0,
                1,
                2,
                3,
                5,
                7,
                8,
                15,
                16,
                31,
                32,
                33,
                63,
                64,
                65,
                100,
                255,
                256,
                0x7fff,
                0x8000,
                0xffff,
                0x7fffffff,
                0x80000000,
                0xffffffff,
                0xfffffffe,
                0x123456789abcdef0,
                0x7fffffffffffffff,
                0x8000000000000000,
                0xffffffffffffffff},
               ~uint64_t{0});
}
std::vector<Operands> float_operands() {
  return floating_operands<float>();
}
std::vector<Operands> double_operands() {
  return floating_operands<double>();
}

}  // namespace wide::test
