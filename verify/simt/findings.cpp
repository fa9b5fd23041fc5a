// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A broken kernel makes the same finding in every thread: the first of each pair of lines says it
// all, the count says how often.
#include "verify/simt/findings.hpp"

#include "verify/simt/locations.hpp"

namespace wide::simt {

namespace {

constexpr size_t kMaxKept = 1000;

/// The file's name in it outlives the module.
Location kept(const Location& location) {
  return locations()[locations().number(location)];
}

}  // namespace

const char* name(FindingKind kind) {
  switch (kind) {
    case FindingKind::race:
      return "race";
    case FindingKind::uninitialised_read:
      return "uninitialised read";
    case FindingKind::out_of_bounds:
      return "out of bounds";
    case FindingKind::use_after_free:
      return "use after free";
    case FindingKind::misaligned:
      return "misaligned";
    case FindingKind::read_only_write:
      return "read-only write";
    case FindingKind::in_flight:
      return "in flight";
    case FindingKind::proxy:
      return "proxy";
    case FindingKind::barrier:
      return "barrier";
    case FindingKind::warp:
      return "warp";
    case FindingKind::mbarrier:
      return "mbarrier";
    case FindingKind::wgmma:
      return "wgmma";
    case FindingKind::tma:
      return "tma";
    case FindingKind::launch:
      return "launch";
    case FindingKind::deadlock:
      return "deadlock";
    case FindingKind::unfinished:
      return "unfinished";
    case FindingKind::stream_race:
      return "stream race";
    case FindingKind::programmatic_launch:
      return "programmatic launch";
    case FindingKind::host:
      return "host";
    case FindingKind::leak:
      return "leak";
  }
  return "unknown";
}

std::string to_string(const Finding& finding) {
  std::string text = std::string(name(finding.kind)) + ": " + finding.text;
  if (finding.at.file != nullptr) text += " [" + to_string(finding.at) + "]";
  if (finding.against.file != nullptr) text += " against [" + to_string(finding.against) + "]";
  return text;
}

void Findings::report(FindingKind kind, std::string text, Location at, Location against) {
  ++count_;
  std::string key = std::string(name(kind)) + "|" + to_string(at) + "|" + to_string(against);
  if (at.file == nullptr) key += "|" + text;  // the host's: no line tells them apart
  if (seen_.size() >= kMaxKept || !seen_.insert(std::move(key)).second) return;
  list_.push_back({kind, std::move(text), kept(at), kept(against)});
}

}  // namespace wide::simt
