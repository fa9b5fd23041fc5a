// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// JUnit's XML, which continuous integration shows as tests.
#pragma once

#include <cstdint>
#include <string>

#include "bench/document/result.hpp"

namespace wide::bench {

class JunitSuite {
 public:
  enum class Outcome : uint8_t { passed, failed, error, skipped };

  explicit JunitSuite(std::string name) : name_(std::move(name)) {}
  /// `type` applies to a failure or an error, `message` to all that did not pass.
  void add(const std::string& group, const std::string& name, Outcome outcome,
           const std::string& type, const std::string& message);
  /// A document of this one suite.
  std::string text() const;

 private:
  std::string name_, cases_;
  int64_t counts_[4] = {};  ///< by outcome
};

/// Every strategy and baseline of every case. Wrong or implausible ones have failed, those that
/// could not run to their end are errors, those that cannot run here were skipped.
std::string report_junit(const RunResult& result);

}  // namespace wide::bench
