// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tuning cache as a JSON file: {"schema": {"name", "version"}, "entries": [..]}. Errors name
// the file.
#include "wide/tuning.hpp"

#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/file.hpp"
#include "host/core/text.hpp"

namespace wide {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchemaName = "wide.tuning";
constexpr int64_t kSchemaVersion = 1;
constexpr int kMaxDepth = 8;
constexpr int64_t kMaxCount = (int64_t{1} << 31) - 1;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw_invalid_argument("tuning: " + name + ": " + why);
}

/// A field of one entry, with its place in messages.
class Fields {
 public:
  Fields(const Json& object, std::string where, const std::string& name)
      : object_(object), where_(std::move(where)), name_(name) {
    if (!object.is_object()) refuse(name, where_ + " is no object");
  }

  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) refuse_field(key, "a text");
    return value.get<std::string>();
  }
  int64_t count(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > kMaxCount) {
      refuse_field(key, "a count");
    }
    return value.get<int64_t>();
  }
  double positive(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number() || !(value.get<double>() > 0)) refuse_field(key, "a number above 0");
    return value.get<double>();
  }
  std::string later_text(const char* key) const {  // empty where an older file has none
    return object_.contains(key) ? text(key) : "";
  }
  bool flag(const char* key) const {  // false where an older file has none
    if (!object_.contains(key)) return false;
    if (!at(key).is_boolean()) refuse_field(key, "true or false");
    return at(key).get<bool>();
  }

 private:
  const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) refuse(name_, where_ + " has no \"" + key + "\"");
    return *found;
  }
  [[noreturn]] void refuse_field(const char* key, const char* expected) const {
    refuse(name_, where_ + ": \"" + key + "\" is " + at(key).dump() + ", expected " + expected);
  }

  const Json& object_;
  std::string where_;
  const std::string& name_;
};

void require_schema(const Json& document, const std::string& name) {
  const auto schema = document.is_object() ? document.find("schema") : document.end();
  if (!document.is_object() || schema == document.end() || !schema->is_object() ||
      schema->value("name", Json()) != Json(kSchemaName)) {
    refuse(name, std::string("this is no tuning cache, expected a schema named ") + kSchemaName);
  }
  const int64_t version = Fields(*schema, "schema", name).count("version");
  if (version != kSchemaVersion) {
    refuse(name, "its version is " + std::to_string(version) + ", this build reads version " +
                     std::to_string(kSchemaVersion));
  }
}

void require_count(const char* what, int64_t value) {
  WIDE_REQUIRE(value >= 0 && value <= kMaxCount, std::string("tuning: ") + what + " is " +
                                                     std::to_string(value) +
                                                     ", expected a number in [0, 2147483647]");
}

/// JSON has no other text: it would come back changed, and perhaps as another's key.
void require_utf8(const char* what, std::string_view text) {
  try {
    (void)Json(text).dump();
  } catch (const Json::type_error&) {
    throw_invalid_argument(std::string("tuning: ") + what + " is no UTF-8");
  }
}

}  // namespace

TuningCache TuningCache::parse(std::string_view text, const std::string& name) {
  // Nesting deeper than any cache's is dropped: destroying it would recurse as deep.
  const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kMaxDepth; };
  const Json document = Json::parse(text, is_shallow, false);
  if (document.is_discarded()) refuse(name, "this is no JSON");
  require_schema(document, name);
  const auto entries = document.find("entries");
  if (entries == document.end() || !entries->is_array()) refuse(name, "it has no list \"entries\"");
  TuningCache cache;
  for (const Json& one : *entries) {
    const Fields fields(one, "entry " + std::to_string(cache.entries_.size()), name);
    Key key;
    key.device = fields.text("device");
    key.compute_capability = static_cast<int>(fields.count("compute_capability"));
    key.num_multiprocessors = static_cast<int>(fields.count("num_multiprocessors"));
    key.primitive = fields.text("op");
    key.problem = fields.text("problem");
    TuningEntry entry;
    entry.strategy = fields.text("strategy");
    entry.policy = fields.text("policy");
    entry.time_us = fields.positive("time_us");
    entry.num_candidates = fields.count("num_candidates");
    entry.kernel_hash = fields.text("kernel_hash");
    entry.is_autos_own = fields.flag("is_autos_own");
    entry.request_hash = fields.later_text("request_hash");
    if (!cache.entries_.emplace(std::move(key), std::move(entry)).second) {
      refuse(name, "entry " + std::to_string(cache.entries_.size()) + " is there twice");
    }
  }
  return cache;
}

std::string TuningCache::to_text() const {
  Json entries = Json::array();
  for (const auto& [key, entry] : entries_) {
    entries.push_back({{"device", key.device},
                       {"compute_capability", key.compute_capability},
                       {"num_multiprocessors", key.num_multiprocessors},
                       {"op", key.primitive},
                       {"problem", key.problem},
                       {"strategy", entry.strategy},
                       {"policy", entry.policy},
                       {"time_us", entry.time_us},
                       {"num_candidates", entry.num_candidates},
                       {"kernel_hash", entry.kernel_hash},
                       {"is_autos_own", entry.is_autos_own},
                       {"request_hash", entry.request_hash}});
  }
  const Json document = {{"schema", {{"name", kSchemaName}, {"version", kSchemaVersion}}},
                         {"entries", entries}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

TuningCache TuningCache::load(const std::string& path) {
  return parse(read_file(path), path);
}

void TuningCache::save(const std::string& path) const {
  write_file(path, to_text());
}

const TuningEntry* TuningCache::find(const DeviceInfo& device, std::string_view primitive,
                                     std::string_view problem) const {
  const auto found =
      entries_.find({device.name, device.compute_capability, device.num_multiprocessors,
                     std::string(primitive), std::string(problem)});
  return found == entries_.end() ? nullptr : &found->second;
}

void TuningCache::set(const DeviceInfo& device, std::string_view primitive,
                      std::string_view problem, TuningEntry entry) {
  // What parse() refuses is kept out: one such entry would make the whole file unreadable.
  WIDE_REQUIRE(entry.time_us > 0 && std::isfinite(entry.time_us),
               "tuning: time_us is " + text(entry.time_us) + ", expected a finite number above 0");
  require_count("num_candidates", entry.num_candidates);
  require_count("the device's compute_capability", device.compute_capability);
  require_count("the device's num_multiprocessors", device.num_multiprocessors);
  const std::initializer_list<std::pair<const char*, std::string_view>> texts{
      {"the device's name", device.name},
      {"primitive", primitive},
      {"problem", problem},
      {"strategy", entry.strategy},
      {"policy", entry.policy},
      {"kernel_hash", entry.kernel_hash},
      {"request_hash", entry.request_hash}};
  for (const auto& [what, text] : texts) require_utf8(what, text);
  entries_[{device.name, device.compute_capability, device.num_multiprocessors,
            std::string(primitive), std::string(problem)}] = std::move(entry);
}

void TuningCache::merge(const TuningCache& newer) {
  for (const auto& [key, entry] : newer.entries_) entries_[key] = entry;
}

}  // namespace wide
