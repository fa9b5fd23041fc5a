// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A problem's fields one by one, by one list per primitive: `fields(field, got, plan)` calls
// field(name, got.x, plan.x) for each, those that operands can show first. It serves to compare two
// problems, and to write one down.
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "host/core/check.hpp"
#include "wide/channels.hpp"
#include "wide/dtype.hpp"
#include "wide/epilogue.hpp"
#include "wide/strides.hpp"

namespace wide {

/// A field's value in messages.
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

/// Compares two problems' fields.
class SameField {
 public:
  explicit SameField(std::string_view primitive) : primitive_(primitive) {}

  /// `name` as messages have it: "stride of x".
  template <class T>
  void operator()(std::string_view name, const T& got, const T& plan) const {
    WIDE_REQUIRE(got == plan, text(primitive_) + ": the operands' " + text(name) + " is " +
                                  text(got) + ", expected the plan's = " + text(plan));
  }

  /// Whether there is an operand that a problem need not have.
  void presence(std::string_view argument, bool got, bool plan) const {
    WIDE_REQUIRE(got == plan, name_of(primitive_, argument) +
                                  (got ? " is present, expected none as in the plan's problem"
                                       : " is absent, expected one as in the plan's problem"));
  }

 private:
  std::string_view primitive_;
};

/// Throws invalid_argument with the first field that differs. A difference in a field that the list
/// lacks is refused without its name, never accepted.
template <class Problem, class Fields>
void require_same_problem(std::string_view primitive, const Problem& got, const Problem& plan,
                          const Fields& fields) {
  if (got == plan) return;
  fields(SameField(primitive), got, plan);
  throw_invalid_argument(text(primitive) + ": the operands' problem differs from the plan's");
}

/// Writes a problem's fields down.
class KeyField {
 public:
  explicit KeyField(std::string& key) : key_(key) {}

  template <class T>
  void operator()(std::string_view name, const T& value, const T&) const {
    key_ += (key_.empty() ? "" : ", ") + text(name) + "=" + text(value);
  }
  void presence(std::string_view argument, bool is_present, bool) const {
    (*this)(argument, is_present, is_present);
  }

 private:
  std::string& key_;
};

/// "dtype=fp32, batch=8, ..": different for problems that differ in a listed field.
template <class Problem, class Fields>
std::string key_of_fields(const Problem& problem, const Fields& fields) {
  std::string key;
  fields(KeyField(key), problem, problem);
  return key;
}

}  // namespace wide
