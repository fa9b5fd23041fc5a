// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The header is Python's text of a dictionary, of which only what numpy.lib.format writes is
// accepted: nothing is evaluated.
#include "host/import/npy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};

/// NumPy's names of the dtypes that it has.
constexpr std::array<std::pair<Dtype, std::string_view>, 5> kNpyTypes{{{Dtype::fp32, "<f4"},
                                                                       {Dtype::fp16, "<f2"},
                                                                       {Dtype::int32, "<i4"},
                                                                       {Dtype::int64, "<i8"},
                                                                       {Dtype::uint8, "|u1"}}};

/// Python's text, read from left to right; each read skips the white space in front.
class Literal {
 public:
  Literal(std::string_view text, const std::string& what) : rest_(text), what_(what) {}

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("expected ") + c);
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string text() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"' && !take('"')) refuse("expected a text");
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) refuse("a text has no end");
    std::string out(rest_.substr(0, end));
    if (out.find('\\') != std::string::npos) refuse("a text has a backslash");
    rest_.remove_prefix(end + 1);
    return out;
  }
  int64_t count() {
    skip_space();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || rest_.front() == '-') refuse("expected a count");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);  // Python 2 wrote 3L
    return value;
  }
  bool is_at_end() {
    skip_space();
    return rest_.empty();
  }
  [[noreturn]] void refuse(const std::string& why) const {
    refuse_npy(what_, "its header is no dictionary that NumPy writes: " + why +
                          (rest_.empty() ? " at the end" : " at " + in_quotes(rest_)));
  }

 private:
  void skip_space() {
    const size_t start = rest_.find_first_not_of(" \t\n\r");
    rest_.remove_prefix(std::min(start, rest_.size()));
  }
  std::string_view rest_;
  const std::string& what_;
};

Shape read_shape(Literal& literal, const std::string& what) {
  std::vector<int64_t> extents;
  literal.expect('(');
  while (!literal.take(')')) {
    if (extents.size() == kMaxRank)
      refuse_npy(what, "shape has more than " + std::to_string(kMaxRank) + " axes");
    extents.push_back(literal.count());
    if (!literal.take(',')) {
      if (extents.size() == 1) literal.refuse("expected ,");  // (3) is a number, not a tuple
      literal.expect(')');
      break;
    }
  }
  return Shape(extents);
}

/// Bytes of one element of a dtype that NumPy writes; none for other names. The bytes of
/// Python's objects are not known: they are a pickle, which is not read here.
std::optional<int64_t> element_bytes(std::string_view type) {
  constexpr std::string_view kKinds = "biufcSUVmM";
  if (type.size() < 2 || std::string_view("<>|=").find(type[0]) == std::string_view::npos)
    return {};
  const size_t unit = type.find('[');  // of a time: "<M8[ns]"
  const std::string_view digits = type.substr(2, unit == std::string_view::npos ? unit : unit - 2);
  int32_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (kKinds.find(type[1]) == std::string_view::npos || error != std::errc() || number < 0 ||
      end != digits.data() + digits.size()) {
    return {};
  }
  if (unit != std::string_view::npos && ((type[1] != 'm' && type[1] != 'M') || type.back() != ']'))
    return {};
  return type[1] == 'U' ? int64_t{4} * number : number;  // UCS-4
}

void require_size(NpyHeader& header, int64_t total_bytes, const std::string& what) {
  const std::optional<int64_t> element = element_bytes(header.type);
  if (header.type == "|O") {
    header.data_bytes = total_bytes - header.header_bytes;
    return;
  }
  if (!element) refuse_npy(what, "descr is " + in_quotes(header.type) + ", which is unknown");
  try {
    header.data_bytes = checked_bytes(header.shape, *element);
  } catch (const Error&) {
    refuse_npy(what,
               "its shape " + to_string(header.shape) + " has more elements than can be counted");
  }
  if (header.data_bytes != total_bytes - header.header_bytes) {
    refuse_npy(what, "has " + counted(total_bytes - header.header_bytes, "byte") +
                         " after its header, expected " + std::to_string(header.data_bytes) +
                         " for " + header.type + " " + to_string(header.shape));
  }
}

void read_dictionary(NpyHeader& header, std::string_view text, const std::string& what) {
  constexpr std::array<std::string_view, 3> kKeys{"descr", "fortran_order", "shape"};
  std::array<bool, 3> seen{};
  Literal literal(text, what);
  literal.expect('{');
  while (!literal.take('}')) {
    const std::string key = literal.text();
    const auto known = std::find(kKeys.begin(), kKeys.end(), key);
    if (known == kKeys.end()) refuse_npy(what, "its header has a key " + in_quotes(key));
    bool& is_there = seen[static_cast<size_t>(known - kKeys.begin())];
    if (is_there) refuse_npy(what, "its header has " + in_quotes(key) + " twice");
    is_there = true;
    literal.expect(':');
    if (key == "descr") {
      if (literal.take('[')) refuse_npy(what, "it has a structured dtype, expected a plain one");
      header.type = literal.text();
    } else if (key == "fortran_order") {
      header.is_fortran_order = literal.take_word("True");
      if (!header.is_fortran_order && !literal.take_word("False"))
        literal.refuse("expected True or False");
    } else {
      header.shape = read_shape(literal, what);
    }
    if (!literal.take(',')) {
      literal.expect('}');
      break;
    }
  }
  if (!literal.is_at_end()) literal.refuse("expected nothing");
  for (size_t i = 0; i < kKeys.size(); ++i) {
    if (!seen[i]) refuse_npy(what, "its header has no " + in_quotes(kKeys[i]));
  }
}

}  // namespace

void require_npz_name(std::string_view name, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    refuse_npy(what, "entry " + in_quotes(name) + " " + why);
  };
  if (!name.ends_with(kNpySuffix)) refuse("is no array, expected a name that ends in .npy");
  if (name.size() > 65535) refuse("has a name that is too long");
  bool leads_out = name.front() == '/' || name.find('\\') != std::string_view::npos ||
                   name.find('\0') != std::string_view::npos;
  for (std::string_view rest = name; !rest.empty();) {
    const size_t length = std::min(rest.find('/'), rest.size());
    leads_out = leads_out || rest.substr(0, length) == "..";
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  if (leads_out) refuse("has a name that leads elsewhere");
}

void refuse_npy(const std::string& what, const std::string& why) {
  throw_invalid_argument("npy: " + what + ": " + why);
}

NpyHeader parse_npy_header(std::span<const std::byte> start, int64_t total_bytes,
                           const std::string& what) {
  const std::string_view text{reinterpret_cast<const char*>(start.data()), start.size()};
  if (!text.starts_with(kMagic)) refuse_npy(what, "it does not begin as NumPy's arrays do");
  if (text.size() < 12) refuse_npy(what, "it ends within the length of its header");
  const auto byte = [&](size_t at) {
    return static_cast<uint64_t>(static_cast<uint8_t>(text[at]));
  };
  const uint64_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    refuse_npy(what, "its version is " + std::to_string(major) + "." + std::to_string(minor) +
                         ", expected 1.0, 2.0 or 3.0");
  }
  const size_t prefix = major == 1 ? 10 : 12;
  uint64_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  const uint64_t most = std::min<uint64_t>(65535, text.size() - prefix);
  if (length > most) {
    refuse_npy(what, "its header has " + counted(length, "byte") + ", expected at most " +
                         std::to_string(most));
  }
  NpyHeader header;
  header.header_bytes = static_cast<int64_t>(prefix + length);
  read_dictionary(header, text.substr(prefix, length), what);
  require_size(header, total_bytes, what);
  for (const auto& [dtype, name] : kNpyTypes) {
    if (name == header.type || (dtype == Dtype::uint8 && header.type == "<u1"))
      header.dtype = dtype;
  }
  return header;
}

std::string npy_header(Dtype dtype, const Shape& shape, int64_t bytes_in_front) {
  const auto known = std::find_if(kNpyTypes.begin(), kNpyTypes.end(),
                                  [&](const auto& type) { return type.first == dtype; });
  WIDE_REQUIRE(known != kNpyTypes.end(),
               "npy: NumPy has no " + std::string(dtype_name(dtype)) + "; safetensors do");
  std::string axes;
  for (const int64_t extent : shape) axes += std::to_string(extent) + ", ";
  if (shape.rank() > 1) axes.resize(axes.size() - 2);
  if (shape.rank() == 1) axes.pop_back();
  std::string text = "{'descr': '" + std::string(known->second) +
                     "', 'fortran_order': False, 'shape': (" + axes + "), }";
  constexpr size_t kPrefix = 10, kAlignment = 64;
  const size_t before = static_cast<size_t>(bytes_in_front) + kPrefix;
  const size_t end = (before + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(end - before - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace wide
