// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What all stores have in common: what is stored of a result, and what is derived from it.
#include "bench/history/history.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "bench/document/sha256.hpp"
#include "bench/report/rows.hpp"
#include "bench/statistics/noise_floor.hpp"
#include "bench/statistics/statistics.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr size_t kLongestName = 80;
constexpr std::string_view kJsonl = "jsonl:";  // a store of text files

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Deviations from the median, corrected for its closeness to few runs; a single run has
/// none.
void add_deviations(std::span<const double> runs, std::vector<double>& deviations) {
  if (runs.size() < 2) return;
  const auto n = static_cast<double>(runs.size());
  const double centre = median(runs);
  for (const double run : runs)
    deviations.push_back(std::fabs(run - centre) * std::sqrt(n / (n - 1)));
}

}  // namespace

std::string code_of(const HistoryRun& run) {
  return run.git_sha.empty() || run.git_dirty ? "run " + run.id : run.git_sha;
}

std::string history_device(const RunResult& result) {
  if (result.devices.empty()) return "";
  const DeviceInfo& device = result.devices.front();
  return device.device.type == DeviceType::cpu ? "cpu: " + device.name : device.name;
}

void require_stored(const std::string& what, const std::string& expected, std::string_view found) {
  if (expected.empty()) return;
  const std::string digest = sha256(found);
  if (digest == expected) return;
  throw Error(ErrorCode::invalid_argument, what + " is not what was stored: its SHA-256 is " +
                                               digest + ", expected " + expected);
}

std::string history_regime(const RunConfig& config, const Measurement& m) {
  const std::string method = cold_method(config, m);
  return std::string(to_string(m.regime)) + (method.empty() ? "" : ": " + method);
}

void require_name(std::string_view what, std::string_view name) {
  const bool is_name =
      !name.empty() && name.size() <= kLongestName && is_letter_or_digit(name.front()) &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return is_letter_or_digit(c) || std::string_view("-_.:+").find(c) != std::string_view::npos;
      });
  if (is_name) return;
  const std::string shown(name.substr(0, kLongestName));
  throw Error(ErrorCode::invalid_argument,
              std::string(what) + " is \"" + shown +
                  "\", expected letters, digits and -_.:+, at most 80, first a letter or digit");
}

HistoryRecord record_of(const RunResult& result, std::string document) {
  require_name("the result's id", result.id);
  HistoryRecord record;
  record.document = std::move(document);
  HistoryRun& run = record.run;
  run.id = result.id;
  run.started = result.started;
  run.git_sha = result.git_sha;
  run.git_dirty = result.git_dirty;
  run.device = history_device(result);
  if (!result.devices.empty()) run.device_uuid = result.devices.front().uuid;
  run.num_cases = static_cast<int64_t>(result.cases.size());
  run.exit_code = result.exit_code;
  run.complete = result.complete;
  run.sha256 = sha256(record.document);
  std::set<std::string> ops;
  for (const CaseResult& c : result.cases) ops.insert(c.point.op());
  run.ops = fmt::format("{}", fmt::join(ops, ","));
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (const ReportRow& row : rows_of(result)) {
    if (row.measurement == nullptr || status_of(row) != Status::ok) continue;
    const Statistics& stats = row.measurement->stats;
    const std::string regime = history_regime(result.config, *row.measurement);
    const std::string runner = runner_text(row);
    const bool is_finite = std::isfinite(stats.median_ns) && std::isfinite(stats.ci_lo_ns) &&
                           std::isfinite(stats.ci_hi_ns) && stats.median_ns > 0;
    if (!is_finite || !seen.emplace(row.point->case_id, runner, regime).second) continue;
    record.points.push_back({run.id, run.started, run.device, row.point->case_id,
                             row.point->point.op(), row.point->point.to_string(), runner, regime,
                             stats.median_ns, stats.ci_lo_ns, stats.ci_hi_ns, code_of(run)});
  }
  return record;
}

std::string history_file(const std::string& where) {
  return where.starts_with(kJsonl) ? where.substr(kJsonl.size()) + "/index.jsonl"
                                   : where + "/history.sqlite";
}

bool has_history(const std::string& where) {
  return std::filesystem::exists(history_file(where));
}

std::unique_ptr<HistoryStore> open_history(const std::string& where, bool must_exist) {
  if (where.starts_with(kJsonl)) return open_jsonl_history(where.substr(kJsonl.size()), must_exist);
  return open_sqlite_history(where, must_exist);
}

namespace {

/// With numbers of one length, by which n=4 comes before n=16.
std::string with_long_numbers(const std::string& text) {
  constexpr size_t kDigits = 20;
  std::string longer;
  for (size_t i = 0; i < text.size();) {
    const size_t digits = std::min(text.find_first_not_of("0123456789", i), text.size()) - i;
    if (digits > 0 && digits < kDigits) longer.append(kDigits - digits, '0');
    longer.append(text, i, std::max<size_t>(digits, 1));
    i += std::max<size_t>(digits, 1);
  }
  return longer;
}

}  // namespace

std::vector<HistorySeries> series_of(const std::vector<HistoryPoint>& points) {
  using Key =
      std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, HistorySeries> series;
  for (const HistoryPoint& p : points) {
    HistorySeries& s =
        series[{p.op, with_long_numbers(p.axes), p.case_id, p.runner, p.regime, p.device}];
    s.last = p;
    s.medians_ns.push_back(p.median_ns);
    s.runs.push_back(p.run);
    s.codes.push_back(p.code);
  }
  std::vector<HistorySeries> all;
  for (auto& [key, s] : series) all.push_back(std::move(s));
  return all;
}

std::optional<NoiseBand> noise_band(const HistorySeries& series, int64_t most) {
  constexpr size_t kLeast = 3;
  const size_t count = std::min(series.medians_ns.size(), static_cast<size_t>(most));
  if (count < kLeast) return std::nullopt;
  const auto last = std::span(series.medians_ns).last(count);
  const auto codes = std::span(series.codes).last(count);
  std::map<std::string, std::vector<double>> by_code;
  std::vector<double> all;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(std::log(last[i]));
    by_code[codes[i]].push_back(all.back());
  }
  // Every code has a median of its own, which costs one degree of freedom.
  const bool is_of_one_code = count - by_code.size() >= kLeast - 1;
  if (!is_of_one_code) by_code = {{"", all}};
  std::vector<double> deviations;
  double widest = 0;
  for (const auto& [code, runs] : by_code) {
    add_deviations(runs, deviations);
    const auto [least, greatest] = std::minmax_element(runs.begin(), runs.end());
    widest = std::max(widest, *greatest - *least);
  }
  constexpr double kNormal = 1.4826;  // 1 / the third quartile of the normal distribution
  constexpr double kBeyond = 1.5;     // the next run may be further out than those known
  const double floor_pct = noise_floor_pct(kNormal * median(deviations));
  return NoiseBand{median(last), floor_pct, std::max(floor_pct, 100 * std::expm1(kBeyond * widest)),
                   is_of_one_code};
}

}  // namespace wide::bench
