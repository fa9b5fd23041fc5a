// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Values in messages and keys.
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wide/channels.hpp"
#include "wide/dtype.hpp"
#include "wide/epilogue.hpp"
#include "wide/strides.hpp"

namespace wide {

/// A number in as many digits as it needs, whatever the locale.
template <class T>
requires std::is_arithmetic_v<T> std::string text(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    std::array<char, 32> digits;  // the fewest that identify it
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return std::string(digits.data(), end);
  } else {
    return std::to_string(value);
  }
}
/// In at most so many significant digits, or with so many behind the point.
inline std::string text(double value, int digits,
                        std::chars_format format = std::chars_format::general) {
  std::array<char, 512> text;  // the largest number has 309 before the point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, digits).ptr;
  return std::string(text.data(), end);
}
inline std::string text(std::string_view value) {
  return std::string(value);
}
inline std::string text(Dtype dtype) {
  return text(dtype_name(dtype));
}
inline std::string text(Activation activation) {
  return text(activation_name(activation));
}
inline std::string text(OutputScale scale) {
  return text(output_scale_name(scale));
}
inline std::string text(Residual residual) {
  return text(residual_name(residual));
}
inline std::string text(const RowStrides& s) {
  return "{row " + text(s.row) + ", member " + text(s.member) + "}";
}
inline std::string text(const ChannelStrides& s) {
  return "{batch " + text(s.batch) + ", member " + text(s.member) + ", channel " + text(s.channel) +
         ", row " + text(s.row) + ", column " + text(s.column) + "}";
}
inline std::string text(const ConvWeightStrides& s) {
  return "{member " + text(s.member) + ", out_channel " + text(s.out_channel) + ", in_channel " +
         text(s.in_channel) + ", row " + text(s.row) + ", column " + text(s.column) + "}";
}
inline std::string text(const RecurrentStrides& s) {
  return "{batch " + text(s.batch) + ", step " + text(s.step) + ", member " + text(s.member) + "}";
}
inline std::string text(const ScoreBiasStrides& s) {
  return "{member " + text(s.member) + ", batch " + text(s.batch) + ", head " + text(s.head) +
         ", query " + text(s.query) + "}";
}
inline std::string text(ChannelLayout layout) {
  return layout == ChannelLayout::channels_first ? "channels_first" : "channels_last";
}
template <class T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "none";
}
template <class T>
std::string text(const std::vector<T>& values) {
  std::string list;
  for (const T& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return "[" + list + "]";
}

/// "1 member", "2 members"; `many` is the plural where it takes more than an s.
template <class Count>
std::string counted(Count count, std::string_view one, std::string_view many = {}) {
  const std::string number = text(count) + " ";
  if (count == 1) return number + text(one);
  return number + (many.empty() ? text(one) + "s" : text(many));
}

}  // namespace wide
