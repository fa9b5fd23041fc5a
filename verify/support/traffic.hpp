// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a strategy's launches ask of memory, operand by operand, as the simulated GPU counts it, and
// the bar for it.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "bench/process/simulation.hpp"
#include "bench/run/runner.hpp"
#include "verify/support/session.hpp"
#include "wide/catalog.hpp"

namespace wide::test {

/// What may be asked for of a streamed operand, over the bytes of it that are used at all.
constexpr double kAlignedBar = 1.03, kRaggedBar = 1.15;
/// An operand is streamed if it is no smaller than this against the largest. What is smaller is a
/// parameter, which every row or channel asks for again: L1 serves that, not memory.
constexpr double kStreamedShare = 1.0 / 16;
constexpr double kSectorBytes = 32;

/// The streamed operand that is asked for the most, of all launches, reading and writing apart.
struct Worst {
  double ratio = 0;
  std::string where;
};

inline Worst worst_streamed(const std::vector<bench::LaunchCounters>& launches) {
  Worst worst;
  REQUIRE(!launches.empty());
  for (const bench::LaunchCounters& launch : launches) {
    double largest = 0;
    for (const char* which : {"unique_read_bytes", "unique_write_bytes"}) {
      for (const bench::LaunchCounters::Buffer& buffer : launch.buffers)
        largest = std::max(largest, static_cast<double>(bench::value_of(buffer.values, which)));
    }
    REQUIRE(largest > 0);
    for (const bench::LaunchCounters::Buffer& buffer : launch.buffers) {
      const auto look_at = [&](const char* used_name, const char* sectors_name) {
        const auto used = static_cast<double>(bench::value_of(buffer.values, used_name));
        const auto sectors = static_cast<double>(bench::value_of(buffer.values, sectors_name));
        const double ratio = used > 0 ? kSectorBytes * sectors / used : 0;
        if (used < kStreamedShare * largest || ratio <= worst.ratio) return;
        worst = {ratio, launch.kernel + ": " + sectors_name + " of " + buffer.name};
      };
      look_at("unique_read_bytes", "read_sectors");
      look_at("unique_write_bytes", "write_sectors");
    }
  }
  return worst;
}

/// Of a strategy as wbench names it, "simt" or "simt:m16n64".
inline std::vector<bench::LaunchCounters> launches_of(Session& session, catalog::Workload& workload,
                                                      std::string_view strategy) {
  const catalog::Prepared prepared = workload.prepare(bench::plan_options(std::string(strategy)));
  bench::forget_launches();
  Tensor scratch(session.context(), Dtype::uint8, {prepared.workspace_bytes});
  prepared.run({session.stream(), {scratch.data(), scratch.bytes()}});
  session.context().synchronize(session.stream());
  return bench::counted_launches();
}

/// The points with every word of the axis, where there is one.
inline std::vector<catalog::Case> with_words_of(const catalog::PrimitiveSpec& spec,
                                                std::string_view name,
                                                const std::vector<catalog::Case>& points) {
  const auto axis = std::find_if(spec.axes.begin(), spec.axes.end(),
                                 [&](const catalog::AxisInfo& info) { return info.name == name; });
  if (axis == spec.axes.end()) return points;
  std::vector<catalog::Case> cases;
  for (const catalog::Case& point : points) {
    for (const std::string_view word : axis->words) {
      std::vector<catalog::Case::Entry> entries(point.entries().begin(), point.entries().end());
      for (catalog::Case::Entry& entry : entries) {
        if (entry.name == name) entry = {entry.name, std::string(word), false};
      }
      cases.emplace_back(point.op(), std::move(entries));
    }
  }
  return cases;
}

}  // namespace wide::test
