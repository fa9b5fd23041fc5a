// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/select.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <regex>
#include <set>

#include "bench/cases/expand.hpp"
#include "bench/cases/filter.hpp"
#include "bench/cases/model_file.hpp"
#include "bench/cases/value_spec.hpp"
#include "bench/cases/where.hpp"
#include "bench/run/contender.hpp"
#include "bench/run/counting_allocator.hpp"
#include "host/core/check.hpp"
#include "host/core/strategy_choice.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

std::vector<AxisOverride> overrides_of(const Selection& selection) {
  std::vector<AxisOverride> overrides;
  for (const auto& [name, spec] : selection.axis_options) overrides.push_back({name, spec, false});
  for (const std::string& text : selection.axes) overrides.push_back(parse_override(text));
  std::set<std::string> seen;
  for (const AxisOverride& change : overrides) {
    if (!seen.insert(change.name).second)
      throw_invalid_argument("axis " + change.name + " is given twice");
  }
  return overrides;
}

std::vector<std::string_view> strategy_names(const catalog::PrimitiveSpec& spec) {
  std::vector<std::string_view> names{kAuto, kAutoUnverified};
  for (const catalog::StrategyInfo& info : spec.strategies) names.push_back(info.name);
  return names;
}

using Specs = std::vector<const catalog::PrimitiveSpec*>;

/// "simt:m16n64" must have a policy that simt has in at least one of the ops.
void check_policy(const char* option, const PlanOptions& options, const Specs& ops) {
  std::vector<std::string_view> known;
  for (const catalog::PrimitiveSpec* spec : ops) {
    for (const catalog::StrategyInfo& info : spec->strategies) {
      if (info.name != options.strategy) continue;
      known.insert(known.end(), info.policies.begin(), info.policies.end());
    }
  }
  if (std::find(known.begin(), known.end(), options.policy) != known.end()) return;
  const std::string where = "--" + std::string(option) + ": ";
  if (known.empty())
    throw_invalid_argument(where + "strategy " + options.strategy + " has no policies to name");
  throw_invalid_argument(where + catalog::unknown_name_message("policy", options.policy, known));
}

std::vector<std::string> checked_strategies(const char* option, const std::string& text,
                                            const std::vector<std::string_view>& known,
                                            const Specs& ops) {
  const auto names = text.empty() ? std::vector<std::string>() : parse_list(option, text);
  for (const std::string& name : names) {
    if (name == kAll) continue;
    const PlanOptions options = plan_options(name);
    if (std::find(known.begin(), known.end(), options.strategy) == known.end()) {
      throw_invalid_argument("--" + std::string(option) + ": " +
                             catalog::unknown_name_message("strategy", options.strategy, known));
    }
    if (name.find(':') != std::string::npos) check_policy(option, options, ops);
  }
  return names;
}

bool has_word(const catalog::PrimitiveSpec& spec, const std::string& axis,
              const std::string& word) {
  return std::any_of(spec.axes.begin(), spec.axes.end(), [&](const catalog::AxisInfo& info) {
    return info.name == axis && std::count(info.words.begin(), info.words.end(), word) > 0;
  });
}

/// A word that the primitive lacks and another has; empty: none.
std::string lacking_word(const catalog::PrimitiveSpec& spec, const Specs& ops,
                         const std::vector<AxisOverride>& overrides) {
  for (const AxisOverride& change : overrides) {
    const auto axis =
        std::find_if(spec.axes.begin(), spec.axes.end(),
                     [&](const catalog::AxisInfo& info) { return info.name == change.name; });
    if (axis == spec.axes.end() || axis->words.empty()) continue;
    for (const std::string& word : parse_list(change.name, change.spec)) {
      const auto has_it = [&](const auto* other) { return has_word(*other, change.name, word); };
      if (!has_it(&spec) && std::any_of(ops.begin(), ops.end(), has_it))
        return "there is no " + change.name + " " + word;
    }
  }
  return "";
}

/// Whether --where is a condition over this primitive's axes.
bool is_condition(const std::string& where, const catalog::PrimitiveSpec& spec) {
  try {
    (void)Where(where, spec);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Why one of all primitives is left out: it lacks what another has. Empty: it is not.
std::string lack_of(const catalog::PrimitiveSpec& spec, const Specs& ops,
                    const std::vector<AxisOverride>& overrides, const std::string& where) {
  std::string lack = lacking_word(spec, ops, overrides);
  if (lack.empty() && !is_condition(where, spec))
    lack = "--where \"" + where + "\" names an axis or a word that it lacks";
  const bool fits_another = std::any_of(ops.begin(), ops.end(), [&](const auto* other) {
    return lacking_word(*other, ops, overrides).empty() && is_condition(where, *other);
  });
  return fits_another ? lack : "";
}

template <class Enum>
std::vector<std::string_view> names_of(std::initializer_list<Enum> values) {
  std::vector<std::string_view> names;
  for (const Enum value : values) names.push_back(to_string(value));
  return names;
}

/// The value of `values` with this name; otherwise an error that lists them.
template <class Enum>
Enum find_named(const char* option, const std::string& name, std::initializer_list<Enum> values) {
  for (const Enum value : values) {
    if (to_string(value) == name) return value;
  }
  throw_invalid_argument("--" + std::string(option) + ": " +
                         catalog::unknown_name_message(option, name, names_of(values)));
}

/// As find_primitive(), but a name that was meant as a file's path says what such a path has.
const catalog::PrimitiveSpec& find_spec(const std::string& name) {
  try {
    return catalog::find_primitive(name);
  } catch (const Error& error) {
    if (!name.starts_with("model:")) throw;
    throw Error(error.code(),
                std::string(error.what()) + " (files have a slash in their path, or end in .onnx)");
  }
}

}  // namespace

Context select_context(const Selection& selection) {
  const std::string& device = selection.device;
  if (device == "cpu" || (device.empty() && (selection.no_gpu || query_cuda().num_devices == 0)))
    return Context::cpu({0, std::make_shared<CountingAllocator>(Context::cpu())});
  int ordinal = 0;
  if (!device.empty() && device != "cuda") {
    const bool has_ordinal = device.starts_with("cuda:");
    const auto [end, error] = std::from_chars(
        device.data() + 5, device.data() + std::max<size_t>(5, device.size()), ordinal);
    if (!has_ordinal || error != std::errc() || end != device.data() + device.size() ||
        ordinal < 0) {
      throw_invalid_argument("--device: \"" + device + "\", expected cpu, cuda or cuda:K");
    }
  }
  if (selection.no_gpu) throw_invalid_argument("--device " + device + " contradicts --no-gpu");
  return Context::cuda(ordinal, {std::make_shared<CountingAllocator>(Context::cuda(ordinal))});
}

std::vector<const catalog::PrimitiveSpec*> select_ops(const std::string& ops) {
  std::vector<const catalog::PrimitiveSpec*> specs;
  for (const std::string& name : parse_list("op", ops)) {
    if (name == kAll) {
      specs.insert(specs.end(), catalog::primitives().begin(), catalog::primitives().end());
    } else if (name == "model:all") {
      const auto models = catalog::models();
      specs.insert(specs.end(), models.begin(), models.end());
    } else {
      if (is_model_file(name)) load_model_file(name);
      specs.push_back(&find_spec(name));
    }
  }
  return specs;
}

void load_model_files(const std::string& ops, const ModelFileOptions& options) {
  bool has_file = false;
  for (const std::string& name : ops.empty() ? std::vector<std::string>() : parse_list("op", ops)) {
    if (!is_model_file(name)) continue;
    has_file = true;
    load_model_file(name, options);
  }
  if (!has_file && !options.empty()) {
    throw Error(ErrorCode::invalid_argument,
                options.words().substr(1) + " is of a model's file, which is not given");
  }
}

std::string with_models(const std::string& ops, const std::string& models) {
  std::string all = ops;
  if (models.empty()) return all;
  for (const std::string& name : parse_list("model", models)) {
    all +=
        (all.empty() ? "" : ",") + std::string(name.starts_with("model:") ? "" : "model:") + name;
  }
  return all;
}

std::optional<std::vector<std::string>> select_strategies(
    const Selection& selection, const std::vector<const catalog::PrimitiveSpec*>& ops,
    DeviceType device) {
  std::set<std::string_view> all;
  for (const catalog::PrimitiveSpec* spec : ops) {
    for (const std::string_view name : strategy_names(*spec)) all.insert(name);
  }
  const std::vector<std::string_view> known(all.begin(), all.end());
  std::vector<std::string> names = checked_strategies("strategy", selection.strategies, known, ops);
  for (std::string& name : checked_strategies("only", selection.only, known, ops)) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  const auto skipped = checked_strategies("skip", selection.skip, known, ops);
  const bool are_all = names.empty() || std::erase(names, kAll) > 0;
  if (names.empty() && skipped.empty()) return std::nullopt;
  if (are_all) {
    for (const catalog::PrimitiveSpec* spec : ops) {
      for (const catalog::StrategyInfo& info : spec->strategies) {
        const bool is_named = std::find(names.begin(), names.end(), info.name) != names.end();
        if (info.device == device && !is_named) names.emplace_back(info.name);
      }
    }
  }
  const auto is_skipped = [&](std::string_view name) {
    return std::find(skipped.begin(), skipped.end(), name) != skipped.end();
  };
  std::erase_if(names, [&](const auto& name) { return is_skipped(kAll) || is_skipped(name); });
  return names;
}

std::vector<Regime> select_regimes(const std::string& names, DeviceType device) {
  const bool is_cpu = device == DeviceType::cpu;
  if (names.empty()) return default_regimes(device);
  std::vector<Regime> regimes;
  const auto known = {Regime::cold, Regime::graph, Regime::stream, Regime::cpu};
  for (const std::string& name : parse_list("regime", names, names_of(known))) {
    const Regime regime = find_named("regime", name, known);
    if (has_regime(device, regime)) regimes.push_back(regime);
  }
  if (regimes.empty()) {
    throw_invalid_argument(
        "--regime: \"" + names + "\" has none of this device, expected " +
        (is_cpu ? "cpu (cold, graph and stream are CUDA's)" : "cold, graph, stream or cpu"));
  }
  return regimes;
}

std::vector<Baseline> select_baselines(const std::string& names,
                                       const std::vector<Regime>& regimes) {
  if (names == "none") return {};
  std::vector<Baseline> baselines;
  bool has_partner = names.empty();
  const std::string list = names.empty() ? std::string(kAll) : names;
  for (const std::string& name : parse_list("baseline", list, names_of(kOwnBaselines))) {
    const Baseline baseline = find_named("baseline", name, kOwnBaselines);
    baselines.push_back(baseline);
    // On the CPU, streams would be the loop under another name.
    for (const Regime regime : regimes) {
      has_partner = has_partner || (is_partner(baseline, regime) &&
                                    (regime != Regime::cpu || baseline == Baseline::loop));
    }
  }
  if (!has_partner) {
    throw_invalid_argument(
        "--baseline: \"" + names + "\" pairs with none of the regimes, expected " +
        (regimes.front() == Regime::graph ? "graph, streams" : "loop") + " or none");
  }
  return baselines;
}

std::string select_work(const Selection& selection, RunPlan& plan, RunResult& result) {
  const auto ops = select_ops(selection.ops);
  const auto overrides = overrides_of(selection);
  const std::regex filter = parse_filter(selection.filter);
  const DeviceType device = plan.context.device().type;
  plan.config.regimes = select_regimes(selection.regimes, device);
  plan.baselines = select_baselines(selection.baselines, plan.config.regimes);
  const auto strategies = select_strategies(selection, ops, device);
  plan.strategies = strategies.value_or(std::vector<std::string>());
  const auto names = parse_list("op", selection.ops);
  const bool are_all = std::find(names.begin(), names.end(), kAll) != names.end();
  size_t num_cases = 0, num_filtered = 0;
  for (const catalog::PrimitiveSpec* spec : ops) {
    const std::string lack = are_all ? lack_of(*spec, ops, overrides, selection.where) : "";
    if (!lack.empty()) {
      result.impossible_reasons.emplace_back(std::string(spec->name) + ": " + lack, 1);
      ++result.impossible_cases;
      continue;
    }
    Expansion expansion = expand(*spec, catalog::find_sweep(*spec, selection.preset), overrides);
    const Where where(selection.where, *spec);
    num_filtered += std::erase_if(expansion.cases, [&](const catalog::Case& point) {
      return !std::regex_search(point.op() + " " + point.to_string(), filter) ||
             !where.holds(point);
    });
    for (const auto& [reason, count] : expansion.impossible) {
      result.impossible_reasons.emplace_back(std::string(spec->name) + ": " + reason, count);
      result.impossible_cases += count;
    }
    num_cases += expansion.cases.size();
    plan.work.emplace_back(spec, std::move(expansion.cases));
  }
  if (strategies && strategies->empty()) return "--skip leaves no strategy";
  if (num_cases > 0) return "";
  if (num_filtered == 0) return "all points are impossible";
  std::string options;
  if (!selection.filter.empty()) options = "--filter \"" + selection.filter + "\"";
  if (!selection.where.empty())
    options += (options.empty() ? "" : " and ") + ("--where \"" + selection.where + "\"");
  return "no case matches " + options;
}

void sample_cases(RunPlan& plan, int64_t count, uint64_t seed) {
  int64_t left = plan.num_cases();
  std::mt19937_64 random(seed);
  // Each remaining case is equally likely to be one of those still to be taken.
  for (auto& [spec, cases] : plan.work) {
    std::erase_if(cases, [&](const catalog::Case&) {
      const bool is_taken = random() % static_cast<uint64_t>(left--) <
                            static_cast<uint64_t>(std::max<int64_t>(0, count));
      count -= is_taken ? 1 : 0;
      return !is_taken;
    });
  }
}

}  // namespace wide::bench
