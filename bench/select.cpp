// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/select.hpp"

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>

#include "bench/expand.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

std::vector<AxisOverride> overrides_of(const Selection& selection) {
  std::vector<AxisOverride> overrides;
  for (const auto& [name, spec] : selection.axis_options) overrides.push_back({name, spec, false});
  for (const std::string& text : selection.axes) overrides.push_back(parse_override(text));
  std::set<std::string> seen;
  for (const AxisOverride& change : overrides) {
    if (!seen.insert(change.name).second) refuse("axis " + change.name + " is given twice");
  }
  return overrides;
}

std::vector<std::string_view> strategy_names(const catalog::PrimitiveSpec& spec) {
  std::vector<std::string_view> names{"auto"};
  for (const catalog::StrategyInfo& info : spec.strategies) names.push_back(info.name);
  return names;
}

/// --strategy and --only name strategies, --skip takes some away; every name must be one of some
/// op.
std::vector<std::string> select_strategies(const Selection& selection,
                                           const std::vector<const catalog::PrimitiveSpec*>& ops,
                                           DeviceType device) {
  std::vector<std::string_view> known;
  for (const catalog::PrimitiveSpec* spec : ops) {
    for (const std::string_view name : strategy_names(*spec)) known.push_back(name);
  }
  const auto checked = [&](const char* option, const std::string& text) {
    const auto names = text.empty() ? std::vector<std::string>() : parse_list(option, text);
    for (const std::string& name : names) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        std::sort(known.begin(), known.end());
        known.erase(std::unique(known.begin(), known.end()), known.end());
        refuse("--" + std::string(option) + ": " +
               catalog::unknown_name_message("strategy", name, known));
      }
    }
    return names;
  };
  std::vector<std::string> names = checked("strategy", selection.strategies);
  for (const std::string& name : checked("only", selection.only)) names.push_back(name);
  const std::vector<std::string> skipped = checked("skip", selection.skip);
  if (names.empty() && !skipped.empty()) {
    for (const catalog::PrimitiveSpec* spec : ops) {
      for (const catalog::StrategyInfo& info : spec->strategies) {
        const bool is_new = std::find(names.begin(), names.end(), info.name) == names.end();
        if (info.device == device && is_new) names.emplace_back(info.name);
      }
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::find(skipped.begin(), skipped.end(), name) != skipped.end();
  });
  return names;
}

std::vector<Baseline> select_baselines(const std::string& text) {
  if (text == "none") return {};
  static constexpr Baseline kAll[] = {Baseline::loop, Baseline::streams, Baseline::graph};
  static constexpr std::string_view kNames[] = {"loop", "streams", "graph", "none"};
  std::vector<Baseline> baselines;
  for (const std::string& name : parse_list("baseline", text)) {
    const auto found = std::find_if(std::begin(kAll), std::end(kAll),
                                    [&](Baseline b) { return to_string(b) == name; });
    if (found == std::end(kAll))
      refuse("--baseline: " + catalog::unknown_name_message("baseline", name, kNames));
    baselines.push_back(*found);
  }
  return baselines;
}

}  // namespace

Context select_context(const Selection& selection) {
  const std::string& device = selection.device;
  if (device == "cpu" || (device.empty() && (selection.no_gpu || query_cuda().num_devices == 0)))
    return Context::cpu();
  int ordinal = 0;
  if (!device.empty() && device != "cuda") {
    const bool has_ordinal = device.starts_with("cuda:");
    const auto [end, error] = std::from_chars(
        device.data() + 5, device.data() + std::max<size_t>(5, device.size()), ordinal);
    if (!has_ordinal || error != std::errc() || end != device.data() + device.size()) {
      refuse("--device: \"" + device + "\", expected cpu, cuda or cuda:K");
    }
  }
  if (selection.no_gpu) refuse("--device " + device + " contradicts --no-gpu");
  return Context::cuda(ordinal);
}

std::vector<const catalog::PrimitiveSpec*> select_ops(const std::string& ops) {
  std::vector<const catalog::PrimitiveSpec*> specs;
  if (ops == "all") return {catalog::primitives().begin(), catalog::primitives().end()};
  for (const std::string& name : parse_list("op", ops))
    specs.push_back(&catalog::find_primitive(name));
  return specs;
}

std::vector<Regime> select_regimes(const std::string& names, DeviceType device) {
  if (device == DeviceType::cpu) return {Regime::cpu};
  static constexpr Regime kAll[] = {Regime::stream, Regime::graph};
  static constexpr std::string_view kNames[] = {"stream", "graph"};
  std::vector<Regime> regimes;
  for (const std::string& name : parse_list("regime", names)) {
    if (name == "cold")
      refuse("--regime: cold is not supported by this version, expected stream or graph");
    if (name == "cpu")
      refuse("--regime: cpu is the regime of --device cpu, expected stream or graph");
    const auto found = std::find_if(std::begin(kAll), std::end(kAll),
                                    [&](Regime r) { return to_string(r) == name; });
    if (found == std::end(kAll))
      refuse("--regime: " + catalog::unknown_name_message("regime", name, kNames));
    regimes.push_back(*found);
  }
  return regimes;
}

void select_work(const Selection& selection, RunPlan& plan, RunResult& result) {
  const auto ops = select_ops(selection.ops);
  const auto overrides = overrides_of(selection);
  std::regex filter;
  try {
    filter = std::regex(selection.filter);
  } catch (const std::regex_error& error) {
    refuse("--filter: \"" + selection.filter + "\": " + error.what());
  }
  for (const catalog::PrimitiveSpec* spec : ops) {
    Expansion expansion = expand(*spec, catalog::find_sweep(*spec, selection.preset), overrides);
    std::erase_if(expansion.cases, [&](const catalog::Case& point) {
      return !std::regex_search(point.op() + " " + point.to_string(), filter);
    });
    for (const auto& [reason, count] : expansion.impossible) {
      result.impossible_reasons.emplace_back(std::string(spec->name) + ": " + reason, count);
      result.impossible_cases += count;
    }
    plan.work.emplace_back(spec, std::move(expansion.cases));
  }
  plan.strategies = select_strategies(selection, ops, plan.context.device().type);
  plan.baselines = select_baselines(selection.baselines);
}

}  // namespace wide::bench
