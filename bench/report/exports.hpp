// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A result in the formats of other tools. All are text; JSON is UTF-8, whatever the strings.
#pragma once

#include <span>
#include <string>

#include "bench/document/result.hpp"

namespace wide::bench {

struct ExportFormat {
  const char* name;
  const char* summary;
  std::string (*write)(const RunResult&);
  bool needs_samples = false;
};
std::span<const ExportFormat> export_formats();

/// The result in that format. Throws invalid_argument if it needs samples but the result was
/// written without them.
std::string export_text(const ExportFormat& format, const RunResult& result);

struct Export {
  const ExportFormat* format = nullptr;
  std::string path;  ///< or "-"
};
/// "FORMAT=FILE"; throws invalid_argument with the nearest names.
Export parse_export(const std::string& text);

/// The rows of a table, one JSON object per line, all with the same keys except for axes: for
/// pandas' read_json(lines=True). report_csv() writes the same as columns.
std::string export_jsonl(const RunResult& result);
/// Chrome's trace events, for Perfetto: a process per case, a thread per strategy or baseline, and
/// every sample when it was taken. Cases are laid end to end, and so are, round by round, samples
/// of results from before they had the columns `order` and `t_rel_s`.
std::string export_trace(const RunResult& result);
/// As benchmark_out_format=json writes it; rounds are repetitions.
std::string export_google_benchmark(const RunResult& result);
/// customSmallerIsBetter of github-action-benchmark: medians in nanoseconds.
std::string export_github_action(const RunResult& result);

}  // namespace wide::bench
