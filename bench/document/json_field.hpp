// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reading JSON: a cursor that knows its path, so that every error names the field, its value
// and what was expected. All functions throw invalid_argument.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wide/catalog.hpp"

namespace wide::bench {

class Field {
 public:
  /// `path` begins every error message: "result: $". The value must outlive the cursor.
  Field(const nlohmann::ordered_json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  Field operator[](const char* key) const;
  bool has(const char* key) const;
  /// None if the key is missing: for fields that were added in a later minor version.
  std::optional<Field> later(const char* key) const {
    return has(key) ? std::optional((*this)[key]) : std::nullopt;
  }
  std::vector<Field> items() const;
  std::vector<std::pair<std::string, Field>> members() const;

  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }
  catalog::AxisValue axis_value() const;
  std::string text() const;
  std::string text_or_empty() const { return is_null() ? "" : text(); }
  bool boolean() const;
  int64_t integer() const;
  double real() const;
  std::optional<double> optional_real() const;
  std::optional<bool> optional_boolean() const;
  // Never below 0: integers are counts, other numbers amounts.
  int64_t count() const;
  int small_count() const;
  uint64_t seed() const;  ///< at most 2^53, which a double holds exactly
  double amount() const;
  double time_ns() const;  ///< at most 10^18, 31 years
  int64_t count_or(int64_t otherwise) const { return is_null() ? otherwise : count(); }
  double amount_or_zero() const { return is_null() ? 0 : amount(); }
  double time_ns_or_zero() const { return is_null() ? 0 : time_ns(); }
  std::optional<int64_t> optional_count() const;
  std::optional<double> optional_amount() const;
  /// None if the key is missing or null.
  std::optional<double> later_amount(const char* key) const;

  template <class Enum>
  Enum one_of(std::initializer_list<Enum> values) const {
    const std::string name = text();
    std::vector<std::string_view> names;
    for (const Enum value : values) {
      if (to_string(value) == name) return value;
      names.push_back(to_string(value));
    }
    refuse_name(names);
  }

  /// "result: $.run.id is 4, expected a string".
  [[noreturn]] void refuse(const std::string& expected) const;
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void refuse_name(const std::vector<std::string_view>& known) const;
  const nlohmann::ordered_json* value_;
  std::string path_;
};

/// The 15 of "1.15.0"; none unless it is 1, a point, a number, a point and a number.
std::optional<int> minor_version(std::string_view version);

/// Refuses a document, its root, whose "schema" has another name or major version than "1.x.y".
/// `what` begins the error message.
void require_schema(const Field& root, std::string_view what, std::string_view name);

/// Refuses deep nesting before the parser builds it: our documents nest less than half as deep, and
/// nested values are destroyed by recursion. `what` begins the error message.
void require_shallow(std::string_view what, std::string_view text);

/// Parses as the library does, but refuses deep nesting, and duplicate keys in an object, of
/// which the last would win silently: "result: $.run.id is given twice, expected once".
nlohmann::ordered_json parse_json(std::string_view what, std::string_view text);

}  // namespace wide::bench
