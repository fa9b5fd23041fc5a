// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every primitive of the catalogue, every strategy, every case of its sweep "ci", every dtype, and
// odd and degenerate problems made from its axes, numbers that are none: judged by the reference,
// between guard bands, on a stream of its own, on a GPU twice, or once where it is simulated. A
// primitive that is in the catalogue is tested; none is named here.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "host/compare.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/session.hpp"
#include "verify/support/simulation.hpp"
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

/// Outputs by what became of them. Vacuous are those that agree with a reference of hardly anything
/// but zeros: a kernel that writes nothing else would pass, too.
struct Statuses {
  int64_t passed = 0, failed = 0, vacuous = 0, refused = 0;
};

/// Not what wbench mistrusts a result for (bench/document/doubts.hpp), which is less: relu of 45
/// numbers, votes and whole numbers have more zeros than that, and other cases of the same op have
/// few.
constexpr double kVacuousShare = 0.9;

bool keeps_infinities(const PrimitiveSpec& spec, const std::string& strategy) {
  return std::all_of(spec.strategies.begin(), spec.strategies.end(), [&](const auto& info) {
    return info.name != strategy || info.keeps_infinities;
  });
}

/// Looks no further than it must: it is asked for every output.
bool is_vacuous(const ReferenceSample& reference) {
  const double enough = (1 - kVacuousShare) * static_cast<double>(reference.elements());
  int64_t others = 0;
  for (const auto& row : reference.rows()) {
    for (const double value : row.values) {
      if (static_cast<double>(others) >= enough) return false;
      if (value != 0) ++others;
    }
  }
  return static_cast<double>(others) < enough;
}

/// Runs cases of one primitive after another and counts what becomes of them.
class Verification {
 public:
  explicit Verification(const Context& context) : session_(context) {}

  void check_ci_sweep(const PrimitiveSpec& spec);
  void check_odd_problems(const PrimitiveSpec& spec);
  void check_special_values(const PrimitiveSpec& spec);
  void check_edges(const PrimitiveSpec& spec);
  /// Every strategy that exists on this device must have run at least once, or have said why not.
  void finish(const PrimitiveSpec& spec);
  const Statuses& statuses() const { return statuses_; }

 private:
  void check_verdict(const ReferenceSample& reference, const MemberOutputs& outputs,
                     bool keeps_infinities = true);
  void check_strategy(const PrimitiveSpec& spec, Workload& workload,
                      const ReferenceSample& reference, const std::string& name);
  void run_case(const PrimitiveSpec& spec, const Case& point, const WorkloadOptions& options);
  void check_case(const PrimitiveSpec& spec, const Case& point, const WorkloadOptions& options);
  void refuse(const std::string& name, const std::string& reason);

  Session session_;
  Tally tally_;
  Statuses statuses_;
  bool in_sweep_ = false;
  bool trusts_zeros_ = false;
  bool may_vanish_ = false;  ///< products of subnormals are zeros, and sums that cancel
};

void Verification::check_verdict(const ReferenceSample& reference, const MemberOutputs& outputs,
                                 bool keeps_infinities) {
  const catalog::Verdict verdict =
      catalog::compare(reference, outputs, {.keeps_infinities = keeps_infinities});
  CHECK(verdict.message == "");
  CHECK(verdict.passed);
  const bool says_something = trusts_zeros_ || !is_vacuous(reference);
  ++(!verdict.passed ? statuses_.failed : says_something ? statuses_.passed : statuses_.vacuous);
  CHECK((says_something || may_vanish_));
}

void Verification::refuse(const std::string& name, const std::string& reason) {
  tally_.refused.insert(name + ": " + reason);
  ++statuses_.refused;
}

void Verification::check_strategy(const PrimitiveSpec& spec, Workload& workload,
                                  const ReferenceSample& reference, const std::string& name) {
  INFO("strategy " << name);
  const std::string reason = workload.unsupported_reason(name);
  if (!reason.empty()) {
    refuse(name, reason);
    try {
      // A vendor's library that cannot start is missed at run only, where its handle is needed.
      (void)session_.run(workload, name);
      FAIL_CHECK("ran, although unsupported: " << reason);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unsupported);
    }
    return;
  }
  const catalog::Prepared prepared = workload.prepare(name);
  CHECK((name == "auto" || prepared.strategy == name));
  CHECK(!prepared.explain.empty());
  const MemberOutputs first = session_.run(workload, prepared);
  check_verdict(reference, first, keeps_infinities(spec, prepared.strategy));
  // What auto is runs twice under its own name. The simulated GPU would do the same in the same
  // order: repeat_test has it do so beside others. The CPU device does in the cases of the sweep.
  const bool is_cpu = session_.context().device().type == DeviceType::cpu;
  if (name != "auto" && (is_cpu ? in_sweep_ : !Simulation::is_present()))
    CHECK(first_difference(first, session_.run(workload, prepared)) == "");
  tally_.ran.insert(name);
}

void Verification::run_case(const PrimitiveSpec& spec, const Case& point,
                            const WorkloadOptions& options) {
  const auto workload = spec.make_workload(session_.context(), point, options);
  const ReferenceSample reference(*workload);
  for (const std::string& name : strategies_of(spec, session_.context().device().type)) {
    check_strategy(spec, *workload, reference, name);
  }
  const std::string reason = workload->baseline_unsupported_reason();
  if (!reason.empty()) return refuse("baseline", reason);
  INFO("baseline");
  check_verdict(reference, session_.run_members(*workload, workload->prepare_members()));
  tally_.ran.insert("baseline");
}

/// One case that throws must not keep the others from being run.
void Verification::check_case(const PrimitiveSpec& spec, const Case& point,
                              const WorkloadOptions& options) {
  INFO(describe(spec, point));
  INFO("seed " << options.seed << ", fill " << static_cast<int>(options.fill) << ", misalign "
               << options.misalign_elements << ", row padding " << options.row_padding);
  ++tally_.cases;
  may_vanish_ = options.fill == catalog::Fill::tiny || options.fill == catalog::Fill::cancelling;
  try {
    run_case(spec, point, options);
  } catch (const Error& error) {
    FAIL_CHECK(error_code_name(error.code()) << ": " << error.what());
  }
}

void Verification::finish(const PrimitiveSpec& spec) {
  CHECK(tally_.cases > 0);
  for (const std::string& name : strategies_of(spec, session_.context().device().type)) {
    INFO("strategy " << name);
    const bool was_refused =
        std::any_of(tally_.refused.begin(), tally_.refused.end(),
                    [&](const std::string& text) { return text.starts_with(name + ": "); });
    CHECK((tally_.ran.contains(name) || was_refused));
  }
  std::string text = std::string(spec.name) + ": " + std::to_string(tally_.cases) + " cases, ran";
  for (const std::string& name : tally_.ran) text += " " + name;
  for (const std::string& refusal : tally_.refused) text += "; refused " + refusal;
  WARN(text);
  tally_ = {};
}

WorkloadOptions layout(int64_t misalign_elements, int64_t row_padding) {
  WorkloadOptions options;
  options.misalign_elements = misalign_elements;
  options.row_padding = row_padding;
  return options;
}

WorkloadOptions filled_with(catalog::Fill fill, WorkloadOptions options = {}) {
  options.fill = fill;
  return options;
}

/// One after the other: whatever a sum's order or a kernel's arithmetic is weak at.
catalog::Fill hostile_fill(size_t number) {
  using enum catalog::Fill;
  constexpr std::array kHostile{positive, cancelling, wide_range, tiny};
  return kHostile[number % kHostile.size()];
}

void Verification::check_ci_sweep(const PrimitiveSpec& spec) {
  in_sweep_ = true;
  for (const Case& point : ci_cases(spec)) check_case(spec, point, {});
  in_sweep_ = false;
}

void Verification::check_odd_problems(const PrimitiveSpec& spec) {
  const auto integers = filled_with(catalog::Fill::integers);
  const std::vector<Values> combinations = word_combinations(spec);
  // Whole numbers hang on few of the words: where there are hundreds, some have them.
  const size_t stride = combinations.size() > 200 ? 4 : 1;
  size_t number = 0;
  for (const Values& words : combinations) {
    const Case small = odd_case(spec, 3, 3, words);
    check_case(spec, small, {});
    check_case(spec, small, filled_with(hostile_fill(number++), layout(1, 3)));
    if (number % stride == 0) check_case(spec, small, integers);
  }
  for (const int64_t members : {1, 2, 5, 16}) {
    const auto hostile = filled_with(hostile_fill(number++));
    const Case point = odd_case(spec, members, 7);
    if (!spec.impossible_reason(point).empty()) continue;  // so many choices of so few members
    for (const auto& options : {layout(0, 8), layout(3, 0), layout(1, 5), integers, hostile}) {
      check_case(spec, point, options);
    }
  }
  if (!affords_large_cases(spec)) return;
  for (const auto& options : {layout(0, 0), layout(1, 1), integers}) {
    check_case(spec, odd_case(spec, 3, 67), options);
  }
}

void Verification::check_special_values(const PrimitiveSpec& spec) {
  const auto specials = filled_with(catalog::Fill::specials);
  for (const Values& words : word_combinations(spec)) {
    check_case(spec, odd_case(spec, 3, 7, words), specials);
  }
}

void Verification::check_edges(const PrimitiveSpec& spec) {
  trusts_zeros_ = true;  // where nothing is added up, they are right
  for (const Case& point : edge_cases(spec)) check_case(spec, point, {});
  trusts_zeros_ = false;
}

/// Sweeps, odd sizes and layouts, every word, exact integers, sums of one sign, that cancel, of a
/// wide range and of subnormals, NaN and infinities, the smallest legal problems: all of every
/// primitive. Returns how many outputs came to what.
Statuses verify_catalog(const Context& context) {
  Verification verification(context);
  for (const PrimitiveSpec* spec : primitives_to_test()) {
    verification.check_ci_sweep(*spec);
    verification.check_odd_problems(*spec);
    verification.check_special_values(*spec);
    verification.check_edges(*spec);
    verification.finish(*spec);
  }
  const Statuses& statuses = verification.statuses();
  WARN(statuses.passed << " outputs passed, " << statuses.failed << " failed, " << statuses.vacuous
                       << " vacuous, " << statuses.refused << " refused");
  return statuses;
}

/// So that a loop over little does not look like success; of one primitive alone some are enough.
int64_t least_passed() {
  if (primitives_to_test().size() == 1) return 1;
  return wants_small_cases() ? 500 : 5000;
}

}  // namespace

TEST_CASE("every strategy of every primitive agrees with the reference on the CPU") {
  const Statuses statuses = verify_catalog(Context::cpu());
  CHECK(statuses.passed >= least_passed());
}
TEST_CASE("every strategy of every primitive agrees with the reference on CUDA", "[gpu]") {
  const Statuses statuses = verify_catalog(require_cuda());
  CHECK(statuses.passed >= least_passed());
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

TEST_CASE("norms over channels, groups and instances, judged alike, state the same tolerance") {
  const auto stated = [](const char* name) {
    return catalog::find_primitive(name).tolerance_formula;
  };
  for (const char* name : {"batchnorm2d", "groupnorm", "instancenorm1d", "instancenorm2d"}) {
    INFO(name);
    CHECK(stated(name) == stated("batchnorm1d"));
  }
}

}  // namespace wide::test
