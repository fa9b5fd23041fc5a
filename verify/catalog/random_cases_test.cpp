// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Every primitive at random points of all of its axes at once, laid out and filled at random, by
// every strategy: tables try sizes, words and layouts beside each other, and what goes wrong is
// often what comes together. WIDE_TEST_CASES says how many of each primitive, WIDE_TEST_SEED which,
// WIDE_TEST_PRIMITIVE of which; scripts/sweep runs hundreds, in every order of the simulated GPU.
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "host/compare.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/dice.hpp"
#include "verify/support/session.hpp"
#include "wide/error.hpp"

namespace wide::test {
namespace {

using catalog::AxisInfo;
using catalog::AxisValue;
using catalog::Case;
using catalog::Fill;
using catalog::PrimitiveSpec;
using catalog::WorkloadOptions;

/// Of the whole wide call: what the simulated GPU does in a fraction of a second.
constexpr double kMaxFlops = 8e6, kMaxBytes = 4e6;
constexpr int kMaxDraws = 400;

/// Defaults are half of all words. Sizes lie up to twice the default; 0 and -1 stand for what
/// another axis says.
AxisValue draw_value(const AxisInfo& axis, Dice& dice, int64_t shrink) {
  if (!axis.words.empty()) {
    return dice.toss() ? axis.default_value : AxisValue(std::string(dice.one_of(axis.words)));
  }
  const int64_t usual = std::get<int64_t>(axis.default_value);
  if (usual <= 0 && dice.toss()) return usual;
  if (!axis.odd_sizes.empty() && dice.toss()) return dice.one_of(axis.odd_sizes);
  // Padding is not in the product of sizes, and three axes of positions have it.
  const int64_t most = (usual < 0 ? 8 : usual == 0 ? 200 : 2 * usual) / shrink;
  return std::max({axis.min, dice.size(std::max<int64_t>(most, 3)), int64_t{1}});
}

/// What may be made at all; whether it is small enough is known once it is made.
bool is_moderate(const Case& point) {
  double product = 1;
  for (const Case::Entry& entry : point.entries()) {
    const auto* size = std::get_if<int64_t>(&entry.value);
    if (size != nullptr) product *= static_cast<double>(std::max<int64_t>(*size, 1));
  }
  return product < 1e10;
}

WorkloadOptions draw_options(Dice& dice) {
  constexpr Fill kFills[] = {Fill::uniform, Fill::uniform, Fill::integers, Fill::specials};
  WorkloadOptions options;
  options.seed = static_cast<uint64_t>(dice.between(1, 1000));
  options.fill = dice.one_of(kFills);
  if (dice.toss()) options.misalign_elements = dice.between(0, 8);
  if (dice.toss()) options.row_padding = dice.size(16);
  return options;
}

struct Drawn {
  Case point;
  WorkloadOptions options;
  std::unique_ptr<catalog::Workload> workload;
};

/// Sizes shrink from draw to draw until a case is possible and small enough.
Drawn draw(const Context& context, const PrimitiveSpec& spec, Dice& dice) {
  for (int attempt = 0; attempt < kMaxDraws; ++attempt) {
    Values values;
    for (const AxisInfo& axis : spec.axes) {
      values.emplace_back(axis.name, draw_value(axis, dice, 1 + attempt / 8));
    }
    Drawn drawn{catalog::make_case(spec, values), draw_options(dice), nullptr};
    if (!spec.impossible_reason(drawn.point).empty() || !is_moderate(drawn.point)) continue;
    drawn.workload = spec.make_workload(context, drawn.point, drawn.options);
    const catalog::Cost cost = drawn.workload->cost();
    if (cost.flops <= kMaxFlops && cost.bytes() <= kMaxBytes) return drawn;
  }
  FAIL("no case of " << spec.name << " in " << kMaxDraws << " draws is small enough");
  return {};
}

/// Runs cases of primitives and counts what ran.
class Trial {
 public:
  Trial(const Context& context, Dice dice) : session_(context), dice_(dice) {}

  void try_case(const PrimitiveSpec& spec);
  /// How often each strategy ran.
  const std::map<std::string, int64_t>& ran() const { return ran_; }

 private:
  void try_strategy(catalog::Workload& workload, const catalog::ReferenceSample& reference,
                    const PlanOptions& plan);
  std::string draw_policy(const PrimitiveSpec& spec, const std::string& strategy);

  Session session_;
  Dice dice_;
  std::map<std::string, int64_t> ran_;
};

/// Half of all plans leave the policy to the strategy.
std::string Trial::draw_policy(const PrimitiveSpec& spec, const std::string& strategy) {
  for (const catalog::StrategyInfo& info : spec.strategies) {
    const bool is_it = info.name == strategy && info.device == session_.context().device().type;
    if (is_it && !info.policies.empty() && dice_.toss()) {
      return std::string(dice_.one_of(info.policies));
    }
  }
  return "";
}

void Trial::try_strategy(catalog::Workload& workload, const catalog::ReferenceSample& reference,
                         const PlanOptions& plan) {
  INFO("strategy " << plan.strategy << " " << plan.policy);
  catalog::Prepared prepared;
  try {
    prepared = workload.prepare(plan);
  } catch (const Error& error) {
    // Not every policy runs every problem.
    CHECK((error.code() == ErrorCode::unsupported && !plan.policy.empty()));
    return;
  }
  const catalog::MemberOutputs outputs = session_.run(workload, prepared);
  // An infinite factor of what is 0 in fp32 and hardly more in fp64 is NaN, which chance finds.
  const catalog::Verdict verdict =
      catalog::compare(reference, outputs, {.keeps_infinities = false});
  CHECK(verdict.message == "");
  CHECK(verdict.passed);
  CHECK(first_difference(outputs, session_.run(workload, prepared)) == "");
  ++ran_[plan.strategy];
}

void Trial::try_case(const PrimitiveSpec& spec) {
  const Drawn drawn = draw(session_.context(), spec, dice_);
  const WorkloadOptions& options = drawn.options;
  INFO(describe(spec, drawn.point));
  INFO("seed " << options.seed << ", fill " << static_cast<int>(options.fill) << ", misalign "
               << options.misalign_elements << ", row padding " << options.row_padding);
  const catalog::ReferenceSample reference(*drawn.workload);
  for (const std::string& name : strategies_of(spec, session_.context().device().type)) {
    const std::string policy = draw_policy(spec, name);
    if (!drawn.workload->unsupported_reason(name).empty()) continue;
    try_strategy(*drawn.workload, reference, {.strategy = name, .policy = policy});
  }
}

void try_primitives(const Context& context) {
  const int64_t count = from_environment("WIDE_TEST_CASES", wants_small_cases() ? 4 : 24);
  const int64_t seed = from_environment("WIDE_TEST_SEED", 1);
  for (const PrimitiveSpec* spec : primitives_to_test()) {
    Trial trial(context, Dice(static_cast<uint64_t>(seed)));
    for (int64_t i = 0; i < count; ++i) {
      INFO("WIDE_TEST_SEED=" << seed << ", case " << i);
      trial.try_case(*spec);
    }
    std::string text = "cases of " + std::string(spec->name) + " by strategy:";
    for (const auto& [strategy, runs] : trial.ran()) {
      text += " " + strategy + " " + std::to_string(runs);
    }
    WARN(text);
    CHECK((!trial.ran().empty() || count < 4));
  }
}

}  // namespace

TEST_CASE("random cases of every primitive agree with the reference on the CPU") {
  try_primitives(Context::cpu());
}

TEST_CASE("random cases of every primitive agree with the reference on CUDA", "[gpu]") {
  try_primitives(require_cuda());
}

}  // namespace wide::test
