// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/value_spec.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kMaxValues = 100'000;  // a longer range is a typing error

[[noreturn]] void refuse(std::string_view axis, std::string_view text,
                         const std::string& expected) {
  throw Error(ErrorCode::invalid_argument,
              "--" + std::string(axis) + ": \"" + std::string(text) + "\", expected " + expected);
}

[[noreturn]] void refuse_length(std::string_view axis, std::string_view text) {
  refuse(axis, text, "at most " + std::to_string(kMaxValues) + " values");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

enum class Digits : uint8_t { good, bad, too_large };

Digits parse_digits(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return Digits::bad;
  return error == std::errc()                      ? Digits::good
         : error == std::errc::result_out_of_range ? Digits::too_large
                                                   : Digits::bad;
}

int64_t power_of_two(std::string_view axis, int64_t exponent, std::string_view text) {
  if (exponent < 0 || exponent > 62) refuse(axis, text, "a power of two from 2^0 to 2^62");
  return int64_t{1} << exponent;
}

class IntegerParser {
 public:
  IntegerParser(const catalog::AxisInfo& axis, bool powers) : axis_(axis), powers_(powers) {}

  void item(std::string_view text, std::vector<int64_t>& values) const {
    const auto parts = split(text, ':');
    if (parts.size() == 1) return add(integer(text), text, values);
    if (parts.size() > 3) refuse(axis_.name, text, "LO:HI, LO:HI:STEP or LO:HI:xFACTOR");
    if (parts[0].empty() || parts[1].empty() || parts.back().empty())
      refuse(axis_.name, text, "LO:HI, LO:HI:STEP or LO:HI:xFACTOR");
    const int64_t low = integer(parts[0]), high = integer(parts[1]);
    const bool is_geometric = parts.size() == 3 && parts[2].starts_with('x');
    const int64_t step = parts.size() < 3 ? 1 : integer(parts[2].substr(is_geometric ? 1 : 0));
    if (low > high) refuse(axis_.name, text, "LO <= HI");
    if (step < (is_geometric ? 2 : 1)) refuse(axis_.name, text, "a step >= 1, or a factor >= 2");
    if (is_geometric && low < 1) refuse(axis_.name, text, "LO >= 1 with a factor");
    for (int64_t value = low; value <= high;) {
      add(value, text, values);
      if (is_geometric ? value > high / step : value > high - step) break;
      value = is_geometric ? value * step : value + step;
    }
  }

 private:
  int64_t integer(std::string_view text) const { return parse_integer(axis_.name, text); }

  void add(int64_t value, std::string_view text, std::vector<int64_t>& values) const {
    if (powers_) value = power_of_two(axis_.name, value, text);
    if (value < axis_.min) refuse(axis_.name, text, "values >= " + std::to_string(axis_.min));
    if (static_cast<int64_t>(values.size()) >= kMaxValues) refuse_length(axis_.name, text);
    values.push_back(value);
  }

  const catalog::AxisInfo& axis_;
  bool powers_;
};

}  // namespace

int64_t parse_integer(std::string_view axis, std::string_view text) {
  const char* expected = "an integer, with K, M or G for binary thousands, or 2^N";
  if (text.starts_with("2^")) {
    int64_t exponent = 0;
    if (parse_digits(text.substr(2), exponent) != Digits::good) refuse(axis, text, expected);
    return power_of_two(axis, exponent, text);
  }
  int shift = 0;
  std::string_view digits = text;
  if (!text.empty()) {
    shift = text.back() == 'K' ? 10 : text.back() == 'M' ? 20 : text.back() == 'G' ? 30 : 0;
    if (shift > 0) digits.remove_suffix(1);
  }
  int64_t value = 0;
  const Digits digits_read = parse_digits(digits, value);
  if (digits_read == Digits::bad) refuse(axis, text, expected);
  if (digits_read == Digits::too_large || value > (std::numeric_limits<int64_t>::max() >> shift))
    refuse(axis, text, "at most 2^63 - 1");
  return value << shift;
}

std::vector<catalog::AxisValue> parse_values(const catalog::AxisInfo& axis, std::string_view spec,
                                             bool powers) {
  std::vector<catalog::AxisValue> values;
  std::set<catalog::AxisValue> kept;
  const auto keep = [&](const catalog::AxisValue& value) {
    if (!kept.insert(value).second) return;
    if (static_cast<int64_t>(values.size()) >= kMaxValues) refuse_length(axis.name, spec);
    values.push_back(value);
  };
  const IntegerParser integers(axis, powers);
  for (const std::string_view item : split(spec, ',')) {
    if (item.empty()) refuse(axis.name, spec, "values separated by single commas");
    if (axis.words.empty()) {
      std::vector<int64_t> numbers;
      integers.item(item, numbers);
      for (const int64_t number : numbers) keep(number);
      continue;
    }
    if (item == kAll) {
      for (const std::string_view word : axis.words) keep(std::string(word));
      continue;
    }
    if (std::find(axis.words.begin(), axis.words.end(), item) == axis.words.end()) {
      throw Error(ErrorCode::invalid_argument,
                  "--" + std::string(axis.name) + ": " +
                      catalog::unknown_name_message(axis.name, item, axis.words));
    }
    keep(std::string(item));
  }
  return values;
}

AxisOverride parse_override(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse("axis", text, "NAME=SPEC");
  AxisOverride result{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)),
                      false};
  if (result.name.ends_with("[pow2]")) {
    result.powers = true;
    result.name.resize(result.name.size() - 6);
  }
  if (result.spec.size() >= 2 && result.spec.front() == '[' && result.spec.back() == ']') {
    result.spec = result.spec.substr(1, result.spec.size() - 2);
  }
  return result;
}

std::vector<std::string> parse_list(std::string_view what, std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view item : split(text, ',')) {
    if (item.empty()) refuse(what, text, "names separated by single commas");
    if (std::find(names.begin(), names.end(), item) == names.end()) names.emplace_back(item);
  }
  return names;
}

std::vector<std::string> parse_list(std::string_view what, std::string_view text,
                                    std::span<const std::string_view> all) {
  std::vector<std::string> names;
  const auto keep = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const std::string& item : parse_list(what, text)) {
    if (item == kAll) {
      for (const std::string_view name : all) keep(name);
    } else {
      keep(item);
    }
  }
  return names;
}

}  // namespace wide::bench
