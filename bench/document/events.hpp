// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A run as a stream of lines, each written as soon as its case has ended, so that a killed run or a
// lost machine still leaves a result, and progress can be watched. Each line is a JSON
// object whose "reason" says what it is:
//   run-started   "result": the document of bench/result.schema.json, without cases
//   case-finished "case": as in that document
//   run-finished  "result": as at the start, plus what is known only at the end
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bench/document/result.hpp"

namespace wide::bench {

/// Writes to a file, or nowhere without a path. A write error does not stop the measurement; it is
/// reported at the end.
class EventLog {
 public:
  /// Throws io where the file cannot be opened.
  explicit EventLog(const std::string& path);
  ~EventLog();
  EventLog(const EventLog&) = delete;

  /// A case of the run that `header` describes; the first one also writes the start.
  void add(const RunResult& header, const CaseResult& finished);
  void finish(const RunResult& result);
  /// Why lines are missing; empty if none are.
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

/// The document of the stream's last run, incomplete if that has not finished; an unfinished last
/// line is ignored. Throws invalid_argument for a text that is not a stream.
nlohmann::ordered_json document_of_events(std::string_view text);

}  // namespace wide::bench
