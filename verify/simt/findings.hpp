// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the checks have found. The same pair of source lines is reported once a kind.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "verify/simt/types.hpp"

namespace wide::simt {

enum class FindingKind {
  race,  ///< two accesses of which no order is known, one of them a write
  uninitialised_read,
  out_of_bounds,
  use_after_free,
  misaligned,
  read_only_write,
  in_flight,  ///< touches what a cp.async, a bulk copy or a wgmma still owns
  proxy,      ///< generic write, asynchronous read, no fence.proxy.async in between
  barrier,
  warp,  ///< masks, divergent collectives
  mbarrier,
  wgmma,
  tma,
  launch,  ///< the launch's own arguments
  deadlock,
  unfinished,           ///< ends with asynchronous work that nobody waited for
  stream_race,          ///< two operations on streams that no event orders
  programmatic_launch,  ///< touches global memory before griddepcontrol.wait, or never waits
  host,                 ///< misuse of the runtime by host code
  leak,
};
const char* name(FindingKind kind);

struct Finding {
  FindingKind kind;
  std::string text;
  Location at, against;
};
/// "race: block (0,0,0): thread 3 ... [a.cu:12] against [a.cu:10]"
std::string to_string(const Finding& finding);

class Findings {
 public:
  /// Counts always, keeps the first of each (kind, at, against) up to a bound.
  void report(FindingKind kind, std::string text, Location at = {}, Location against = {});
  const std::vector<Finding>& list() const { return list_; }
  int64_t count() const { return count_; }
  void clear() { *this = {}; }

 private:
  std::vector<Finding> list_;
  std::set<std::string> seen_;
  int64_t count_ = 0;
};

}  // namespace wide::simt
