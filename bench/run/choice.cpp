// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "bench/run/contender.hpp"
#include "host/core/strategy_choice.hpp"
#include "host/core/verified.hpp"

namespace wide::bench {

Init init_of(const std::string& dist) {
  Init init{dist, -1, 1};
  if (dist == "normal") init.min = init.max = std::nullopt;
  if (dist == "zeros") init.min = init.max = 0;
  if (dist == "int") init.min = init.max = std::nullopt;  // each primitive has its own
  return init;
}

catalog::Fill fill_of(const Init& init) {
  using catalog::Fill;
  return init.dist == "normal"  ? Fill::normal
         : init.dist == "int"   ? Fill::integers
         : init.dist == "trig"  ? Fill::trig
         : init.dist == "zeros" ? Fill::zeros
                                : Fill::uniform;
}

std::vector<Regime> regimes_of(const RunPlan& plan) {
  const DeviceType device = plan.context.device().type;
  std::vector<Regime> regimes =
      plan.config.regimes.empty() ? default_regimes(device) : plan.config.regimes;
  std::erase_if(regimes, [&](Regime regime) {
    return !has_regime(device, regime) ||
           (regime == Regime::cold && plan.config.cache == Cache::warm);
  });
  return regimes;
}

std::vector<std::string> strategies_of(const RunPlan& plan, const catalog::PrimitiveSpec& spec) {
  if (!plan.strategies.empty()) return plan.strategies;
  std::vector<std::string> names;
  for (const catalog::StrategyInfo& info : spec.strategies) {
    if (info.device == plan.context.device().type) names.emplace_back(info.name);
  }
  if (plan.tuning != nullptr) names.emplace_back("auto");
  return names;
}

std::string foreign_strategies_reason(const RunPlan& plan) {
  if (plan.strategies.empty()) return "";
  const Device device = plan.context.device();
  std::set<std::string_view> here{kAuto, kAutoUnverified};
  for (const auto& [spec, cases] : plan.work) {
    for (const catalog::StrategyInfo& info : spec->strategies) {
      if (info.device == device.type) here.insert(info.name);
    }
  }
  const auto is_here = [&](const std::string& name) {
    return here.contains(plan_options(name).strategy);
  };
  if (std::any_of(plan.strategies.begin(), plan.strategies.end(), is_here)) return "";
  return fmt::format("nothing can run: there is no {} on {}, expected {}",
                     fmt::join(plan.strategies, ", "), to_string(device), fmt::join(here, ", "));
}

bool is_trusted(const Context& context, const catalog::PrimitiveSpec& spec,
                const std::string& strategy) {
  if (context.device().type == DeviceType::cpu) return true;
  for (const catalog::StrategyInfo& info : spec.strategies) {
    if (info.name == strategy && info.device == DeviceType::cuda &&
        info.kind == catalog::StrategyKind::hand_written) {
      return is_verified(spec.name, strategy, context.info().compute_capability);
    }
  }
  return true;
}

}  // namespace wide::bench
