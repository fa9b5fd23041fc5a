// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Registers whose lives do not overlap share a place. Random programs, with branches that lanes
// take differently, loops and writes under predicates, compute what they say on registers of their
// own.
#include <catch2/catch_test_macros.hpp>

#include <random>

#include "verify/ptx/module.hpp"
#include "verify/support/ptx_lanes.hpp"

namespace wide::test {

namespace {

constexpr int kRegisters = 24;
constexpr uint32_t kUnwritten = 0xffffffff;  // what a register is before, with an even seed

struct Operation {
  enum class Kind { add, exclusive_or, add_wide, branch } kind = Kind::add;
  int to = 0, a = 0, b = 0;  ///< registers
  int guard = -1;            ///< where this register's lowest bit is set
  int target = 0;            ///< of a branch: an operation
};

/// Branches go forward, to behind the last operation at most.
using Program = std::vector<Operation>;

Program random_program(std::mt19937& random, int length) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  Program program;
  for (int i = 0; i < length; ++i) {
    Operation o;
    o.kind = static_cast<Operation::Kind>(below(4));
    o.to = below(kRegisters);
    o.a = below(kRegisters);
    o.b = below(kRegisters);
    if (below(4) == 0 || o.kind == Operation::Kind::branch) o.guard = below(kRegisters);
    if (o.kind == Operation::Kind::branch) o.target = i + 1 + below(length - i);
    program.push_back(o);
  }
  return program;
}

std::string reg(int number) {
  return "%r" + std::to_string(number);
}

/// The program, three times round; w is the sum of all registers, each multiplied by its number.
std::string text_of(const Program& program) {
  std::string text = "{ .reg .b32 %r<" + std::to_string(kRegisters) + ">, %one, %round, %term;\n" +
                     ".reg .b64 %x, %y; .reg .pred %q;\n" +
                     "mov.b32 %r0, %aw; mov.b32 %r1, %bw; mov.b32 %r2, %cw; mov.b32 %round, 0;\n" +
                     "AGAIN:\n";
  for (size_t i = 0; i < program.size(); ++i) {
    const Operation& o = program[i];
    text += "L" + std::to_string(i) + ":\n";
    std::string guard;
    if (o.guard >= 0) {
      text += "and.b32 %one, " + reg(o.guard) + ", 1; setp.ne.u32 %q, %one, 0;\n";
      guard = "@%q ";
    }
    const std::string operands = reg(o.to) + ", " + reg(o.a) + ", " + reg(o.b) + ";\n";
    switch (o.kind) {
      case Operation::Kind::add:
        text += guard + "add.u32 " + operands;
        break;
      case Operation::Kind::exclusive_or:
        text += guard + "xor.b32 " + operands;
        break;
      case Operation::Kind::add_wide:  // the upper half of a square, and b
        text += "cvt.u64.u32 %x, " + reg(o.a) + "; mul.lo.u64 %y, %x, %x; shr.u64 %y, %y, 32;\n" +
                "cvt.u32.u64 %one, %y;\n" + guard + "add.u32 " + reg(o.to) + ", %one, " + reg(o.b) +
                ";\n";
        break;
      case Operation::Kind::branch:
        text += guard + "bra L" + std::to_string(o.target) + ";\n";
    }
  }
  text += "L" + std::to_string(program.size()) + ":\n" +
          "add.u32 %round, %round, 1; setp.lt.u32 %q, %round, 3;\n@%q bra AGAIN;\n";
  for (int r = 0; r < kRegisters; ++r)
    text += "mul.lo.u32 %term, " + reg(r) + ", " + std::to_string(2 * r + 1) +
            "; add.u32 %w, %w, %term;\n";
  return text + "}";
}

uint32_t value_of(const Program& program, uint32_t a, uint32_t b, uint32_t c) {
  std::vector<uint32_t> r(kRegisters, kUnwritten);
  r[0] = a;
  r[1] = b;
  r[2] = c;
  const auto at = [&](int number) -> uint32_t& { return r[static_cast<size_t>(number)]; };
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < program.size(); ++i) {
      const Operation& o = program[i];
      if (o.guard >= 0 && (at(o.guard) & 1) == 0) continue;
      const uint64_t square = uint64_t{at(o.a)} * at(o.a);
      if (o.kind == Operation::Kind::add) at(o.to) = at(o.a) + at(o.b);
      if (o.kind == Operation::Kind::exclusive_or) at(o.to) = at(o.a) ^ at(o.b);
      if (o.kind == Operation::Kind::add_wide)
        at(o.to) = static_cast<uint32_t>(square >> 32) + at(o.b);
      if (o.kind == Operation::Kind::branch) i = static_cast<size_t>(o.target) - 1;
    }
  }
  uint32_t sum = 0;
  for (int n = 0; n < kRegisters; ++n) sum += at(n) * static_cast<uint32_t>(2 * n + 1);
  return sum;
}

uint64_t code_hash(const std::string& body) {
  simt::GlobalMemory memory;
  const ptx::Module module(
      ".version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"k.cu\"\n.visible .entry k()\n{\n"
      ".reg .b32 %r<3>;\n.reg .pred %p;\n" +
          body + "\n}\n",
      memory);
  return module.kernel("k").code_hash();
}

}  // namespace

TEST_CASE("ptx: random programs compute what they say, whatever shares a register's place") {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const Program program = random_program(random, 10 + i);
    check_line<uint32_t>(text_of(program), [&](uint32_t a, uint32_t b, uint32_t c) {
      return value_of(program, a, b, c);
    });
  }
}

TEST_CASE("ptx: what one path alone has written is as it began for the others") {
  check_line<uint32_t>(
      "{ .reg .b32 %t, %u, %v; add.u32 %t, %aw, 7; add.u32 %t, %t, %bw;\n"
      "@%ap mov.b32 %u, %t; @!%ap bra OTHER; add.u32 %v, %u, 1; OTHER: xor.b32 %w, %u, %v; }",
      [](uint32_t a, uint32_t b, uint32_t) {
        const uint32_t t = a + 7 + b;
        return (a & 1) != 0 ? t ^ (t + 1) : kUnwritten ^ kUnwritten;
      });
}

TEST_CASE("ptx: a kernel's code is known by what it executes, on whatever lines of source") {
  const std::string first = "mov.u32 %r1, 1;\n", again = "AGAIN:\n",
                    add = "add.u32 %r2, %r1, %r1;\n", branch = "@%p bra AGAIN;\n", end = "ret;";
  const uint64_t hash = code_hash(first + again + add + branch + end);
  CHECK(code_hash(".loc 1 7 0\n" + first + again + add + branch + end) == hash);
  CHECK(code_hash(first + add + again + branch + end) != hash);
  CHECK(code_hash(first + again + add + "@!" + branch.substr(1) + end) != hash);
  CHECK(code_hash(first + again + "add.u32 %r2, %r1, %r2;\n" + branch + end) != hash);
  CHECK(code_hash(first + again + add + branch + "bar.sync 0;\n" + end) != hash);
}

}  // namespace wide::test
