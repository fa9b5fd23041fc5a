// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A run as a stream of lines, each written when its case has ended: what a kill or a lost machine
// leaves behind is a result, and whoever watches need not wait for the end. Each line is a JSON
// object whose "reason" says what it is:
//   run-started   "result": the document of bench/result.schema.json, without cases
//   case-finished "case": as in that document
//   run-finished  "result": as at the start, with what only the end knows
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bench/result.hpp"

namespace wide::bench {

/// Writes to a file, or to nothing where there is no path. What cannot be written costs no
/// measurement: it is told at the end.
class EventLog {
 public:
  /// Throws io where the file cannot be opened.
  explicit EventLog(const std::string& path);
  ~EventLog();
  EventLog(const EventLog&) = delete;

  /// A case of the run that `header` describes; the first one brings the start along.
  void add(const RunResult& header, const CaseResult& finished);
  void finish(const RunResult& result);
  /// Why lines are missing; empty where none are.
  const std::string& trouble() const { return trouble_; }

 private:
  void start(const RunResult& header);
  void write(const nlohmann::ordered_json& line);

  std::string path_, trouble_;
  int fd_ = -1;
  bool has_started_ = false;
};

/// Whether a text is such a stream.
bool are_events(std::string_view text);

/// The document of the last run that the stream tells of, incomplete where that has not finished; a
/// last line without an end is left out. Throws invalid_argument for what is no stream.
nlohmann::ordered_json document_of_events(std::string_view text);

}  // namespace wide::bench
