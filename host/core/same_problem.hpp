// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A problem's fields one by one, by one list per primitive: `fields(field, got, plan)` calls
// field(name, got.x, plan.x) for each, those that operands can show first. It serves to compare two
// problems, and to write one down.
#pragma once

#include <string>
#include <string_view>

#include "host/core/check.hpp"
#include "host/core/text.hpp"

namespace wide {

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
