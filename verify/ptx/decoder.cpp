// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/ptx/decoder.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "verify/ptx/text.hpp"

namespace wide::ptx {

namespace {

constexpr std::array<std::pair<std::string_view, Decode>, 85> kDecoders{{
    {"add", decode_arithmetic},
    {"sub", decode_arithmetic},
    {"mul", decode_arithmetic},
    {"mad", decode_arithmetic},
    {"fma", decode_arithmetic},
    {"div", decode_arithmetic},
    {"rem", decode_arithmetic},
    {"min", decode_arithmetic},
    {"max", decode_arithmetic},
    {"abs", decode_arithmetic},
    {"neg", decode_arithmetic},
    {"copysign", decode_arithmetic},
    {"mul24", decode_arithmetic},
    {"mad24", decode_arithmetic},
    {"sad", decode_arithmetic},
    {"and", decode_bits},
    {"or", decode_bits},
    {"xor", decode_bits},
    {"not", decode_bits},
    {"cnot", decode_bits},
    {"shl", decode_bits},
    {"shr", decode_bits},
    {"shf", decode_bits},
    {"lop3", decode_bits},
    {"prmt", decode_bits},
    {"bfe", decode_bits},
    {"dp4a", decode_bits},
    {"bfi", decode_bits},
    {"bfind", decode_bits},
    {"bmsk", decode_bits},
    {"brev", decode_bits},
    {"clz", decode_bits},
    {"popc", decode_bits},
    {"setp", decode_compare},
    {"set", decode_compare},
    {"selp", decode_compare},
    {"slct", decode_compare},
    {"testp", decode_compare},
    {"rcp", decode_special},
    {"sqrt", decode_special},
    {"rsqrt", decode_special},
    {"ex2", decode_special},
    {"lg2", decode_special},
    {"sin", decode_special},
    {"cos", decode_special},
    {"tanh", decode_special},
    {"mov", decode_move},
    {"cvta", decode_move},
    {"isspacep", decode_move},
    {"mapa", decode_move},
    {"cvt", decode_convert},
    {"ld", decode_load},
    {"ldu", decode_load},
    {"st", decode_store},
    {"atom", decode_atomic},
    {"red", decode_atomic},
    {"fence", decode_fence},
    {"membar", decode_fence},
    {"ret", decode_control},
    {"exit", decode_control},
    {"trap", decode_control},
    {"brkpt", decode_control},
    {"nanosleep", decode_control},
    {"prefetch", decode_control},
    {"prefetchu", decode_control},
    {"discard", decode_control},
    {"applypriority", decode_control},
    {"createpolicy", decode_control},
    {"griddepcontrol", decode_control},
    {"setmaxnreg", decode_control},
    {"pmevent", decode_control},
    {"bar", decode_barrier},
    {"barrier", decode_barrier},
    {"shfl", decode_warp},
    {"vote", decode_warp},
    {"match", decode_warp},
    {"redux", decode_warp},
    {"activemask", decode_warp},
    {"elect", decode_warp},
    {"cp", decode_copy},
    {"mbarrier", decode_mbarrier},
    {"ldmatrix", decode_matrix},
    {"stmatrix", decode_matrix},
    {"mma", decode_matrix},
    {"wgmma", decode_wgmma},
}};

}  // namespace

Decode find_decoder(std::string_view opcode) {
  const auto found = std::find_if(kDecoders.begin(), kDecoders.end(),
                                  [&](const auto& entry) { return entry.first == opcode; });
  return found == kDecoders.end() || opcode.empty() ? nullptr : found->second;
}

std::optional<Type> parse_type(std::string_view word) {
  static constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"b8", {'b', 8}},           {"b16", {'b', 16}},         {"b32", {'b', 32}},
      {"b64", {'b', 64}},         {"u8", {'u', 8}},           {"u16", {'u', 16}},
      {"u32", {'u', 32}},         {"u64", {'u', 64}},         {"s8", {'s', 8}},
      {"s16", {'s', 16}},         {"s32", {'s', 32}},         {"s64", {'s', 64}},
      {"f16", {'f', 16}},         {"f32", {'f', 32}},         {"f64", {'f', 64}},
      {"bf16", {'B', 16}},        {"f16x2", {'f', 32, true}}, {"bf16x2", {'B', 32, true}},
      {"pred", {'p', 1}},         {"b128", {'b', 128}},       {"tf32", {'t', 32}},
      {"e4m3", {'4', 8}},         {"e5m2", {'5', 8}},         {"e4m3x2", {'4', 16, true}},
      {"e5m2x2", {'5', 16, true}}};
  for (const auto& [name, type] : kTypes) {
    if (name == word) return type;
  }
  return std::nullopt;
}

Decoder::Decoder(Instruction& instruction, std::string_view mnemonic) : in(instruction) {
  modifiers_ = split(mnemonic, '.');
  opcode_ = modifiers_.front();
  modifiers_.erase(modifiers_.begin());
}

bool Decoder::take(std::string_view modifier) {
  const auto found = std::find(modifiers_.begin(), modifiers_.end(), modifier);
  if (found == modifiers_.end()) return false;
  modifiers_.erase(found);
  return true;
}

std::string_view Decoder::take_one(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers) {
    if (take(modifier)) return modifier;
  }
  return {};
}

void Decoder::ignore(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers) take(modifier);
}

std::string Decoder::next() {
  if (modifiers_.empty()) return "";
  std::string first = std::move(modifiers_.front());
  modifiers_.erase(modifiers_.begin());
  return first;
}

std::optional<Type> Decoder::take_optional_type() {
  for (auto it = modifiers_.begin(); it != modifiers_.end(); ++it) {
    if (const auto type = parse_type(*it)) {
      modifiers_.erase(it);
      return type;
    }
  }
  return std::nullopt;
}

Type Decoder::take_type() {
  const auto type = take_optional_type();
  if (!type) refuse("a type is missing");
  return *type;
}

void Decoder::require_arguments(size_t least, size_t most) const {
  if (num_arguments() < least || num_arguments() > most)
    refuse(std::to_string(num_arguments()) + " arguments");
}

void Decoder::refuse(const std::string& why) const {
  throw simt::Unsupported("ptx: " + in.text + " " + to_string(in.at) + ": " + why);
}

void Decoder::finish() const {
  if (!modifiers_.empty()) refuse("modifier ." + modifiers_.front() + " is not known here");
  if (in.execute == nullptr) refuse("not known with these types");
}

}  // namespace wide::ptx
