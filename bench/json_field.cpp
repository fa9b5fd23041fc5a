// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/json_field.hpp"

#include <fmt/format.h>

#include <limits>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;

}  // namespace

Field Field::operator[](const char* key) const {
  if (!value_->is_object()) refuse("an object");
  const auto found = value_->find(key);
  if (found == value_->end())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}.{} is missing", path_, key));
  return Field(*found, path_ + "." + key);
}

bool Field::has(const char* key) const {
  return value_->is_object() && value_->contains(key);
}

std::vector<Field> Field::items() const {
  if (!value_->is_array()) refuse("an array");
  std::vector<Field> fields;
  for (size_t i = 0; i < value_->size(); ++i)
    fields.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  return fields;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  if (!value_->is_object()) refuse("an object");
  std::vector<std::pair<std::string, Field>> fields;
  for (const auto& [key, value] : value_->items())
    fields.emplace_back(key, Field(value, path_ + "." + key));
  return fields;
}

catalog::AxisValue Field::axis_value() const {
  if (value_->is_string()) return text();
  if (!value_->is_number_integer()) refuse("an integer or a word");
  return integer();
}

std::string Field::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

bool Field::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

int64_t Field::integer() const {
  if (!value_->is_number_integer()) refuse("an integer");
  if (value_->is_number_unsigned() &&
      value_->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    refuse("an integer of 64 bits with sign");
  }
  return value_->get<int64_t>();
}

int Field::small_integer() const {
  const int64_t value = integer();
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    refuse("an integer of 32 bits");
  return static_cast<int>(value);
}

uint64_t Field::seed() const {
  if (integer() < 0) refuse("an integer, 0 or above");
  return static_cast<uint64_t>(integer());
}

double Field::real() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

std::optional<double> Field::optional_real() const {
  return is_null() ? std::nullopt : std::optional(real());
}

std::optional<int64_t> Field::optional_integer() const {
  return is_null() ? std::nullopt : std::optional(integer());
}

std::optional<bool> Field::optional_boolean() const {
  return is_null() ? std::nullopt : std::optional(boolean());
}

std::optional<double> Field::later_real(const char* key) const {
  const auto field = later(key);
  return field ? field->optional_real() : std::nullopt;
}

void Field::refuse(const std::string& expected) const {
  std::string shown = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 60) + "..";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is {}, expected {}", path_, shown, expected));
}

void Field::refuse_name(const std::vector<std::string_view>& known) const {
  refuse(fmt::format("one of {}", fmt::join(known, ", ")));
}

void require_shallow(std::string_view what, std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxDepth) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: nested deeper than {} levels", what, kMaxDepth));
    }
  }
}

}  // namespace wide::bench
