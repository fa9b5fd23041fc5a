// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/json_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <set>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;
/// The largest integer that JSON represents exactly everywhere.
constexpr int64_t kLargestSeed = int64_t{1} << 53;
/// Longer times are no measurements: tables and charts of them would be unreadable.
constexpr double kLongest_ns = 1e18;

/// The parser's position, and the keys seen so far in the objects around it.
class Keys {
 public:
  explicit Keys(std::string_view what) : what_(what) {}

  void take(Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    const bool begins = event == Event::object_start || event == Event::array_start;
    if ((begins || event == Event::value) && !levels_.empty()) ++levels_.back().index;
    if (begins) levels_.push_back({event == Event::array_start});
    if (event == Event::object_end || event == Event::array_end) levels_.pop_back();
    if (event != Event::key) return;
    Level& level = levels_.back();
    level.key = value.get<std::string>();
    if (level.keys.insert(level.key).second) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} is given twice, expected once", what_, path()));
  }

 private:
  struct Level {
    bool is_array;
    int64_t index = -1;  // index of an array's element
    std::string key{};   // key of an object's member
    std::set<std::string> keys{};
  };
  std::string path() const {
    std::string text = "$";
    for (const Level& level : levels_)
      text += level.is_array ? fmt::format("[{}]", level.index) : "." + level.key;
    return text;
  }
  std::string_view what_;
  std::vector<Level> levels_;
};

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

double Field::real() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

std::optional<double> Field::optional_real() const {
  return is_null() ? std::nullopt : std::optional(real());
}

std::optional<bool> Field::optional_boolean() const {
  return is_null() ? std::nullopt : std::optional(boolean());
}

int64_t Field::count() const {
  const int64_t value = integer();
  if (value < 0) refuse("an integer, 0 or above");
  return value;
}

int Field::small_count() const {
  const int64_t value = count();
  if (value > std::numeric_limits<int>::max()) refuse("an integer of 32 bits");
  return static_cast<int>(value);
}

uint64_t Field::seed() const {
  const int64_t value = count();
  if (value > kLargestSeed) refuse("an integer from 0 to 2^53");
  return static_cast<uint64_t>(value);
}

double Field::amount() const {
  const double value = real();
  if (value < 0) refuse("a number, 0 or above");
  return value;
}

double Field::time_ns() const {
  const double value = amount();
  if (value > kLongest_ns) refuse("a time of at most 10^18 ns");
  return value;
}

std::optional<int64_t> Field::optional_count() const {
  return is_null() ? std::nullopt : std::optional(count());
}

std::optional<double> Field::optional_amount() const {
  return is_null() ? std::nullopt : std::optional(amount());
}

std::optional<double> Field::later_amount(const char* key) const {
  const auto field = later(key);
  return field ? field->optional_amount() : std::nullopt;
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

std::optional<int> minor_version(std::string_view version) {
  constexpr std::string_view kMajor = "1.";
  if (!version.starts_with(kMajor)) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<int> {
    int value = -1;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || value < 0) return std::nullopt;
    return value;
  };
  const std::string_view rest = version.substr(kMajor.size());
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos || !number(rest.substr(dot + 1))) return std::nullopt;
  return number(rest.substr(0, dot));
}

void require_schema(const Field& root, std::string_view what, std::string_view name) {
  if (root.is_object() && !root.has("schema")) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}.schema is missing, expected {} 1.x.y", root.path(), name));
  }
  const Field schema = root["schema"];
  const std::string own = schema["name"].text(), version = schema["version"].text();
  if (own == name && minor_version(version)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: schema is {} {}, expected {} 1.x.y", what, own, version, name));
}

Json parse_json(std::string_view what, std::string_view text) {
  require_shallow(what, text);
  Keys keys(what);
  const auto take = [&](int, Json::parse_event_t event, Json& value) {
    keys.take(event, value);
    return true;
  };
  try {
    return Json::parse(text, take);
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    reason.erase(0, reason.find("] ") + 2);  // the exception's name
    if (text.empty()) reason = "it is empty";
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: not JSON: {}", what, reason));
  }
}

}  // namespace wide::bench
