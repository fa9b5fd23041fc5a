// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/report/junit.hpp"

#include <fmt/format.h>

#include "bench/report/html.hpp"
#include "bench/report/rows.hpp"
#include "bench/report/table.hpp"

namespace wide::bench {

namespace {

/// Characters not allowed in XML 1.0 become spaces; the rest is escaped as in HTML.
std::string xml(const std::string& text) {
  return escape_html(printable(text));
}

JunitSuite::Outcome outcome_of(Status status) {
  switch (status) {
    case Status::ok:
      return JunitSuite::Outcome::passed;
    case Status::skipped:
      return JunitSuite::Outcome::skipped;
    case Status::verify_failed:
    case Status::implausible:
      return JunitSuite::Outcome::failed;
    case Status::failed:
    case Status::timeout:
    case Status::oom:
      break;
  }
  return JunitSuite::Outcome::error;
}

}  // namespace

void JunitSuite::add(const std::string& group, const std::string& name, Outcome outcome,
                     const std::string& type, const std::string& message) {
  cases_ += fmt::format("  <testcase classname=\"{}\" name=\"{}\">", xml(group), xml(name));
  const char* element = outcome == Outcome::failed ? "failure" : "error";
  if (outcome == Outcome::failed || outcome == Outcome::error)
    cases_ += fmt::format("<{} type=\"{}\" message=\"{}\"/>", element, xml(type), xml(message));
  if (outcome == Outcome::skipped) cases_ += fmt::format("<skipped message=\"{}\"/>", xml(message));
  cases_ += "</testcase>\n";
  ++counts_[static_cast<size_t>(outcome)];
}

std::string JunitSuite::text() const {
  const auto count = [this](Outcome outcome) { return counts_[static_cast<size_t>(outcome)]; };
  const int64_t failed = count(Outcome::failed), errors = count(Outcome::error),
                skipped = count(Outcome::skipped);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "skipped=\"{}\">\n{}</testsuite>\n",
      xml(name_), count(Outcome::passed) + failed + errors + skipped, failed, errors, skipped,
      cases_);
}

std::string report_junit(const RunResult& result) {
  JunitSuite suite("wbench");
  for (const ReportRow& row : rows_of(result)) {
    if (!row.opens_runner) continue;  // its regimes share its outcome
    const Status status = status_of(row);
    std::string name = row.runner == nullptr ? "" : row.runner->name + " ";
    if (row.is_baseline) name = "(" + row.runner->name + ") ";
    suite.add(row.point->point.op(), name + row.point->point.to_string(), outcome_of(status),
              std::string(to_string(status)), status_text(row) + "; " + row.point->reproduce);
  }
  return suite.text();
}

}  // namespace wide::bench
