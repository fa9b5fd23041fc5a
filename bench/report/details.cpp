// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/details.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "bench/report/report.hpp"
#include "host/core/text.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

template <class Value, class Format>
Cell known(const std::optional<Value>& value, const Format& format) {
  return {value ? format(*value) : std::string()};
}

/// A launch by the host may take less than the device's own: then the device was the bottleneck.
std::string signed_time(double ns) {
  return ns < 0 ? "-" + format_time(-ns) : format_time(ns);
}

std::string energy_text(double joules) {
  return joules < 1e-3 ? significant(joules * 1e6) + " uJ"
         : joules < 1  ? significant(joules * 1e3) + " mJ"
                       : significant(joules) + " J";
}

std::string percent(double value) {
  return fmt::format("{:.1f}%", value);
}

/// Invalid energy shows its reason instead.
Cell energy_cell(const Measurement& m) {
  if (!m.energy) return {};
  if (!m.energy->invalid_reason.empty()) return {m.energy->invalid_reason, Tone::bad, "invalid"};
  return known(m.energy->joules_per_call, energy_text);
}

Cell throttle_cell(const Measurement& m) {
  std::string text = m.discarded_throttle > 0 ? std::to_string(m.discarded_throttle) : "";
  if (!m.clocks) return {text};
  const std::string reasons = fmt::format("{}", fmt::join(m.clocks->throttle_reasons, " "));
  if (text.empty()) return {reasons};
  return {text + (reasons.empty() ? "" : " (" + reasons + ")"), Tone::bad, text};
}

/// All of them, or the first one and the number of others.
Cell doubts_cell(const Measurement& m) {
  const std::vector<std::string> doubts = m.stats.doubts.value_or(std::vector<std::string>());
  if (doubts.size() < 2) return {doubts.empty() ? "" : doubts.front()};
  return {fmt::format("{}", fmt::join(doubts, " ")), Tone::plain,
          fmt::format("{} +{}", doubts.front(), doubts.size() - 1)};
}

std::string cache_text(const Measurement& m) {
  if (m.regime != Regime::cold) return "";
  const std::string copies = fmt::format("{} copies", m.buffers_rotated);
  if (m.cache == Cache::rotate) return copies;
  return std::string(to_string(m.cache)) + (m.buffers_rotated > 1 ? ", " + copies : "");
}

std::string items_text(double per_second) {
  if (per_second < 999.5) return significant(per_second) + "/s";
  if (per_second < 999.5e3) return significant(per_second / 1e3) + " k/s";
  return format_rate(per_second, "/s");
}

Cell case_cell(const ReportRow& row, const CommonAxes& axes, const CaseResult*& last) {
  const bool opens = last != row.point;
  last = row.point;
  return {opens ? axes.rest_of(row.point->point) : ""};
}

/// The tightest limit among a call's kernels.
std::optional<double> least_occupancy(const RunnerResult& runner) {
  std::optional<double> least;
  for (const KernelUse& k : runner.kernels)
    least = least ? std::min(*least, k.occupancy_pct) : k.occupancy_pct;
  return least;
}

std::optional<int64_t> most_registers(const RunnerResult& runner) {
  std::optional<int64_t> most;
  for (const KernelUse& k : runner.kernels) {
    if (k.registers) most = std::max(most.value_or(0), *k.registers);
  }
  return most;
}

template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string bytes_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return size < 1e3   ? fmt::format("{} B", bytes)
         : size < 1e6 ? significant(size / 1e3) + " kB"
         : size < 1e9 ? significant(size / 1e6) + " MB"
                      : significant(size / 1e9) + " GB";
}

std::string extents_text(const std::vector<int64_t>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

std::string kernel_name(std::string name) {
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr), &std::free);
  if (plain) name = plain.get();
  for (const std::string_view part :
       {"wide::kernels::", "wide::", "(anonymous namespace)::", "void "}) {
    for (size_t at = name.find(part); at != std::string::npos; at = name.find(part))
      name.erase(at, part.size());
  }
  return name;
}

Table details_table(const std::vector<ReportRow>& rows, const std::string& op,
                    const CommonAxes& axes, const Shown& shown) {
  constexpr int kAlways = Column::kNeverDropped;
  Table table({{"case", false, kAlways}, {"strategy", false, kAlways}, {"regime", false, 8},
               {"launches", true, 6},    {"enqueue", true, 7},         {"per launch", true, 7},
               {"items", true, 3},       {"bound", false, 3},          {"cache", false, 4},
               {"energy", true, 6},      {"power", true, 5},           {"SM clock", true, 6},
               {"throttled", true, 6},   {"rounds", true, 3},          {"trend", true, 2},
               {"autocorr", true, 1},    {"workspace", true, 3},       {"memory", true, 3},
               {"plan", true, 2},        {"first call", true, 2},      {"stopped by", false, 4},
               {"doubts", false, 3}});
  const auto integer = [](int64_t value) { return std::to_string(value); };
  const auto watts = [](double value) { return fmt::format("{:.0f} W", value); };
  const CaseResult* last = nullptr;
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op || row.measurement == nullptr || !shown.contains(&row))
      continue;
    const Measurement& m = *row.measurement;
    const RunnerResult& r = *row.runner;
    const auto clock = [&](const Clocks& c) { return fmt::format("{:.0f} MHz", c.sm_mhz_median); };
    const std::optional<double> power = m.energy && m.energy->avg_w ? m.energy->avg_w
                                        : m.clocks                  ? m.clocks->power_w
                                                                    : std::nullopt;
    table.add(
        {case_cell(row, axes, last),
         {runner_text(row), row.is_baseline ? Tone::dim : Tone::plain},
         {std::string(to_string(m.regime))},
         known(r.launches_per_call, integer),
         known(m.enqueue_ns_per_call, format_time),
         known(m.launch_overhead_ns_per_launch, signed_time),
         known(m.items_per_s, items_text),
         {m.roofline_bound},
         {cache_text(m)},
         energy_cell(m),
         known(power, watts),
         known(m.clocks, clock),
         throttle_cell(m),
         known(m.stats.between_round_cv_pct, percent),
         known(m.stats.trend_pct_per_s, [](double v) { return fmt::format("{:+.2g}%/s", v); }),
         known(m.stats.autocorr_lag1, [](double v) { return fmt::format("{:+.2f}", v); }),
         {r.workspace_bytes > 0 ? bytes_text(r.workspace_bytes) : ""},
         known(r.peak_device_bytes, bytes_text),
         known(r.plan_ns, format_time),
         known(r.first_call_ns, format_time),
         {m.stop_reason},
         doubts_cell(m)});
  }
  return table;
}

Table kernels_table(const std::vector<ReportRow>& rows, const std::string& op,
                    const CommonAxes& axes, const Shown& shown) {
  constexpr int kAlways = Column::kNeverDropped, kNameCap = 32;
  Table table({{"case", false, kAlways},
               {"strategy", false, kAlways},
               {"kernel", false, kAlways, kNameCap},
               {"grid", true, 4},
               {"block", true, 4},
               {"registers", true, 8},
               {"shared", true, 7},
               {"local", true, 6},
               {"blocks/SM", true, 6},
               {"occupancy", true, 8}});
  const CaseResult* last = nullptr;
  for (const ReportRow& row : rows) {
    if (row.point->point.op() != op || row.runner == nullptr || !row.opens_runner ||
        !shown.contains(&row))
      continue;
    bool is_first = true;
    for (const KernelUse& k : row.runner->kernels) {
      const int64_t shared = k.static_shared_bytes + k.dynamic_shared_bytes;
      table.add({case_cell(row, axes, last),
                 {is_first ? runner_text(row) : "", row.is_baseline ? Tone::dim : Tone::plain},
                 {kernel_name(k.name)},
                 {extents_text(k.grid)},
                 {extents_text(k.block)},
                 known(k.registers, [](int64_t value) { return std::to_string(value); }),
                 {shared > 0 ? bytes_text(shared) : ""},
                 {k.local_bytes > 0 ? bytes_text(k.local_bytes) : ""},
                 {std::to_string(k.blocks_per_sm)},
                 {fmt::format("{:.0f}%", k.occupancy_pct)}});
      is_first = false;
    }
  }
  return table;
}

std::string method_text(const RunResult& result) {
  const RunConfig& c = result.config;
  std::string text = fmt::format(
      "method: warm-up {:g} s, clocks within {:g}%; {} order, at least {}; stop by {}, "
      "{:g}%",
      c.warmup_s, c.clock_tol_pct, c.interleave, counted(c.rounds, "round"), c.stop,
      c.stop == "stdrel" ? c.max_noise_pct : c.target_ci_pct);
  text += fmt::format("; throttled samples: {}, below {:g}%", c.throttle, c.throttle_pct);
  if (result.locked_clocks) {
    const LockedClocks& locked = *result.locked_clocks;
    text += fmt::format("; clocks locked: {}", locked.asked);
    if (locked.sm_mhz) text += fmt::format(", {:g} MHz", *locked.sm_mhz);
  }
  text += "\n";
  if (!result.note.empty()) text += "note: " + printable(result.note) + "\n";
  for (const auto& [name, value] : result.context)
    text += fmt::format("{}: {}\n", printable(name), printable(value));
  for (const RunDevice& d : result.devices) {
    if (!d.uuid.empty())
      text += fmt::format("{}: {}, PCI {}\n", to_string(d.device), d.uuid, d.pci_bus_id);
  }
  return text;
}

void add_details(const ReportRow& row, Json& flat) {
  const RunnerResult no_runner;
  const Measurement no_measurement;
  const RunnerResult& r = row.runner == nullptr ? no_runner : *row.runner;
  const bool is_timed = row.measurement != nullptr;
  const Measurement& m = is_timed ? *row.measurement : no_measurement;
  const Energy energy = m.energy.value_or(Energy());
  const auto clock = [&](auto member) {
    return m.clocks ? json_of(std::optional((*m.clocks).*member)) : Json(nullptr);
  };
  flat["launches_per_call"] = json_of(r.launches_per_call);
  flat["enqueue_ns_per_call"] = json_of(m.enqueue_ns_per_call);
  flat["launch_overhead_ns_per_launch"] = json_of(m.launch_overhead_ns_per_launch);
  flat["joules_per_call"] =
      energy.invalid_reason.empty() ? json_of(energy.joules_per_call) : Json(nullptr);
  flat["avg_w"] = json_of(energy.avg_w);
  flat["sm_mhz_median"] = clock(&Clocks::sm_mhz_median);
  flat["sm_mhz_min"] = clock(&Clocks::sm_mhz_min);
  flat["discarded_throttle"] = is_timed ? Json(m.discarded_throttle) : Json(nullptr);
  flat["cache"] = is_timed ? Json(to_string(m.cache)) : Json(nullptr);
  flat["buffers_rotated"] = is_timed ? Json(m.buffers_rotated) : Json(nullptr);
  flat["workspace_bytes"] = row.runner == nullptr ? Json(nullptr) : Json(r.workspace_bytes);
  flat["peak_device_bytes"] = json_of(r.peak_device_bytes);
  flat["plan_ns"] = json_of(r.plan_ns);
  flat["first_call_ns"] = json_of(r.first_call_ns);
  flat["max_registers"] = json_of(most_registers(r));
  flat["min_occupancy_pct"] = json_of(least_occupancy(r));
  flat["stop_reason"] = m.stop_reason;
  flat["modes"] = m.stats.dip ? Json(m.stats.dip->modes()) : Json(nullptr);
  flat["dip_p"] = m.stats.dip ? Json(m.stats.dip->p) : Json(nullptr);
  flat["reliable"] = m.stats.doubts ? Json(m.stats.doubts->empty()) : Json(nullptr);
  flat["doubts"] =
      fmt::format("{}", fmt::join(m.stats.doubts.value_or(std::vector<std::string>()), " "));
  flat["pct_of_mem_peak"] = json_of(m.pct_of_mem_peak);
  flat["pct_of_flop_peak"] = json_of(m.pct_of_flop_peak);
  flat["roofline_bound"] = m.roofline_bound;
}

}  // namespace wide::bench
