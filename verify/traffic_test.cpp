// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The gate of performance where no GPU is: every hand-written strategy keeps what its entry in the
// catalogue promises about memory traffic and bank conflicts, in the first case of the preset ci,
// in every dtype and format of weights, as the simulated GPU counts it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "bench/expand.hpp"
#include "bench/simulation.hpp"
#include "verify/support/session.hpp"
#include "verify/support/simulation.hpp"
#include "wide/catalog.hpp"

namespace wide::test {
namespace {

using bench::LaunchCounters;
using bench::value_of;

struct Counted {
  double requested = 0, reread = 0, passes = 0, lost = 0;
};

Counted count(const std::vector<LaunchCounters>& launches) {
  constexpr double kSectorBytes = 32;
  Counted counted;
  const auto add = [](double& sum, const LaunchCounters::Values& values, const char* name) {
    sum += static_cast<double>(value_of(values, name));
  };
  for (const LaunchCounters& launch : launches) {
    for (const LaunchCounters::Buffer& buffer : launch.buffers) {
      double sectors = 0;
      add(sectors, buffer.values, "read_sectors");
      add(sectors, buffer.values, "write_sectors");
      counted.requested += kSectorBytes * sectors;
      add(counted.reread, buffer.values, "reread_bytes");
    }
    for (const char* name : {"shared_load_passes", "shared_store_passes", "matrix_passes"})
      add(counted.passes, launch.values, name);
    for (const char* name : {"shared_load_extra", "shared_store_extra", "matrix_extra"})
      add(counted.lost, launch.values, name);
  }
  return counted;
}

/// The case, or with hardly any rows or one x for all members where that is what the strategy is
/// for; with one batch row where more would take the simulated GPU long.
std::unique_ptr<catalog::Workload> workload_of(Session& session, const catalog::PrimitiveSpec& spec,
                                               const catalog::StrategyInfo& info,
                                               const catalog::Case& point) {
  auto workload = spec.make_workload(session.context(), point, {});
  const std::string reason = workload->unsupported_reason(info.name);
  const bool wants_few_rows = reason.find("rows per member") != std::string::npos;
  const bool wants_one_x = reason.find("inputs of their own") != std::string::npos;
  const bool wants_one_row = workload->cost().flops > 1e9;
  if (!wants_few_rows && !wants_one_x && !wants_one_row) return workload;
  std::vector<catalog::Case::Entry> entries(point.entries().begin(), point.entries().end());
  for (catalog::Case::Entry& entry : entries) {
    if (wants_few_rows && entry.name == "batch") entry.value = int64_t{4};
    if (wants_one_row && entry.name == "batch") entry.value = int64_t{1};
    if (wants_one_x && entry.name == "shared") entry.value = std::string("yes");
  }
  return spec.make_workload(session.context(), catalog::Case(point.op(), std::move(entries)), {});
}

/// Whether the strategy runs the case.
bool check_case(Session& session, const catalog::PrimitiveSpec& spec,
                const catalog::StrategyInfo& info, const catalog::Case& point) {
  INFO(spec.name << " " << info.name << ": " << point.to_string());
  const auto workload = workload_of(session, spec, info, point);
  if (!workload->unsupported_reason(info.name).empty()) return false;
  const catalog::Prepared prepared = workload->prepare(info.name);
  bench::forget_launches();
  const Tensor scratch(session.context(), Dtype::uint8, {prepared.workspace_bytes});
  prepared.run({session.stream(), {scratch.data(), scratch.bytes()}});
  session.context().synchronize(session.stream());
  const Counted counted = count(bench::counted_launches());
  const double minimum = workload->cost().bytes();
  REQUIRE(minimum > 0);
  CHECK(counted.requested >= 0.5 * minimum);  // else nothing was counted
  CHECK((counted.requested - counted.reread) / minimum <= info.traffic.streamed);
  CHECK(counted.reread / minimum <= info.traffic.rereads);
  CHECK(counted.lost <= info.traffic.bank_conflicts * counted.passes);
  return true;
}

/// The points with every word of the axis, where there is one.
std::vector<catalog::Case> with_words_of(const catalog::PrimitiveSpec& spec, std::string_view name,
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

/// The case with one member or batch row where it would take the simulated GPU minutes: what is
/// asked for of each byte stays the same.
catalog::Case affordable(const catalog::PrimitiveSpec& spec, catalog::Case point) {
  constexpr double kMostFlops = 2e8;
  for (const std::string_view axis : {"n", "batch"}) {
    if (spec.make_workload(Context::cpu(), point, {})->cost().flops <= kMostFlops) break;
    std::vector<catalog::Case::Entry> entries(point.entries().begin(), point.entries().end());
    for (catalog::Case::Entry& entry : entries) {
      if (entry.name == axis) entry.value = int64_t{1};
    }
    point = catalog::Case(point.op(), std::move(entries));
  }
  return point;
}

/// The first point of preset ci, in every dtype, format, mode, broadcast, layout and form.
std::vector<catalog::Case> cases_of(const catalog::PrimitiveSpec& spec) {
  const auto ci = std::find_if(spec.sweeps.begin(), spec.sweeps.end(),
                               [](const catalog::Sweep& sweep) { return sweep.name == "ci"; });
  REQUIRE(ci != spec.sweeps.end());
  std::vector<catalog::Case> cases{affordable(spec, bench::expand(spec, *ci, {}).cases.front())};
  for (const char* axis : {"dtype", "weights", "mode", "broadcast", "layout", "form"}) {
    cases = with_words_of(spec, axis, cases);
  }
  return cases;
}

}  // namespace

TEST_CASE("hand-written strategies keep to the traffic that the catalogue declares") {
  require_simulation();
  Session session(Context::cuda(0));
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    for (const catalog::StrategyInfo& info : spec->strategies) {
      if (info.device != DeviceType::cuda || info.kind != catalog::StrategyKind::hand_written)
        continue;
      int64_t num_checked = 0;
      for (const catalog::Case& point : cases_of(*spec)) {
        num_checked += check_case(session, *spec, info, point) ? 1 : 0;
      }
      INFO(spec->name << " " << info.name << ": its traffic was looked at in no dtype");
      CHECK(num_checked > 0);
    }
  }
}

}  // namespace wide::test
