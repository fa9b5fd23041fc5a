// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a decoder of one opcode sees: the modifiers that are still to be understood, and the
// arguments. A modifier that nobody takes is refused with its line: nothing is guessed.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/ptx/instruction.hpp"

namespace wide::ptx {

/// A PTX type. 'x2' types have bits of both halves.
struct Type {
  char kind = 'b';  ///< b, u, s, f (ieee), B (bfloat16), p
  int bits = 32;
  bool is_pair = false;  ///< f16x2, bf16x2
  bool operator==(const Type&) const = default;
};
std::optional<Type> parse_type(std::string_view word);

class Decoder {
 public:
  Decoder(Instruction& instruction, std::string_view mnemonic);

  Instruction& in;
  const std::string& opcode() const { return opcode_; }
  /// Whether the modifier is there; it is understood then.
  bool take(std::string_view modifier);
  /// The one of these that is there; empty where none is.
  std::string_view take_one(std::initializer_list<std::string_view> modifiers);
  void ignore(std::initializer_list<std::string_view> modifiers);
  /// The next modifier, whatever it is; empty at the end.
  std::string next();
  /// Types in their order; refuses where there is none left.
  Type take_type();
  std::optional<Type> take_optional_type();
  size_t num_arguments() const { return in.arguments.size(); }
  void require_arguments(size_t least, size_t most) const;
  [[noreturn]] void refuse(const std::string& why) const;
  /// Refuses what nobody took.
  void finish() const;

 private:
  std::string opcode_;
  std::vector<std::string> modifiers_;
};

using Decode = void (*)(Decoder&);
/// Null: not known.
Decode find_decoder(std::string_view opcode);

// One file for each group; every function sets execute, kind and numbers.
void decode_arithmetic(Decoder& d);  ///< add sub mul mad fma div rem min max abs neg ...
void decode_bits(Decoder& d);        ///< and or xor not shl shr lop3 prmt bfe ...
void decode_compare(Decoder& d);     ///< setp set selp slct
void decode_special(Decoder& d);     ///< rcp sqrt rsqrt ex2 lg2 sin cos tanh
void decode_move(Decoder& d);        ///< mov cvta isspacep
void decode_convert(Decoder& d);
void decode_load(Decoder& d);
void decode_store(Decoder& d);
void decode_atomic(Decoder& d);
void decode_fence(Decoder& d);
void decode_control(Decoder& d);  ///< ret exit trap, and what changes nothing
void decode_barrier(Decoder& d);
void decode_warp(Decoder& d);  ///< shfl vote match redux activemask elect
void decode_copy(Decoder& d);  ///< cp.async and bulk copies
void decode_mbarrier(Decoder& d);
void decode_matrix(Decoder& d);  ///< ldmatrix stmatrix mma
void decode_wgmma(Decoder& d);

/// Runs a branch: in.target is set by the kernel's decoder.
void execute_branch(Step& step);

}  // namespace wide::ptx
