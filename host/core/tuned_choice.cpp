// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/tuned_choice.hpp"

#include <algorithm>

#include "host/core/text.hpp"

namespace wide {

namespace {

constexpr std::string_view kTuned = ": tuned: ";

/// A kernel of ours that `sequential` launches needs proof like any other.
bool has_proof(const StrategyRequest& request, const StrategyCandidate& candidate) {
  if (launches_own_kernel(request, candidate) && request.name != kAutoUnverified) {
    return request.is_verified(request.member_kernel);
  }
  return may_take(request, candidate);
}

/// Empty where it can.
std::string policy_reason(const StrategyRequest& request, const TuningEntry& entry) {
  if (request.policy_reason) return request.policy_reason(entry.strategy, entry.policy);
  return entry.policy.empty() ? "" : "it has no policies, the entry has " + entry.policy;
}

std::string explain_tuned(const StrategyRequest& request, const TuningEntry& entry) {
  const std::string candidates = std::to_string(entry.num_candidates) + " candidates";
  return entry.strategy + std::string(kTuned) + text(entry.time_us, 4) + " us" +
         (entry.policy.empty() ? "" : " with " + entry.policy) + " on " + request.device.name +
         (entry.is_autos_own ? ", auto's own choice: no other of " + candidates + " was faster"
                             : ", the fastest of " + candidates);
}

}  // namespace

bool explains_tuned(std::string_view explain) {
  return explain.find(kTuned) != std::string_view::npos;
}

std::optional<ChosenCandidate> tuned_candidate(const StrategyRequest& request,
                                               std::span<const StrategyCandidate> candidates,
                                               std::string& why_not) {
  const Tuning& tuning = request.tuning;
  if (tuning.cache == nullptr) return std::nullopt;
  const TuningEntry* entry = tuning.cache->find(request.device, request.primitive, tuning.problem);
  if (entry == nullptr) {
    why_not = "not in the tuning cache";
    return std::nullopt;
  }
  const auto refuse = [&](const std::string& why) {
    why_not = "tuned " + entry->strategy + " not taken: " + why;
    return std::nullopt;
  };
  // The last of its rows, which has the least conditions.
  const auto found = std::find_if(
      candidates.rbegin(), candidates.rend(),
      [&](const StrategyCandidate& candidate) { return candidate.name == entry->strategy; });
  if (found == candidates.rend()) return refuse("this build has no such strategy");
  std::string reason = found->unsupported_reason();
  if (reason.empty()) reason = policy_reason(request, *entry);
  if (!reason.empty()) return refuse(reason);
  const bool was_checked = !tuning.kernel_hash.empty() && entry->kernel_hash == tuning.kernel_hash;
  if (!was_checked && !has_proof(request, *found)) {
    return refuse("its kernels have changed since, and it is not verified on this device");
  }
  reason = found->vendor_refusal(entry->policy);
  if (!reason.empty()) return refuse(reason);
  std::string explain = explain_tuned(request, *entry);
  if (launches_own_kernel(request, *found)) explain += "; " + member_text(request);
  return ChosenCandidate{static_cast<size_t>(candidates.rend() - found - 1), std::move(explain),
                         entry->policy};
}

}  // namespace wide
