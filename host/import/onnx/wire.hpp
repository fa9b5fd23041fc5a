// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Protocol Buffers' wire format, read in place: a message is a run of fields, each a number, a
// type and a value. Nothing is copied and nothing recurses, so that a file costs no more memory
// than what its reader keeps of it. Format: https://protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wide::onnx {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// The fields of one message. `where` names it in messages and must outlive this object.
class Wire {
 public:
  Wire(std::string_view message, const std::string& where) : rest_(message), where_(where) {}

  /// Goes to the next field; false at the end. A field that is not read is skipped. Throws
  /// invalid_argument for what is no field.
  bool next();
  uint32_t field() const { return field_; }

  /// The field's value. Throws invalid_argument where it is of another type.
  int64_t integer();
  float single();
  std::string_view text();
  /// Appends one value or a run of them. Throws for more than `most` in all.
  void integers(std::vector<int64_t>& out, size_t most);
  void singles(std::vector<float>& out, size_t most);
  void doubles(std::vector<double>& out, size_t most);

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  uint64_t take_varint(std::string_view& from) const;
  std::string_view take(std::string_view& from, uint64_t bytes) const;
  void require(WireType type) const;
  template <class T>
  void numbers(std::vector<T>& out, size_t most, WireType type);

  std::string_view rest_;
  const std::string& where_;
  uint32_t field_ = 0;
  WireType type_ = WireType::varint;
  uint64_t number_ = 0;     ///< of a varint
  std::string_view bytes_;  ///< of any other type
};

}  // namespace wide::onnx
