// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/strategy_choice.hpp"

#include <algorithm>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/tuned_choice.hpp"

namespace wide {

namespace {

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string unverified_text(const DeviceInfo& device) {
  return "unverified on compute capability " + std::to_string(device.compute_capability);
}

/// Why strategies were passed over, each once, in the order of the table.
class PassedOver {
 public:
  void add(std::string_view name, const std::string& reason) {
    const bool is_told = std::any_of(list_.begin(), list_.end(),
                                     [&](const auto& known) { return known.first == name; });
    if (!is_told) list_.emplace_back(name, reason);
  }
  void drop(std::string_view name) {
    std::erase_if(list_, [&](const auto& known) { return known.first == name; });
  }
  void drop(std::string_view name, const std::string& reason) {
    std::erase(list_, std::pair(name, reason));
  }
  bool has(const std::string& reason) const {
    return std::any_of(list_.begin(), list_.end(),
                       [&](const auto& known) { return known.second == reason; });
  }

  /// Those with the same reason together: "; simt, gemv: it runs on the CPU only".
  std::string text() const {
    std::vector<std::pair<std::string, std::string>> groups;  // reason, names
    for (const auto& one : list_) {  // clang before 16 captures no structured binding
      const auto group = std::find_if(groups.begin(), groups.end(),
                                      [&](const auto& known) { return known.first == one.second; });
      if (group == groups.end()) {
        groups.emplace_back(one.second, one.first);
      } else {
        group->second += ", " + std::string(one.first);
      }
    }
    std::string text;
    for (const auto& [reason, names] : groups) text += "; " + names + ": " + reason;
    return text;
  }

 private:
  std::vector<std::pair<std::string_view, std::string>> list_;
};

ChosenCandidate choose_by_name(const StrategyRequest& request,
                               std::span<const StrategyCandidate> candidates) {
  const auto found = std::find_if(
      candidates.begin(), candidates.end(),
      [&](const StrategyCandidate& candidate) { return candidate.name == request.name; });
  const std::string name(request.name);
  const std::string reason = found->unsupported_reason();
  if (!reason.empty()) {
    throw_unsupported(std::string(request.primitive) + ": strategy " + name +
                      " cannot run this problem: " + reason);
  }
  std::string explain = name + ": asked for by name";
  if (launches_own_kernel(request, *found)) {
    explain += "; " + member_text(request);
  } else if (!is_proved(request, *found)) {
    explain += "; " + unverified_text(request.device);
  }
  return {static_cast<size_t>(found - candidates.begin()), std::move(explain)};
}

std::string explain_automatic(const StrategyRequest& request, const StrategyCandidate& chosen,
                              std::string_view why, PassedOver passed) {
  const std::string name = std::string(chosen.name) + ": ";
  passed.drop(chosen.name);  // for what another row takes it
  if (!launches_own_kernel(request, chosen)) {
    const std::string unverified =
        is_proved(request, chosen) ? "" : ", " + unverified_text(request.device);
    return name + std::string(why) + unverified + passed.text();
  }
  std::string explain = name + member_text(request);
  if (!request.is_verified(request.member_kernel)) {
    explain += "; no vendor's library can run it";
    passed.drop(request.member_kernel, unverified_text(request.device));  // already reported
  }
  return explain + passed.text();
}

ChosenCandidate choose_by_table(const StrategyRequest& request,
                                std::span<const StrategyCandidate> candidates) {
  const std::string unverified = unverified_text(request.device);
  PassedOver passed, all;      // `passed`: what was expected to win
  std::vector<size_t> slower;  // taken if nothing else is left
  for (size_t i = 0; i < candidates.size(); ++i) {
    const StrategyCandidate& candidate = candidates[i];
    if (candidate.why.empty()) continue;
    std::string reason = candidate.unsupported_reason();
    if (reason.empty() && !may_take(request, candidate)) reason = unverified;
    if (reason.empty() && !candidate.is_expected_to_win()) {
      slower.push_back(i);
      continue;
    }
    if (reason.empty()) reason = candidate.vendor_refusal("");
    if (reason.empty()) return {i, explain_automatic(request, candidate, candidate.why, passed)};
    all.add(candidate.name, reason);
    if (candidate.is_expected_to_win()) passed.add(candidate.name, reason);
  }
  for (const size_t i : slower) {
    const std::string refusal = candidates[i].vendor_refusal("");
    if (refusal.empty()) {
      return {i, explain_automatic(request, candidates[i],
                                   "nothing that is expected to be faster can run it", passed)};
    }
    all.add(candidates[i].name, refusal);
  }
  throw_unsupported(std::string(request.primitive) + ": no strategy for \"auto\"" + all.text() +
                    (all.has(unverified) ? "; ask for an unverified one by name, or for \"" +
                                               std::string(kAutoUnverified) + "\""
                                         : ""));
}

ChosenCandidate choose_automatically(const StrategyRequest& request,
                                     std::span<const StrategyCandidate> candidates) {
  std::string why_not;
  if (auto tuned = tuned_candidate(request, candidates, why_not)) return std::move(*tuned);
  ChosenCandidate chosen = choose_by_table(request, candidates);
  if (!why_not.empty()) chosen.explain += "; " + why_not;
  return chosen;
}

}  // namespace

bool is_proved(const StrategyRequest& request, const StrategyCandidate& candidate) {
  return request.device.device.type == DeviceType::cpu || candidate.is_vendors ||
         candidate.name == "sequential" || request.is_verified(candidate.name);
}

bool may_take(const StrategyRequest& request, const StrategyCandidate& candidate) {
  return request.name == kAutoUnverified || is_proved(request, candidate);
}

bool launches_own_kernel(const StrategyRequest& request, const StrategyCandidate& candidate) {
  return candidate.name == "sequential" && !request.member_kernel.empty() &&
         request.device.device.type == DeviceType::cuda;
}

std::string member_text(const StrategyRequest& request) {
  const bool is_verified = request.is_verified(request.member_kernel);
  return "a launch per member of " +
         own_kernel_text(request.member_kernel, is_verified, request.device);
}

std::function<bool(std::string_view)> verified_by(std::span<const VerifiedStrategy> verified,
                                                  std::string_view op, const DeviceInfo& device) {
  return [verified, op, capability = device.compute_capability](std::string_view strategy) {
    return is_verified_in(verified, op, strategy, capability);
  };
}

std::string own_kernel_text(std::string_view kernel, bool is_verified, const DeviceInfo& device) {
  return std::string(kernel) + (is_verified ? "" : ", which is " + unverified_text(device));
}

std::string other_device_reason(std::string_view strategy, const DeviceInfo& device) {
  if (strategy == "sequential") return "";
  const bool is_cpus = strategy == "wide";
  if (is_cpus == (device.device.type == DeviceType::cpu)) return "";
  return is_cpus ? "it runs on the CPU only" : "it runs on CUDA devices only";
}

std::string part_strategies_text(std::span<const std::string> names) {
  const bool is_one =
      std::ranges::all_of(names, [&](const auto& name) { return name == names[0]; });
  std::string text;
  for (const std::string& name :
       names.first(is_one ? std::min<size_t>(names.size(), 1) : names.size())) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string unless_told(std::string_view explain, const std::string& reason) {
  return explain.find(reason) == std::string_view::npos ? ": " + reason : "";
}

std::string kernel_device_reason(const DeviceInfo& device) {
  if (device.compute_capability >= 80) return "";
  return "it needs compute capability 8.0 and later, " + device.name + " has " +
         std::to_string(device.compute_capability / 10) + "." +
         std::to_string(device.compute_capability % 10);
}

ChosenCandidate choose_candidate(const StrategyRequest& request,
                                 std::span<const StrategyCandidate> candidates,
                                 std::span<const std::string_view> elsewhere) {
  std::vector<std::string_view> known{kAuto, kAutoUnverified};
  for (const StrategyCandidate& candidate : candidates) {
    if (!is_among(known, candidate.name)) known.push_back(candidate.name);
  }
  if (is_among(elsewhere, request.name) && !is_among(known, request.name)) {
    const bool is_cpu = request.device.device.type == DeviceType::cpu;
    throw_unsupported(std::string(request.primitive) + ": strategy is \"" +
                      std::string(request.name) + "\", which runs on " +
                      (is_cpu ? "CUDA devices" : "the CPU") + " only" +
                      expected_name(request.name, known));
  }
  require_known_strategy(request.primitive, request.name, known);
  return is_automatic(request.name) ? choose_automatically(request, candidates)
                                    : choose_by_name(request, candidates);
}

}  // namespace wide
