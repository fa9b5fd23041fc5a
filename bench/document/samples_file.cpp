// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/samples_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "bench/document/json_field.hpp"
#include "bench/document/json_number.hpp"
#include "bench/document/result_json.hpp"
#include "bench/document/sha256.hpp"
#include "host/core/check.hpp"
#include "host/core/file.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kKey = "samples_file";
constexpr const char* kDtype = "f64le";
constexpr std::string_view kSuffix = ".samples.f64le";
/// Suffix of a side-car's name until its document is written: an interrupt between the two
/// leaves the old document with the old side-car, or the new one with this.
constexpr std::string_view kPending = ".new";
constexpr size_t kWidth = 8;
constexpr double kLargestInteger = 0x1p53;

void append(double value, std::string& bytes) {
  const auto bits = std::bit_cast<uint64_t>(value);
  for (size_t i = 0; i < kWidth; ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xff);
}

double value_at(std::string_view bytes, size_t index) {
  uint64_t bits = 0;
  for (size_t i = kWidth; i-- > 0;)
    bits = bits << 8 | static_cast<uint8_t>(bytes[kWidth * index + i]);
  return std::bit_cast<double>(bits);
}

/// Null if there is no such member, or `value` is not an object.
Json* member(Json& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(key);
  return found == value.end() ? nullptr : &*found;
}

/// Calls `use` with every "samples" of a document, and its path. Malformed documents are refused
/// by the reader.
template <class Use>
void for_each_samples(Json& document, const Use& use) {
  const auto for_each = [](Json* parent, const char* key, const std::string& path, const auto& f) {
    Json* const list = parent == nullptr ? nullptr : member(*parent, key);
    if (list == nullptr || !list->is_array()) return;
    for (size_t i = 0; i < list->size(); ++i) f((*list)[i], fmt::format("{}.{}[{}]", path, key, i));
  };
  for_each(&document, "cases", "result: $", [&](Json& point, const std::string& case_path) {
    for (const char* group : {"strategies", "baselines"}) {
      for_each(&point, group, case_path, [&](Json& runner, const std::string& runner_path) {
        for_each(&runner, "measurements", runner_path, [&](Json& m, const std::string& path) {
          if (Json* samples = member(m, "samples")) use(*samples, path + ".samples");
        });
      });
    }
  });
}

bool is_integral(std::string_view column) {
  return column == "round" || column == "order" || column == "flags";
}

/// Accepts only a plain file name that does not lead elsewhere.
fs::path side_car_path(const Field& name, const std::string& folder) {
  const std::string file = name.text();
  const bool is_name = !file.empty() && file != "." && file != ".." &&
                       file.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!is_name) name.refuse("the name of a file in the result's folder");
  const fs::path here = folder.empty() ? fs::path(".") : fs::path(folder);
  const fs::path path = here / file;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (!error && real.parent_path() != fs::canonical(here, error))
    name.refuse("a file in the result's folder, not " + real.string());
  return path;
}

/// Reads the side-car, which must be as it was written.
std::string read_side_car(const Field& reference, const fs::path& path) {
  const std::string file = path.string();
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw_invalid_argument(file + ": the side-car of samples is no regular file");
  const auto got = static_cast<int64_t>(fs::file_size(path, error));
  const int64_t expected = reference["bytes"].integer();
  if (got != expected) {
    throw_invalid_argument(fmt::format("{}: the side-car of samples has {}, expected {}", file,
                                       counted(got, "byte"), expected));
  }
  std::string bytes = read_file(file);
  const std::string hash = sha256(bytes), asked = reference["sha256"].text();
  if (hash != asked) {
    throw_invalid_argument(
        fmt::format("{}: the side-car of samples was altered: its SHA-256 is {}, expected {}", file,
                    hash, asked));
  }
  return bytes;
}

/// Whether there is a file with what the document expects.
bool is_side_car(const Field& reference, const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error)) &&
         static_cast<int64_t>(fs::file_size(path, error)) == reference["bytes"].integer() &&
         sha256(read_file(path.string())) == reference["sha256"].text();
}

/// Uses each of a file's values at most once: a document's slices never exceed its file.
class Values {
 public:
  explicit Values(std::string bytes)
      : bytes_(std::move(bytes)), left_(static_cast<int64_t>(bytes_.size() / kWidth)) {}

  Json column(const Field& slice, bool is_integral) {
    const auto size = static_cast<int64_t>(bytes_.size() / kWidth);
    const int64_t offset = slice["offset"].integer(), count = slice["count"].integer();
    if (offset < 0 || count < 0 || offset > size || count > size - offset)
      slice.refuse(fmt::format("a slice of the {} of the side-car", counted(size, "value")));
    if (count > left_) slice.refuse("slices that have each value of the side-car once");
    left_ -= count;
    Json column = Json::array();
    auto& values = column.get_ref<Json::array_t&>();
    values.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const double value = value_at(bytes_, static_cast<size_t>(offset + i));
      const bool is_round = std::trunc(value) == value && std::fabs(value) < kLargestInteger;
      if (!std::isfinite(value) || (is_integral && !is_round)) {
        throw_invalid_argument(fmt::format("{}: value {} of the side-car is {}, expected {}",
                                           slice.path(), offset + i, value,
                                           is_integral ? "an integer" : "a number"));
      }
      if (is_integral) {
        values.emplace_back(static_cast<int64_t>(value));
      } else {
        values.emplace_back(value);
      }
    }
    return column;
  }

 private:
  std::string bytes_;
  int64_t left_;
};

}  // namespace

std::optional<SamplesIn> samples_in(std::string_view name) {
  constexpr std::string_view kNames[] = {"auto", "inline", "sidecar", "none"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<SamplesIn>(i);
  }
  return std::nullopt;
}

std::string pending_side_car(const std::string& document) {
  return document + std::string(kSuffix) + std::string(kPending);
}

bool wants_side_car(const RunResult& result, SamplesIn where) {
  if (where != SamplesIn::automatic) return where == SamplesIn::side_car;
  int64_t most = 0, total = 0;
  for (const CaseResult& c : result.cases) {
    for (const auto* runners : {&c.strategies, &c.baselines}) {
      for (const RunnerResult& r : *runners) {
        for (const Measurement& m : r.measurements) {
          const auto count = static_cast<int64_t>(m.samples_ns.size());
          most = std::max(most, count);
          total += count;
        }
      }
    }
  }
  return most > kMaxInlineOfOne || total > kMaxInline;
}

std::string take_samples(Json& document, const std::string& file) {
  std::string bytes;
  for_each_samples(document, [&](Json& samples, const std::string&) {
    for (auto& column : samples) {
      const size_t offset = bytes.size() / kWidth, count = column.size();
      for (const Json& value : column) append(value.get<double>(), bytes);
      column = {{"offset", offset}, {"count", count}};
    }
  });
  document[kKey] = {
      {"file", file}, {"dtype", kDtype}, {"bytes", bytes.size()}, {"sha256", sha256(bytes)}};
  return bytes;
}

void restore_samples(Json& document, const std::string& folder) {
  const Json* const named = member(document, kKey);
  if (named == nullptr) return;
  const Json reference = *named;
  const Field field(reference, "result: $.samples_file");
  if (field["dtype"].text() != kDtype) field["dtype"].refuse(kDtype);
  const fs::path path = side_car_path(field["file"], folder);
  const fs::path pending = path.string() + std::string(kPending);
  std::error_code error;
  if (is_side_car(field, pending)) return place_samples(document, read_file(pending.string()));
  if (!fs::exists(fs::symlink_status(path, error))) return;
  place_samples(document, read_side_car(field, path));
}

void place_samples(Json& document, std::string bytes) {
  Values values(std::move(bytes));
  for_each_samples(document, [&](Json& samples, const std::string& where) {
    if (!samples.is_object()) return;
    for (const auto& item : samples.items()) {
      if (!item.value().is_object()) continue;
      const Json slice = item.value();
      item.value() = values.column(Field(slice, where + "." + item.key()), is_integral(item.key()));
    }
  });
  if (document.is_object()) document.erase(kKey);  // otherwise it has no samples
}

std::string document_text(const RunResult& result, SamplesIn where) {
  Json document = to_json(result);
  if (where == SamplesIn::nowhere) {
    for_each_samples(document, [](Json& samples, const std::string&) {
      samples = {{"time_ns", Json::array()}, {"round", Json::array()}};
    });
  }
  return dumped(document);
}

void write_result(const RunResult& result, const std::string& path, SamplesIn where) {
  const std::string beside = path + std::string(kSuffix);
  std::error_code error;
  const bool is_special = fs::exists(path, error) && !fs::is_regular_file(path, error);
  if (is_special && where == SamplesIn::side_car)
    throw Error(ErrorCode::io, "cannot write samples beside " + path + ", which is no file");
  if (is_special || !wants_side_car(result, where)) {
    write_file(path, document_text(result, where));
    // A side-car of an earlier result is obsolete.
    if (!is_special && fs::is_regular_file(beside, error)) fs::remove(beside, error);
    return;
  }
  if (fs::exists(beside, error) && !fs::is_regular_file(beside, error))
    throw Error(ErrorCode::io, "cannot write samples to " + beside + ", which is no regular file");
  Json document = to_json(result);
  const std::string bytes = take_samples(document, fs::path(beside).filename().string());
  const std::string pending = pending_side_car(path);
  write_file(pending, bytes);
  write_file(path, dumped(document));
  fs::rename(pending, beside, error);
  if (error) throw Error(ErrorCode::io, "cannot rename " + pending + ": " + error.message());
}

}  // namespace wide::bench
