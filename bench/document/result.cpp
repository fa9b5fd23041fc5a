// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/result.hpp"

#include <fmt/format.h>

namespace wide::bench {

std::string cold_method(const RunConfig& config, const Measurement& m, bool names_buffers) {
  if (m.regime != Regime::cold) return "";
  if (m.cache != Cache::rotate) {
    return fmt::format("{} of {:g} x L2{}", to_string(m.cache), config.l2_factor,
                       m.buffers_rotated > 1 ? ", calls on copies" : "");
  }
  const std::string rotation = fmt::format("rotation over {:g} x L2", config.l2_factor);
  return names_buffers ? fmt::format("{}, {} buffers", rotation, m.buffers_rotated) : rotation;
}

std::string_view to_string(Regime regime) {
  switch (regime) {
    case Regime::stream:
      return "stream";
    case Regime::graph:
      return "graph";
    case Regime::cpu:
      return "cpu";
    case Regime::cold:
      return "cold";
  }
  return "?";
}

std::string_view to_string(Cache cache) {
  switch (cache) {
    case Cache::warm:
      return "warm";
    case Cache::flush:
      return "flush";
    case Cache::rotate:
      return "rotate";
    case Cache::automatic:
      return "auto";
  }
  return "?";
}

std::string_view to_string(Baseline baseline) {
  switch (baseline) {
    case Baseline::loop:
      return "loop";
    case Baseline::streams:
      return "streams";
    case Baseline::graph:
      return "graph";
    case Baseline::peer:
      return "peer";
  }
  return "?";
}

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::failed:
      return "failed";
    case Status::skipped:
      return "skipped";
    case Status::verify_failed:
      return "verify_failed";
    case Status::implausible:
      return "implausible";
    case Status::timeout:
      return "timeout";
    case Status::oom:
      return "oom";
  }
  return "?";
}

int64_t value_of(const LaunchCounters::Values& values, std::string_view name) {
  for (const auto& [known, value] : values) {
    if (known == name) return value;
  }
  return 0;
}

}  // namespace wide::bench
