// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Policies of all primitives' calls of cuDNN by a plan: each computes the same, by another
// configuration, and tuning caches name them.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <set>
#include <vector>

#include "host/compare.hpp"
#include "host/core/heuristic_policy.hpp"
#include "host/cudnn/cudnn_plan.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/session.hpp"
#include "wide/tuning.hpp"

namespace wide::test {
namespace {

using catalog::PrimitiveSpec;
using catalog::Workload;
using Catch::Matchers::ContainsSubstring;

/// The strategies that call cuDNN with policies.
std::vector<std::string> cudnn_strategies(const PrimitiveSpec& spec) {
  std::vector<std::string> names;
  for (const catalog::StrategyInfo& info : spec.strategies) {
    if (info.kind == catalog::StrategyKind::vendor && !info.policies.empty() &&
        info.policies.front() == kCudnnPolicies.front()) {
      names.emplace_back(info.name);
    }
  }
  return names;
}

/// Cases of which cuDNN may take one: of several members or a single one, in 16 bits, or in the
/// other layout; no row is routed.
std::vector<catalog::Case> candidates(const PrimitiveSpec& spec) {
  std::vector<catalog::Case> cases;
  for (const int64_t num_members : {3, 1}) {
    const catalog::Case usual = vector_case(spec, num_members, 8);
    for (const char* dtype : {"fp32", "bf16"}) {
      for (const char* layout : {"first", "last"}) {
        Values values;
        for (const catalog::Case::Entry& entry : usual.entries()) {
          const auto value = entry.name == "dtype"     ? catalog::AxisValue(dtype)
                             : entry.name == "layout"  ? catalog::AxisValue(layout)
                             : entry.name == "dropped" ? catalog::AxisValue(int64_t{0})
                                                       : entry.value;
          values.emplace_back(entry.name, value);
        }
        cases.push_back(catalog::make_case(spec, values));
      }
    }
  }
  return cases;
}

/// The first of these that cuDNN computes by the strategy.
struct Call {
  Call(const Context& context, const PrimitiveSpec& spec, const std::string& strategy) {
    for (const catalog::Case& each : candidates(spec)) {
      reason = spec.impossible_reason(each);
      if (!reason.empty()) continue;
      auto made = spec.make_workload(context, each, {});
      reason = made->unsupported_reason(strategy);
      if (!reason.empty()) continue;
      point = each;
      workload = std::move(made);
      return;
    }
  }
  catalog::Case point;
  std::unique_ptr<Workload> workload;  ///< null: there is none
  std::string reason;                  ///< of the last one that it does not take
};

/// How many policies cuDNN offers; each is right and named.
size_t check_policies(Session& session, Workload& workload, const std::string& strategy) {
  const catalog::ReferenceSample reference(workload);
  std::set<std::string> explanations;
  for (const std::string_view policy : kCudnnPolicies) {
    INFO(policy);
    catalog::Prepared prepared;
    const std::string refusal = cudnn_refusal([&] {
      prepared = workload.prepare({.strategy = strategy, .policy = std::string(policy)});
    });
    if (!refusal.empty()) {
      CHECK_THAT(refusal, ContainsSubstring("policy " + std::string(policy) + ": cuDNN offers " +
                                            std::to_string(explanations.size()) + " config"));
      break;
    }
    CHECK(prepared.policy == policy);
    CHECK_THAT(prepared.explain,
               ContainsSubstring("; policy " + std::string(policy) + "; engine "));
    CHECK(explanations.insert(prepared.explain.substr(prepared.explain.find("; engine "))).second);
    const catalog::Verdict verdict =
        catalog::compare(reference, session.run(workload, prepared), {.keeps_infinities = false});
    CHECK(verdict.message == "");
  }
  CHECK(workload.prepare({.strategy = strategy}).policy == kCudnnPolicies.front());
  return explanations.size();
}

void check_refusals(const PrimitiveSpec& spec, Workload& workload, const std::string& strategy) {
  const auto refusal = [&](const PlanOptions& options) {
    return refusal_of([&] { (void)workload.prepare(options); });
  };
  CHECK_THAT(refusal({.strategy = strategy, .policy = "h8"}),
             ContainsSubstring(": policy \"h8\" is unknown, expected h0 to h7"));
  CHECK_THAT(refusal({.policy = "h0"}),
             ContainsSubstring("\"h0\", expected none: strategy \"auto\" has its own"));
  for (const catalog::StrategyInfo& info : spec.strategies) {
    if (info.device != DeviceType::cuda || !info.policies.empty()) continue;
    const std::string name(info.name);
    CHECK_THAT(refusal({.strategy = name, .policy = "h0"}),
               ContainsSubstring(": policy \"h0\", expected none: " + name + " has none"));
  }
}

/// "auto" takes what the tuning cache names, where there is such a policy.
void check_tuning(const Context& context, const PrimitiveSpec& spec, const Call& call,
                  const std::string& strategy) {
  const TuningKey key = spec.tuning_key(call.point);
  const auto tuned = [&](const std::string& policy) {
    TuningCache cache;
    cache.set(context.info(), key.primitive, key.problem, {strategy, policy, 1, 8, ""});
    return call.workload->prepare({.tuning = &cache});
  };
  const catalog::Prepared second = tuned("h1");
  INFO(second.explain);
  CHECK((second.strategy == strategy && second.policy == "h1"));
  CHECK_THAT(second.explain, ContainsSubstring("; policy h1; engine "));
  CHECK(tuned("").policy == "h0");  // of a cache from before there were policies
  CHECK_THAT(tuned("m16").explain,
             ContainsSubstring("tuned " + strategy + " not taken: policy \"m16\" is unknown"));
}

TEST_CASE("every policy of cuDNN's computes the same by another configuration") {
  const Context context = require_cuda();
  Session session(context);
  size_t num_offered = 0;
  std::string refusals;
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    for (const std::string& strategy : cudnn_strategies(*spec)) {
      INFO(spec->name << " " << strategy);
      const Call call(context, *spec, strategy);
      if (!call.workload) {
        refusals += std::string(spec->name) + " " + strategy + ": " + call.reason + "\n";
        continue;
      }
      check_refusals(*spec, *call.workload, strategy);
      num_offered = std::max(num_offered, check_policies(session, *call.workload, strategy));
      check_tuning(context, *spec, call, strategy);
    }
  }
  if (num_offered == 0) SKIP("cuDNN does not run here: " << refusals);
  CHECK(refusals == "");
  CHECK(num_offered > 1);
}

}  // namespace
}  // namespace wide::test
