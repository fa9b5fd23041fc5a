// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A run as a stream of lines, each written as soon as what it tells is known, so that a killed run
// or a lost machine still leaves a result, and progress can be watched. Each line is a JSON object
// whose "reason" says what it is:
//   run-started   "result": the document of bench/result.schema.json, without cases; before the
//                 first case, and again, with the cases so far behind it, where the ceilings are
//                 known later, from the first process of --isolate
//   measurement-finished
//                 "case_id", "op", "axes", "name" of a strategy or baseline, "measurement": as in
//                 that document, before the case's last checks, which may still refuse it; not of
//                 a case in a process of its own (--isolate)
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

  /// A run that begins, as a rule without cases. Returns whether it wrote anything: not if the
  /// start has been written and nothing more is known of ceilings.
  bool start(const RunResult& run);
  bool is_open() const { return fd_ >= 0; }
  /// The measurements of a strategy or baseline of a case that goes on.
  void add_timed(const CaseResult& running, const RunnerResult& timed);
  /// The last case of the run so far.
  void add(const RunResult& run);
  void finish(const RunResult& result);
  /// Why lines are missing; empty if none are.
  const std::string& trouble() const { return trouble_; }

 private:
  void write(const nlohmann::ordered_json& line);

  std::string path_, trouble_;
  int fd_ = -1;
  bool has_started_ = false, knows_ceilings_ = false;
};

/// Whether a text is such a stream.
bool are_events(std::string_view text);

/// The document of the stream's last run, incomplete if that has not finished; an unfinished last
/// line is ignored, like measurements of a case that has not finished. Throws invalid_argument for
/// a text that is not a stream.
nlohmann::ordered_json document_of_events(std::string_view text);

}  // namespace wide::bench
