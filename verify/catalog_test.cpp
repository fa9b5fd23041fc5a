// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every primitive of the catalogue, every strategy, every case of its sweep "ci", every dtype, and
// odd and degenerate problems made from its axes: judged by the reference, between guard bands, on
// a stream of its own, twice. A primitive that is in the catalogue is tested; none is named here.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "host/compare.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/session.hpp"
#include "wide/error.hpp"

namespace wide::test {

namespace {

using catalog::Case;
using catalog::MemberOutputs;
using catalog::PrimitiveSpec;
using catalog::ReferenceSample;
using catalog::Workload;
using catalog::WorkloadOptions;

/// What was run, so that a loop over nothing does not look like success.
struct Tally {
  int64_t cases = 0;
  std::set<std::string> ran, refused;
};

std::vector<std::string> strategies_of(const PrimitiveSpec& spec, DeviceType device) {
  std::vector<std::string> names{"auto"};
  for (const auto& strategy : spec.strategies) {
    if (strategy.device == device) names.emplace_back(strategy.name);
  }
  return names;
}

void check_verdict(const ReferenceSample& reference, const MemberOutputs& outputs) {
  const catalog::Verdict verdict = catalog::compare(reference, outputs);
  CHECK(verdict.message == "");
  CHECK(verdict.passed);
}

void check_strategy(Session& session, Workload& workload, const ReferenceSample& reference,
                    const std::string& name, Tally& tally) {
  INFO("strategy " << name);
  const std::string reason = workload.unsupported_reason(name);
  if (!reason.empty()) {
    tally.refused.insert(name + ": " + reason);
    try {
      // A vendor's library that cannot start is missed at run only, where its handle is needed.
      (void)session.run(workload, name);
      FAIL_CHECK("ran, although unsupported: " << reason);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unsupported);
    }
    return;
  }
  const catalog::Prepared prepared = workload.prepare(name);
  CHECK((name == "auto" || prepared.strategy == name));
  CHECK(!prepared.explain.empty());
  const MemberOutputs first = session.run(workload, prepared);
  check_verdict(reference, first);
  CHECK(first_difference(first, session.run(workload, prepared)) == "");
  tally.ran.insert(name);
}

void run_case(Session& session, const PrimitiveSpec& spec, const Case& point,
              const WorkloadOptions& options, Tally& tally) {
  const auto workload = spec.make_workload(session.context(), point, options);
  const ReferenceSample reference(*workload);
  for (const std::string& name : strategies_of(spec, session.context().device().type)) {
    check_strategy(session, *workload, reference, name, tally);
  }
  if (workload->baseline_unsupported_reason().empty()) {
    INFO("baseline");
    check_verdict(reference, session.run_members(*workload, workload->prepare_members()));
    tally.ran.insert("baseline");
  } else {
    tally.refused.insert("baseline: " + workload->baseline_unsupported_reason());
  }
}

/// One case that throws must not keep the others from being run.
void check_case(Session& session, const PrimitiveSpec& spec, const Case& point,
                const WorkloadOptions& options, Tally& tally) {
  INFO(describe(spec, point));
  INFO("seed " << options.seed << ", fill " << static_cast<int>(options.fill) << ", misalign "
               << options.misalign_elements << ", row padding " << options.row_padding);
  ++tally.cases;
  try {
    run_case(session, spec, point, options, tally);
  } catch (const Error& error) {
    FAIL_CHECK(error_code_name(error.code()) << ": " << error.what());
  }
}

/// Every strategy that exists on this device must have run at least once, or have said why not.
void check_tally(const PrimitiveSpec& spec, DeviceType device, const Tally& tally) {
  CHECK(tally.cases > 0);
  for (const std::string& name : strategies_of(spec, device)) {
    INFO("strategy " << name);
    const bool was_refused =
        std::any_of(tally.refused.begin(), tally.refused.end(),
                    [&](const std::string& text) { return text.starts_with(name + ": "); });
    CHECK((tally.ran.contains(name) || was_refused));
  }
  std::string text = std::string(spec.name) + ": " + std::to_string(tally.cases) + " cases, ran";
  for (const std::string& name : tally.ran) text += " " + name;
  for (const std::string& refusal : tally.refused) text += "; refused " + refusal;
  WARN(text);
}

WorkloadOptions layout(int64_t misalign_elements, int64_t row_padding) {
  WorkloadOptions options;
  options.misalign_elements = misalign_elements;
  options.row_padding = row_padding;
  return options;
}

WorkloadOptions integers() {
  WorkloadOptions options;
  options.fill = catalog::Fill::integers;
  return options;
}

void check_ci_sweep(const Context& context) {
  Session session(context);
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    Tally tally;
    for (const Case& point : ci_cases(*spec)) check_case(session, *spec, point, {}, tally);
    check_tally(*spec, context.device().type, tally);
  }
}

void check_odd_problems(const Context& context) {
  Session session(context);
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    Tally tally;
    for (const Values& words : word_combinations(*spec)) {
      const Case small = odd_case(*spec, 3, 3, words);
      check_case(session, *spec, small, {}, tally);
      check_case(session, *spec, small, layout(1, 3), tally);
      check_case(session, *spec, small, integers(), tally);
    }
    for (const int64_t members : {1, 2, 5, 16}) {
      for (const auto& options : {layout(0, 8), layout(3, 0), layout(1, 5), integers()}) {
        check_case(session, *spec, odd_case(*spec, members, 7), options, tally);
      }
    }
    if (affords_large_cases(*spec)) {
      for (const auto& options : {layout(0, 0), layout(1, 1), integers()}) {
        check_case(session, *spec, odd_case(*spec, 3, 67), options, tally);
      }
    }
    check_tally(*spec, context.device().type, tally);
  }
}

void check_edges(const Context& context) {
  Session session(context);
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    Tally tally;
    for (const Case& point : edge_cases(*spec)) check_case(session, *spec, point, {}, tally);
    check_tally(*spec, context.device().type, tally);
  }
}

}  // namespace

TEST_CASE("the ci sweep agrees with the reference on the CPU") {
  check_ci_sweep(Context::cpu());
}
TEST_CASE("the ci sweep agrees with the reference on CUDA", "[gpu]") {
  check_ci_sweep(require_cuda());
}

TEST_CASE("odd sizes, layouts and every word agree with the reference on the CPU") {
  check_odd_problems(Context::cpu());
}
TEST_CASE("odd sizes, layouts and every word agree with the reference on CUDA", "[gpu]") {
  check_odd_problems(require_cuda());
}

TEST_CASE("the smallest legal problems agree with the reference on the CPU") {
  check_edges(Context::cpu());
}
TEST_CASE("the smallest legal problems agree with the reference on CUDA", "[gpu]") {
  check_edges(require_cuda());
}

TEST_CASE("a strategy of another device, and one that does not exist, is refused with a reason") {
  const Context context = Context::cpu();
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    const auto workload = spec->make_workload(context, odd_case(*spec, 2, 3), {});
    std::vector<std::string> wrong{"no_such_strategy", "", "AUTO"};
    const auto own = strategies_of(*spec, DeviceType::cpu);
    for (const std::string& name : strategies_of(*spec, DeviceType::cuda)) {
      if (std::find(own.begin(), own.end(), name) == own.end()) wrong.push_back(name);
    }
    for (const std::string& name : wrong) {
      INFO(spec->name << ", strategy \"" << name << "\"");
      CHECK(workload->unsupported_reason(name) != "");
      CHECK_THROWS_AS(workload->prepare(name), Error);
    }
  }
}

TEST_CASE("every primitive describes itself completely") {
  CHECK(catalog::primitives().size() >= 3);
  std::set<std::string_view> names;
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    INFO(spec->name);
    CHECK(names.insert(spec->name).second);
    CHECK(&catalog::find_primitive(spec->name) == spec);
    CHECK(!spec->summary.empty());
    CHECK(!spec->tolerance_formula.empty());
    CHECK(spec->axes.front().name == "n");
    for (const std::string_view sweep : {"quick", "full", "ci"}) {
      for (const auto& axis : catalog::find_sweep(*spec, sweep).axes) {
        INFO(sweep << ", axis " << axis.name);
        CHECK(!axis.values.empty());
        for (const auto& value : axis.values) {
          const Values one{{axis.name, value}};
          CHECK_NOTHROW(catalog::make_case(*spec, one));
        }
      }
    }
    for (const DeviceType device : {DeviceType::cpu, DeviceType::cuda}) {
      const auto own = strategies_of(*spec, device);
      CHECK(std::count(own.begin(), own.end(), "sequential") == 1);
      CHECK(std::set(own.begin(), own.end()).size() == own.size());
    }
    CHECK_NOTHROW(catalog::make_case(*spec, {}));
  }
}

}  // namespace wide::test
