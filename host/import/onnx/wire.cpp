// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Protocol Buffers' wire format, read in place.
#include "host/import/onnx/wire.hpp"

#include <cstring>

#include "host/core/check.hpp"
#include "host/core/text.hpp"

namespace wide::onnx {

void Wire::refuse(const std::string& why) const {
  throw_invalid_argument("onnx: " + where_ + ": " + why);
}

uint64_t Wire::take_varint(std::string_view& from) const {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (from.empty()) refuse("it is cut within a number");
    const auto byte = static_cast<uint8_t>(from.front());
    from.remove_prefix(1);
    if (shift == 63 && byte > 1) refuse("a number has more than 64 bits");
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  refuse("a number has more than 10 bytes");
}

std::string_view Wire::take(std::string_view& from, uint64_t bytes) const {
  if (bytes > from.size()) {
    refuse("field " + std::to_string(field_) + " has " + counted(bytes, "byte") +
           ", expected at most " + std::to_string(from.size()) + ", which are left");
  }
  const std::string_view taken = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return taken;
}

bool Wire::next() {
  if (rest_.empty()) return false;
  const uint64_t tag = take_varint(rest_);
  const uint64_t type = tag & 7;
  if (tag >> 3 == 0 || tag >> 3 >= 1 << 29)
    refuse("it has a field of number " + std::to_string(tag >> 3));
  field_ = static_cast<uint32_t>(tag >> 3);
  if (type == 3 || type == 4 || type > 5) {
    refuse("field " + std::to_string(field_) + " is of wire type " + std::to_string(type) +
           ", which ONNX has not");
  }
  type_ = static_cast<WireType>(type);
  if (type_ == WireType::varint) {
    number_ = take_varint(rest_);
  } else {
    const uint64_t bytes = type_ == WireType::bytes     ? take_varint(rest_)
                           : type_ == WireType::fixed64 ? 8
                                                        : 4;
    bytes_ = take(rest_, bytes);
  }
  return true;
}

void Wire::require(WireType type) const {
  if (type_ != type) {
    refuse("field " + std::to_string(field_) + " is of wire type " +
           std::to_string(static_cast<int>(type_)) + ", expected " +
           std::to_string(static_cast<int>(type)));
  }
}

int64_t Wire::integer() {
  require(WireType::varint);
  return static_cast<int64_t>(number_);
}

float Wire::single() {
  require(WireType::fixed32);
  float value;
  std::memcpy(&value, bytes_.data(), sizeof value);
  return value;
}

std::string_view Wire::text() {
  require(WireType::bytes);
  return bytes_;
}

void Wire::integers(std::vector<int64_t>& out, size_t most) {
  std::string_view run = bytes_;
  const auto add = [&](uint64_t value) {
    if (out.size() >= most)
      refuse("field " + std::to_string(field_) + " has more than " + std::to_string(most) +
             " values");
    out.push_back(static_cast<int64_t>(value));
  };
  if (type_ == WireType::varint) return add(number_);
  require(WireType::bytes);
  while (!run.empty()) add(take_varint(run));
}

template <class T>
void Wire::numbers(std::vector<T>& out, size_t most, WireType type) {
  if (type_ != type) require(WireType::bytes);
  const size_t count = bytes_.size() / sizeof(T);
  if (bytes_.size() % sizeof(T) != 0)
    refuse("field " + std::to_string(field_) + " ends within a number");
  if (count > most - out.size())
    refuse("field " + std::to_string(field_) + " has more than " + std::to_string(most) +
           " values");
  const size_t old = out.size();
  out.resize(old + count);
  if (count > 0) std::memcpy(out.data() + old, bytes_.data(), bytes_.size());
}

void Wire::singles(std::vector<float>& out, size_t most) {
  numbers(out, most, WireType::fixed32);
}
void Wire::doubles(std::vector<double>& out, size_t most) {
  numbers(out, most, WireType::fixed64);
}

}  // namespace wide::onnx
