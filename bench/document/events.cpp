// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/events.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bench/document/json_field.hpp"
#include "bench/document/json_number.hpp"
#include "bench/document/measurement_json.hpp"
#include "bench/document/result_json.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

Json without_cases(const RunResult& result) {
  RunResult header = result;
  header.cases.clear();
  return to_json(header);
}

Json document_of(const CaseResult& finished) {
  RunResult one;
  one.cases.push_back(finished);
  return to_json(one).at("cases").at(0);
}

}  // namespace

EventLog::EventLog(const std::string& path) : path_(path) {
  if (path.empty()) return;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw Error(ErrorCode::io, "cannot write " + path + ": " + std::strerror(errno));
}

EventLog::~EventLog() {
  if (fd_ >= 0) ::close(fd_);
}

void EventLog::write(const Json& line) {
  const std::string text = dumped(line, -1);
  std::string_view rest = text;
  while (!rest.empty() && trouble_.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      trouble_ = "cannot write " + path_ + ": " + std::strerror(errno);
      return;  // the rest of a partial line would be read as a line
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

bool EventLog::start(const RunResult& run) {
  const bool knows_more = !knows_ceilings_ && run.calibration != Calibration();
  if (fd_ < 0 || (has_started_ && !knows_more)) return false;
  write({{"reason", "run-started"}, {"result", without_cases(run)}});
  for (const CaseResult& finished : run.cases)
    write({{"reason", "case-finished"}, {"case", document_of(finished)}});
  has_started_ = true;
  knows_ceilings_ = run.calibration != Calibration();
  return true;
}

void EventLog::add_timed(const CaseResult& running, const RunnerResult& timed) {
  if (fd_ < 0) return;
  for (const Measurement& m : timed.measurements) {
    if (m.samples_ns.empty()) continue;
    write({{"reason", "measurement-finished"},
           {"case_id", running.case_id},
           {"op", running.point.op()},
           {"axes", running.point.to_string()},
           {"name", timed.name},
           {"measurement", measurement_json(m)}});
  }
}

void EventLog::add(const RunResult& run) {
  if (fd_ >= 0 && !start(run))
    write({{"reason", "case-finished"}, {"case", document_of(run.cases.back())}});
}

void EventLog::finish(const RunResult& result) {
  if (fd_ < 0) return;
  if (!has_started_) (void)start(result);
  write({{"reason", "run-finished"}, {"result", without_cases(result)}});
}

bool are_events(std::string_view text) {
  return text.starts_with("{\"reason\":");
}

Json document_of_events(std::string_view text) {
  Json document, cases = Json::array();
  for (size_t begin = 0, number = 1;; ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;
    const std::string where = "events, line " + std::to_string(number);
    try {
      Json line = parse_json(where, text.substr(begin, end - begin));
      const auto reason = line.at("reason").get<std::string>();
      if (reason == "run-started") {
        document = std::move(line.at("result"));
        cases = Json::array();
      } else if (reason == "case-finished") {
        cases.push_back(std::move(line.at("case")));
      } else if (reason == "run-finished") {
        document = std::move(line.at("result"));
      }
    } catch (const nlohmann::json::exception& error) {
      throw Error(ErrorCode::invalid_argument, where + ": " + error.what());
    }
    begin = end + 1;
  }
  if (!document.is_object())
    throw Error(ErrorCode::invalid_argument, "events: no run has started, expected run-started");
  document["cases"] = std::move(cases);
  return document;
}

}  // namespace wide::bench
