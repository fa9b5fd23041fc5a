// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A decoded instruction, and what its execution sees. Decoding picks the function for the types, so
// that executing asks no more questions: a register is an array of 32 lanes, 4 bytes each for what
// has up to 32 bits and 8 for 64; constants are arrays of the same kind.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <vector>

#include "host/core/independent.hpp"
#include "verify/simt/machine.hpp"

namespace wide::ptx {

constexpr uint32_t kLanes4 = simt::kLanes * 4;  // bytes of 32 narrow lanes

struct Step;
using Execute = void (*)(Step&);

/// 32 lanes of a register or of a constant.
struct Lanes {
  uint32_t offset = 0;  ///< bytes, into the warp's registers or the kernel's constants
  bool is_constant = false;
  bool is_wide = false;  ///< 8 bytes a lane
  int32_t number = -1;   ///< of the register; -1: not one
};

struct Argument {
  enum class Kind : uint8_t { none, lanes, list, memory };
  Kind kind = Kind::none;
  std::vector<Lanes> parts;  ///< one; or those of a list; of memory: base, then coordinates
  int64_t displacement = 0;  ///< of memory
  bool is_negated = false;   ///< !%p
  Lanes second{};            ///< of a|b
  bool has_second = false;
};

/// Where a path goes behind an instruction.
enum class Flow : uint8_t { next, branch, call, back, end };

struct Instruction {
  Execute execute = nullptr;
  std::vector<Argument> arguments;
  Lanes guard{};
  bool has_guard = false, guard_is_negated = false;
  simt::InstructionClass kind = simt::InstructionClass::integer;
  Flow flow = Flow::next;
  bool has_result = false;           ///< in its first argument
  bool continues_product = false;    ///< a wgmma: its results may be in flight, of one before it
  bool writes_product = false;       ///< writes what some wgmma has as D or A, or a source of that
  bool is_copy = false;              ///< of a register
  int32_t target = -1;               ///< of a branch
  std::array<int64_t, 4> numbers{};  ///< the decoder's notes for the execution
  simt::Location at;
  std::string text;
  std::vector<int32_t> reads, writes;  ///< registers, for those that a wgmma may own
};

template <class To, class From>
To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return std::bit_cast<To>(value);
}

/// Calls f(lane) for the lanes of a mask. The full mask is the usual one: that loop is written so
/// that it is vectorised. Arrays of two registers are the same or apart.
template <class Function>
void for_lanes(simt::LaneMask mask, const Function& f) {
  if (mask == simt::kAllLanes) {
    WIDE_INDEPENDENT
    for (int lane = 0; lane < simt::kLanes; ++lane) f(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

/// One instruction of one path at work.
struct Step {
  const Instruction& in;
  simt::Warp& warp;
  simt::Path& path;
  simt::LaneMask mask;
  std::byte* registers;
  const std::byte* constants;
  bool is_over = false;  ///< the path stops here: blocked, divided or ended

  simt::Block& block() const { return *warp.block; }
  simt::Launch& launch() const { return warp.block->launch; }

  template <class T>
  const T* lanes(const Lanes& where) const {
    if (!where.is_constant) return reinterpret_cast<const T*>(registers + where.offset);
    // Constants have 32 narrow lanes, then 32 wide ones.
    return reinterpret_cast<const T*>(constants + where.offset + (sizeof(T) == 8 ? kLanes4 : 0));
  }
  template <class T>
  T* lanes(const Lanes& where) {
    return reinterpret_cast<T*>(registers + where.offset);
  }
  template <class T>
  const T* source(size_t i) const {
    return lanes<T>(in.arguments[i].parts[0]);
  }
  template <class T>
  T* result(size_t i = 0) {
    return lanes<T>(in.arguments[i].parts[0]);
  }
  /// A lane of an argument, zero-extended.
  uint64_t value(const Lanes& where, int lane) const {
    return where.is_wide ? lanes<uint64_t>(where)[lane] : lanes<uint32_t>(where)[lane];
  }
  uint64_t value(size_t i, int lane) const { return value(in.arguments[i].parts[0], lane); }
  void set(const Lanes& where, int lane, uint64_t bits64) {
    if (where.is_wide) {
      lanes<uint64_t>(where)[lane] = bits64;
    } else {
      lanes<uint32_t>(where)[lane] = static_cast<uint32_t>(bits64);
    }
  }
  /// Of an operand that all lanes have alike; a finding where they do not.
  uint64_t uniform(size_t i, const char* what) const;
  /// Lanes of a predicate argument that are true.
  simt::LaneMask predicate(size_t i) const;
  template <class Function>
  void each(const Function& f) const {
    for_lanes(mask, f);
  }
};

}  // namespace wide::ptx
