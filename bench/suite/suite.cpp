// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reading a suite file. Values that are text on the command line are parsed as text, so that both
// mean the same and refuse the same.
#include "bench/suite/suite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>

#include "bench/command/running.hpp"
#include "bench/document/json_field.hpp"
#include "bench/document/metrics.hpp"
#include "bench/history/history.hpp"
#include "bench/report/table.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxEntries = 1000;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, printable(message));
}

double real_in(const Field& f, double least, bool is_open, double most, const char* expected) {
  const double value = f.real();
  if (!((is_open ? value > least : value >= least) && value <= most)) f.refuse(expected);
  return value;
}

double positive(const Field& f) {
  return real_in(f, 0, true, 1e9, "a number above 0");
}

int64_t integer_in(const Field& f, int64_t least, int64_t most) {
  const int64_t value = f.integer();
  if (value < least || value > most) f.refuse(fmt::format("an integer from {} to {}", least, most));
  return value;
}

/// "a,b" or ["a", "b"] as "a,b".
std::string words_of(const Field& f) {
  if (!f.is_array()) return f.text();
  std::string words;
  for (const Field& item : f.items()) words += (words.empty() ? "" : ",") + item.text();
  if (words.empty()) f.refuse("at least one name");
  return words;
}

/// 4, "4:16:x2" or ["fp16", "bf16"] as on the command line.
std::string spec_of(const Field& f) {
  if (!f.is_array()) return catalog::to_string(f.axis_value());
  std::string spec;
  for (const Field& item : f.items())
    spec += (spec.empty() ? "" : ",") + catalog::to_string(item.axis_value());
  if (spec.empty()) f.refuse("at least one value");
  return spec;
}

template <class Enum>
std::string names_of(const Field& f, std::initializer_list<Enum> known) {
  const std::vector<Field> items = f.is_array() ? f.items() : std::vector<Field>{f};
  if (items.empty()) f.refuse("at least one name");
  std::string names;
  for (const Field& item : items)
    names += (names.empty() ? "" : ",") + std::string(to_string(item.one_of(known)));
  return names;
}

using Setters = std::map<std::string, std::function<void(const Field&)>>;

/// Calls the setter of every member. An unknown key is refused, with the nearest ones.
void read_members(const Field& object, const Setters& setters) {
  std::vector<std::string_view> known;
  for (const auto& [key, set] : setters) known.push_back(key);
  for (const auto& [key, value] : object.members()) {
    const auto found = setters.find(key);
    if (found == setters.end())
      refuse(object.path() + ": " + catalog::unknown_name_message("key", key, known));
    found->second(value);
  }
}

Threshold threshold_of(const Field& f) {
  Threshold t;
  read_members(
      f, {{"metric", [&](const Field& v) { t.metric = v.text(); }},
          {"min", [&](const Field& v) { t.min = real_in(v, 0, true, 1e300, "a number above 0"); }},
          {"max", [&](const Field& v) { t.max = real_in(v, 0, true, 1e300, "a number above 0"); }},
          {"baseline", [&](const Field& v) { t.baseline = v.one_of(kOwnBaselines); }},
          {"regime", [&](const Field& v) { t.regime = v.one_of(kRegimes); }},
          {"strategy", [&](const Field& v) { t.strategy = v.text(); }}});
  (void)f["metric"];
  if (t.min.has_value() == t.max.has_value()) f.refuse("one of min and max");
  if (t.metric == kSpeedup) {
    if (!t.baseline) f.refuse("a baseline, which speedup_ratio is against");
    return t;
  }
  try {
    (void)find_measured_metric(t.metric);
  } catch (const Error& error) {
    refuse(f.path() + ": " + error.what() + ", or " + std::string(kSpeedup));
  }
  if (t.baseline) f.refuse("no baseline: only speedup_ratio is against one");
  return t;
}

/// What both "defaults" and entries may have.
Setters common_setters(SuiteEntry& e) {
  Selection& s = e.options.selection;
  RunConfig& c = e.options.config;
  return {
      {"preset", [&](const Field& f) { s.preset = f.text(); }},
      {"axes",
       [&](const Field& f) {
         for (const auto& [axis, value] : f.members()) s.axis_options[axis] = spec_of(value);
       }},
      {"strategies", [&](const Field& f) { s.strategies = words_of(f); }},
      {"skip", [&](const Field& f) { s.skip = words_of(f); }},
      {"baselines",
       [&](const Field& f) {
         s.baselines = f.is_text() && f.text() == "none" ? "none" : names_of(f, kOwnBaselines);
       }},
      {"regimes", [&](const Field& f) { s.regimes = names_of(f, kRegimes); }},
      {"filter", [&](const Field& f) { s.filter = f.text(); }},
      {"device", [&](const Field& f) { s.device = f.text(); }},
      {"rounds", [&](const Field& f) { c.rounds = integer_in(f, 3, 10000); }},
      {"min_samples", [&](const Field& f) { c.min_samples = integer_in(f, 1, 1'000'000'000); }},
      {"max_samples", [&](const Field& f) { c.max_samples = integer_in(f, 1, 1'000'000'000); }},
      {"target_ci",
       [&](const Field& f) {
         e.options.target_ci = f.text();
         (void)parse_percent(f.path(), f.text());
       }},
      {"warmup_s",
       [&](const Field& f) { c.warmup_s = real_in(f, 0, false, 1e9, "a number, 0 or above"); }},
      {"timeout_s", [&](const Field& f) { c.timeout_s = positive(f); }},
      {"budget_s", [&](const Field& f) { e.options.budget_s = positive(f); }},
      {"seed",
       [&](const Field& f) { c.seed = static_cast<uint64_t>(integer_in(f, 0, int64_t{1} << 53)); }},
      {"order_seed",
       [&](const Field& f) {
         c.order_seed = static_cast<uint64_t>(integer_in(f, 0, int64_t{1} << 53));
       }},
      {"isolate", [&](const Field& f) { c.isolate = f.boolean(); }},
      {"verify",
       [&](const Field& f) {
         c.verify = f.text();
         if (c.verify != "both" && c.verify != "before" && c.verify != "off")
           f.refuse("one of both, before, off");
       }},
      {"thresholds", [&](const Field& f) {
         e.thresholds.clear();
         for (const Field& item : f.items()) e.thresholds.push_back(threshold_of(item));
       }}};
}

/// One entry, or one per primitive for "all".
std::vector<SuiteEntry> entries_of(const Field& f, const SuiteEntry& defaults) {
  SuiteEntry entry = defaults;
  entry.where = f.path();
  Setters setters = common_setters(entry);
  setters["name"] = [&](const Field& v) { entry.name = v.text(); };
  setters["op"] = [&](const Field& v) { entry.options.selection.ops = words_of(v); };
  read_members(f, setters);
  (void)f["op"];
  const RunConfig& c = entry.options.config;
  if (c.min_samples > c.max_samples && c.min_samples != RunConfig().min_samples) {
    refuse(f.path() + ": min_samples is " + std::to_string(c.min_samples) +
           ", expected at most max_samples, which is " + std::to_string(c.max_samples));
  }
  const std::string& ops = entry.options.selection.ops;
  if (ops != "all") {
    if (entry.name.empty()) entry.name = ops.substr(0, ops.find(','));
    return {entry};
  }
  if (!entry.name.empty()) f["name"].refuse("no name: the entries of \"all\" are named by op");
  std::vector<SuiteEntry> entries;
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    entry.name = entry.options.selection.ops = std::string(spec->name);
    entries.push_back(entry);
  }
  return entries;
}

/// Names are file names, too; for two equal ones, the second's error names the first.
void require_names(const std::vector<SuiteEntry>& entries) {
  std::map<std::string, std::string> seen;
  for (const SuiteEntry& entry : entries) {
    try {
      require_name("name", entry.name);
    } catch (const Error& error) {
      refuse(entry.where + ": " + error.what());
    }
    const auto [place, is_new] = seen.emplace(entry.name, entry.where);
    if (is_new) continue;
    refuse(entry.where + ": the name \"" + entry.name + "\" is taken by " + place->second +
           ", expected another \"name\"");
  }
}

}  // namespace

Suite parse_suite(std::string_view text, const std::string& source) {
  const Json document = parse_json(source, text);
  const Field root(document, source + ": $");
  require_schema(root, source, "wbench.suite");
  Suite suite;
  SuiteEntry defaults;
  const auto ignore = [](const Field&) {};  // read below, in their order
  read_members(root, {{"schema", ignore},
                      {"$schema", ignore},
                      {"name", [&](const Field& f) { suite.name = f.text(); }},
                      {"description", [&](const Field& f) { suite.description = f.text(); }},
                      {"defaults", ignore},
                      {"entries", ignore}});
  if (root.has("defaults")) read_members(root["defaults"], common_setters(defaults));
  for (const Field& f : root["entries"].items()) {
    for (SuiteEntry& entry : entries_of(f, defaults)) suite.entries.push_back(std::move(entry));
    if (suite.entries.size() > kMaxEntries)
      refuse(fmt::format("{}: more than {} entries", source, kMaxEntries));
  }
  if (suite.entries.empty()) root["entries"].refuse("at least one entry");
  (void)root["name"];
  try {
    require_name("name", suite.name);
  } catch (const Error& error) {
    refuse(source + ": $: " + error.what());
  }
  require_names(suite.entries);
  return suite;
}

Suite load_suite(const std::string& name_or_path) {
  const std::vector<ShippedSuite> shipped = shipped_suites();
  std::vector<std::string_view> names;
  for (const ShippedSuite& suite : shipped) {
    if (suite.name == name_or_path) return parse_suite(suite.text, name_or_path);
    names.push_back(suite.name);
  }
  if (name_or_path == "-")
    return parse_suite(std::string(std::istreambuf_iterator<char>(std::cin), {}), "-");
  const bool is_path =
      name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json");
  if (!is_path) {
    refuse(catalog::unknown_name_message("suite", name_or_path, names) +
           " (files have a slash in their path, or end in .json)");
  }
  return parse_suite(read_file(name_or_path), name_or_path);
}

EntrySize size_of(const SuiteEntry& entry) {
  // Device-dependent options were checked by name; the rest is what `run` selects.
  Selection selection = entry.options.selection;
  selection.regimes.clear();
  selection.baselines.clear();
  RunPlan plan(Context::cpu());
  RunResult result;
  EntrySize size;
  try {
    const std::string nothing = select_work(selection, plan, result);
    for (const auto& [spec, cases] : plan.work) size.cases += static_cast<int64_t>(cases.size());
    if (size.cases == 0) refuse(nothing);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    refuse(entry.where + ": " + error.what());
  }
  size.impossible = result.impossible_cases;
  return size;
}

}  // namespace wide::bench
