// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// JUnit's XML, which continuous integration shows as tests.
#pragma once

#include <cstdint>
#include <string>

#include "bench/result.hpp"

namespace wide::bench {

class JunitSuite {
 public:
  enum class Outcome : uint8_t { passed, failed, error, skipped };

  explicit JunitSuite(std::string name) : name_(std::move(name)) {}
  /// `type` is of a failure or an error, `message` of all that did not pass.
  void add(const std::string& group, const std::string& name, Outcome outcome,
           const std::string& type, const std::string& message);
  /// A document of the one suite.
  std::string text() const;

 private:
  std::string name_, cases_;
  int64_t counts_[4] = {};  ///< by outcome
};

/// Every strategy and baseline of every case. What was wrong or implausible has failed, what could
/// not run to its end is an error, what cannot run here was skipped.
std::string report_junit(const RunResult& result);

}  // namespace wide::bench
