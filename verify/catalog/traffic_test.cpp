// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The gate of performance where no GPU is: every hand-written strategy keeps what its entry in the
// catalogue promises about memory traffic and bank conflicts, in the first case of the preset ci,
// in every dtype and format of weights, as the simulated GPU counts it; and what is bound by memory
// keeps to one bar for each large operand, in that case and where nothing is a multiple of 16
// bytes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "bench/cases/expand.hpp"
#include "bench/process/simulation.hpp"
#include "verify/support/session.hpp"
#include "verify/support/simulation.hpp"
#include "verify/support/traffic.hpp"
#include "wide/catalog.hpp"

namespace wide::test {
namespace {

using bench::LaunchCounters;
using bench::value_of;

/// Of passes of shared memory, so many more may be lost where runs begin anywhere within 16 bytes.
constexpr double kRaggedConflicts = 0.13;
/// Where 16 bytes of y are of several images: of 3x3 all are, and are put together one by one.
constexpr double kSmallImageConflicts = 0.32;
/// Windows of odd rows, which are read one by one, at a stride of two: two of fp32's lie in one
/// bank, and two of 16 bits where a warp has two rows. There are few other accesses.
constexpr double kRaggedWindowConflicts = 0.64;
struct Counted {
  double requested = 0, reread = 0, passes = 0, lost = 0;
};

Counted count(const std::vector<LaunchCounters>& launches) {
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

/// The case, or with hardly any rows, one query on many keys or one x for all members where that is
/// what the strategy is for; with one batch row where more would take the simulated GPU long.
std::unique_ptr<catalog::Workload> workload_of(Session& session, const catalog::PrimitiveSpec& spec,
                                               const catalog::StrategyInfo& info,
                                               const catalog::Case& point) {
  auto workload = spec.make_workload(session.context(), point, {});
  const std::string reason = workload->unsupported_reason(info.name);
  const bool wants_few_rows = reason.find("rows per member") != std::string::npos;
  const bool wants_one_x = reason.find("inputs of their own") != std::string::npos;
  const bool wants_one_query = reason.find("queries that share keys") != std::string::npos;
  const bool wants_rounded = reason.find("allow_rounded_weights does not") != std::string::npos;
  const bool wants_one_row = workload->cost().flops > 1e9;
  if (!wants_few_rows && !wants_one_x && !wants_one_query && !wants_one_row && !wants_rounded) {
    return workload;
  }
  std::vector<catalog::Case::Entry> entries(point.entries().begin(), point.entries().end());
  for (catalog::Case::Entry& entry : entries) {
    if (wants_few_rows && entry.name == "batch") entry.value = int64_t{4};
    if (wants_one_row && entry.name == "batch") entry.value = int64_t{1};
    if (wants_one_query && entry.name == "seq") entry.value = int64_t{1};
    if (wants_one_query && entry.name == "kv_seq") entry.value = int64_t{1100};  // two parts
    if (wants_one_x && entry.name == "shared") entry.value = std::string("yes");
    if (wants_rounded && entry.name == "rounded") entry.value = std::string("yes");
  }
  return spec.make_workload(session.context(), catalog::Case(point.op(), std::move(entries)), {});
}

const catalog::Traffic& traffic_of(const catalog::StrategyInfo& info, const catalog::Case& point) {
  const auto entries = point.entries();
  const bool is_last = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.name == "layout" && entry.value == catalog::AxisValue(std::string("last"));
  });
  return is_last && info.traffic_channels_last ? *info.traffic_channels_last : info.traffic;
}

/// Whether the strategy runs the case.
bool check_case(Session& session, const catalog::PrimitiveSpec& spec,
                const catalog::StrategyInfo& info, const catalog::Case& point) {
  INFO(spec.name << " " << info.name << ": " << point.to_string());
  const auto workload = workload_of(session, spec, info, point);
  if (!workload->unsupported_reason(info.name).empty()) return false;
  const auto launches = launches_of(session, *workload, info.name);
  const Counted counted = count(launches);
  const double minimum = workload->cost().bytes();
  REQUIRE(minimum > 0);
  CHECK(counted.requested >= 0.5 * minimum);  // else nothing was counted
  const catalog::Traffic& traffic = traffic_of(info, point);
  CHECK((counted.requested - counted.reread) / minimum <= traffic.streamed);
  CHECK(counted.reread / minimum <= traffic.rereads);
  CHECK(counted.lost <= traffic.bank_conflicts * counted.passes);
  if (traffic.is_memory_bound) {
    const Worst worst = worst_streamed(launches);
    INFO(worst.where);
    CHECK(worst.ratio <= kAlignedBar);
  }
  return true;
}

/// Packed operands that begin one element behind 16 bytes; `conflicts`: of passes of shared memory,
/// so many more may be lost.
void check_ragged_case(Session& session, const catalog::PrimitiveSpec& spec,
                       const catalog::StrategyInfo& info, const catalog::Case& point,
                       double conflicts) {
  INFO(spec.name << " " << info.name << ", ragged: " << point.to_string());
  catalog::WorkloadOptions options;
  options.misalign_elements = 1;
  const auto workload = spec.make_workload(session.context(), point, options);
  REQUIRE(workload->unsupported_reason(info.name).empty());
  const auto launches = launches_of(session, *workload, info.name);
  const Worst worst = worst_streamed(launches);
  INFO(worst.where);
  CHECK(worst.ratio <= kRaggedBar);
  const Counted counted = count(launches);
  CHECK(counted.lost <= (info.traffic.bank_conflicts + conflicts) * counted.passes);
}

/// The case with one member or batch row where it would take the simulated GPU minutes: what is
/// asked for of each byte stays the same.
catalog::Case affordable(const catalog::PrimitiveSpec& spec, catalog::Case point) {
  constexpr double kMaxFlops = 5e7;
  for (const std::string_view axis : {"n", "batch"}) {
    if (spec.make_workload(Context::cpu(), point, {})->cost().flops <= kMaxFlops) break;
    std::vector<catalog::Case::Entry> entries(point.entries().begin(), point.entries().end());
    for (catalog::Case::Entry& entry : entries) {
      if (entry.name == axis) entry.value = int64_t{1};
    }
    point = catalog::Case(point.op(), std::move(entries));
  }
  return point;
}

/// The first point of preset ci, in every word of the axes that choose what a kernel does.
std::vector<catalog::Case> cases_of(const catalog::PrimitiveSpec& spec) {
  const auto ci = std::find_if(spec.sweeps.begin(), spec.sweeps.end(),
                               [](const catalog::Sweep& sweep) { return sweep.name == "ci"; });
  REQUIRE(ci != spec.sweeps.end());
  std::vector<catalog::Case> cases{affordable(spec, bench::expand(spec, *ci, {}).cases.front())};
  for (const char* axis :
       {"dtype", "weights", "bag", "mode", "function", "broadcast", "layout", "form"}) {
    cases = with_words_of(spec, axis, cases);
  }
  // Every block reads prelu's slopes again, which count in rows that are no longer than these;
  // ragged_cases_of() has it.
  std::erase_if(cases, [&](const catalog::Case& point) {
    const bool is_prelu = spec.name == "pointwise" && point.word("function") == "prelu";
    return is_prelu || !spec.impossible_reason(point).empty();
  });
  return cases;
}

using Sizes = std::vector<std::pair<std::string_view, catalog::AxisValue>>;

/// Odd sizes of rows, images and members.
Sizes odd_sizes() {
  return {{"n", int64_t{3}},          {"batch", int64_t{20}},   {"seq", int64_t{1}},
          {"d", int64_t{257}},        {"channels", int64_t{3}}, {"groups", int64_t{1}},
          {"group_size", int64_t{3}}, {"length", int64_t{513}}, {"height", int64_t{19}},
          {"width", int64_t{27}}};
}

/// Images of few bytes against the sectors at their ends, of which norms take many at a time: of a
/// batch that a warp takes and one that several do.
std::vector<Sizes> small_images() {
  const std::pair<int64_t, int64_t> sides_and_batches[] = {{3, 4},  {5, 3}, {7, 3},
                                                           {7, 20}, {9, 3}, {13, 3}};
  std::vector<Sizes> all;
  for (const auto& [side, batch] : sides_and_batches) {
    all.push_back({{"n", int64_t{3}},
                   {"batch", batch},
                   {"channels", int64_t{19}},
                   {"groups", int64_t{19}},
                   {"group_size", int64_t{2}},
                   {"height", side}});
  }
  return all;
}

/// Small points of such sizes, in the same words.
std::vector<catalog::Case> ragged_cases_of(const catalog::PrimitiveSpec& spec, const Sizes& sizes) {
  std::vector<std::pair<std::string, catalog::AxisValue>> chosen;
  for (const catalog::AxisInfo& axis : spec.axes) {
    for (const auto& [name, value] : sizes) {
      const auto* word = std::get_if<std::string>(&value);
      const bool is_known =
          word == nullptr || std::count(axis.words.begin(), axis.words.end(), *word);
      if (axis.name == name && is_known) chosen.emplace_back(name, value);
    }
  }
  std::vector<catalog::Case> cases{catalog::make_case(spec, chosen)};
  for (const char* axis : {"dtype", "mode", "function", "broadcast", "slopes"}) {
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

TEST_CASE("embedding asks hardly more than once for rows of ids that hardly repeat") {
  // Not under the bar whatever the ids: what repeats is asked for again, which L2 serves. Quantised
  // rows begin and end within a sector, and their scale is asked for apart from the codes.
  constexpr double kQuantizedBar = 1.25;
  require_simulation();
  Session session(Context::cuda(0));
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("embedding");
  // Bags so short that y is streamed, too.
  const std::pair<std::string, catalog::AxisValue> sizes[] = {
      {"n", int64_t{2}}, {"batch", int64_t{24}}, {"seq", int64_t{4}}, {"vocab", int64_t{4096}}};
  std::vector<catalog::Case> cases{catalog::make_case(spec, sizes)};
  for (const char* axis : {"dtype", "weights", "bag"}) cases = with_words_of(spec, axis, cases);
  for (const catalog::StrategyInfo& info : spec.strategies) {
    if (info.device != DeviceType::cuda || info.kind != catalog::StrategyKind::hand_written)
      continue;
    for (const catalog::Case& point : cases) {
      if (!spec.impossible_reason(point).empty()) continue;
      const auto workload = spec.make_workload(session.context(), point, {});
      if (!workload->unsupported_reason(info.name).empty()) continue;
      const Worst worst = worst_streamed(launches_of(session, *workload, info.name));
      INFO(info.name << ": " << point.to_string() << ", " << worst.where);
      const bool is_packed = point.word("weights") == "packed";
      CHECK(worst.ratio <= (is_packed ? kAlignedBar : kQuantizedBar));
    }
  }
}

TEST_CASE("what is bound by memory asks for odd sizes hardly more than once") {
  require_simulation();
  Session session(Context::cuda(0));
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    for (const catalog::StrategyInfo& info : spec->strategies) {
      if (!info.traffic.is_memory_bound) continue;
      const double conflicts = spec->name == "pooling" ? kRaggedWindowConflicts : kRaggedConflicts;
      for (const catalog::Case& point : ragged_cases_of(*spec, odd_sizes())) {
        check_ragged_case(session, *spec, info, point, conflicts);
      }
    }
  }
}

TEST_CASE("a later member of an ensemble is no more work than an earlier one, one by one") {
  require_simulation();
  Session session(Context::cuda(0));
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("ensemble");
  const std::pair<std::string, catalog::AxisValue> sizes[] = {
      {"n", int64_t{80}}, {"batch", int64_t{2}}, {"d", int64_t{40}}};
  const auto workload = spec.make_workload(session.context(), catalog::make_case(spec, sizes), {});
  const std::vector<LaunchCounters> launches = launches_of(session, *workload, "sequential");
  REQUIRE(launches.size() == 80);
  const auto instructions_of = [&](size_t member) {
    int64_t sum = 0;
    for (const auto& [name, value] : launches[member].values) {
      if (name.starts_with("instructions_")) sum += value;
    }
    return sum;
  };
  CHECK(instructions_of(40) > 0);
  CHECK(instructions_of(72) == instructions_of(40));  // both the ninth of 32
}

TEST_CASE("norms over channels ask for small images hardly more than once") {
  require_simulation();
  Session session(Context::cuda(0));
  for (const char* name : {"batchnorm2d", "groupnorm", "instancenorm2d"}) {
    const catalog::PrimitiveSpec& spec = catalog::find_primitive(name);
    for (const catalog::StrategyInfo& info : spec.strategies) {
      if (!info.traffic.is_memory_bound) continue;
      for (const Sizes& sizes : small_images()) {
        for (const catalog::Case& point : ragged_cases_of(spec, sizes)) {
          check_ragged_case(session, spec, info, point, kSmallImageConflicts);
        }
      }
    }
  }
}

}  // namespace wide::test
