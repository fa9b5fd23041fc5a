// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// CSV (RFC 4180) and Markdown.
#include <fmt/format.h>

#include "bench/report/report.hpp"
#include "bench/report/rows.hpp"

namespace wide::bench {

namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string report_csv(const RunResult& result) {
  std::string text =
      "case_id,op,case,name,is_baseline,regime,status,verified,n,median_ns,mad_ns,p5_ns,p95_ns,ci_"
      "lo_ns,ci_hi_ns,"
      "flops_per_s,mem_bw_bytes_per_s,pct_of_floor,speedup_loop,speedup_streams,speedup_graph,"
      "worst_error_ratio,"
      "worst_member,reason\r\n";
  for (const ReportRow& row : rows_of(result)) {
    const RunnerResult none;
    const Measurement empty;
    const RunnerResult& r = row.runner == nullptr ? none : *row.runner;
    const bool is_timed = row.measurement != nullptr;
    const Measurement& m = is_timed ? *row.measurement : empty;
    const auto time = [&](double value) {
      return is_timed ? fmt::format("{}", value) : std::string();
    };
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", row.point->case_id,
                        row.point->point.op(), quoted(row.point->point.to_string()), r.name,
                        row.is_baseline, is_timed ? to_string(m.regime) : "",
                        to_string(status_of(row)), r.verified, m.stats.n, time(m.stats.median_ns),
                        time(m.stats.mad_ns), time(m.stats.p5_ns), time(m.stats.p95_ns),
                        time(m.stats.ci_lo_ns), time(m.stats.ci_hi_ns), number(m.flops_per_s),
                        number(m.mem_bw_bytes_per_s), number(m.pct_of_floor));
    for (const Speedup* s : row.speedups)
      text += "," + (s == nullptr ? "" : number(s->speedup_ratio));
    text += fmt::format(",{},{},{}\r\n", number(r.verify.worst_error_ratio), r.verify.worst_member,
                        quoted(row.runner == nullptr ? row.point->reason : r.reason));
  }
  return text;
}

std::string report_markdown(const RunResult& result) {
  std::string text;
  for (const DeviceInfo& d : result.devices)
    text += fmt::format("Device: {}, {}; {}\n\n", to_string(d.device), d.name, result.started);
  text +=
      "| op | case | strategy | regime | time | of floor | vs loop | vs streams | vs graph | "
      "err/tol | status |\n"
      "|---|---|---|---|---:|---:|---:|---:|---:|---:|---|\n";
  for (const ReportRow& row : rows_of(result)) {
    const bool is_timed = row.measurement != nullptr;
    text += fmt::format("| {} | {} | {} | {} | {} | {} |", row.point->point.op(),
                        escaped(row.point->point.to_string()),
                        row.runner == nullptr ? ""
                        : row.is_baseline     ? "(" + row.runner->name + ")"
                                              : row.runner->name,
                        is_timed ? to_string(row.measurement->regime) : "",
                        is_timed ? format_time(row.measurement->stats.median_ns) : "",
                        is_timed && row.measurement->pct_of_floor
                            ? fmt::format("{:.0f}%", *row.measurement->pct_of_floor)
                            : "");
    for (const Speedup* s : row.speedups) {
      if (s != nullptr && s->speedup_ratio) text += fmt::format(" {:.2f}", *s->speedup_ratio);
      if (s != nullptr && s->ci_lo && s->ci_hi)
        text += fmt::format(" [{:.2f}, {:.2f}]", *s->ci_lo, *s->ci_hi);
      text += " |";
    }
    text += fmt::format(" {} | {} |\n", row.runner == nullptr ? "" : error_text(*row.runner),
                        escaped(status_text(row)));
  }
  return text;
}

}  // namespace wide::bench
