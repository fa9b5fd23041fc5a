// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The choice of a strategy, by name or "auto", from a primitive's table of them. Pure functions.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/core/verified.hpp"
#include "wide/device.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// Names that are not strategies but choose one: among the verified ones, or among all as if they
/// were verified.
inline constexpr std::string_view kAuto = "auto", kAutoUnverified = "auto_unverified";
inline bool is_automatic(std::string_view name) {
  return name == kAuto || name == kAutoUnverified;
}

template <class Strategy>
struct StrategyChoice {
  Strategy strategy{};
  std::string explain;   ///< one line
  std::string policy{};  ///< a tuning cache's; empty: the strategy's own choice
};

/// A strategy on one kind of device. A table has them in the order in which "auto" prefers them; a
/// strategy may appear twice, for what it is best for and for the rest.
template <class Strategy, class Problem>
struct StrategyRow {
  Strategy strategy{};
  DeviceType device = DeviceType::cuda;
  bool is_vendors = false;  ///< needs no evidence of ours, and may be refused by the vendor
  std::string_view why{};   ///< what "auto" says of it; empty: it is taken by name alone
  /// Where "auto" takes it although others remain; null: everywhere.
  bool (*is_expected_to_win)(const Problem& problem, const DeviceInfo& device) = nullptr;
};

/// The tuning cache that "auto" asks first, and for what.
struct Tuning {
  const TuningCache* cache = nullptr;  ///< null: "auto" asks none
  std::string problem{};               ///< problem_key() of it, see host/core/tuned_choice.hpp
  std::string_view kernel_hash{};      ///< of the primitive's kernels, as this build has them
};

/// Why a strategy has no such policy, or cannot run the problem by it; empty where it can.
using PolicyReason = std::function<std::string(std::string_view strategy, std::string_view policy)>;

struct StrategyRequest {
  std::string_view primitive;
  const DeviceInfo& device;
  std::string_view name;  ///< a strategy's, or that of an automatic choice
  std::function<bool(std::string_view strategy)> is_verified;  ///< on this device
  /// The kernel of ours that `sequential` launches for each member on CUDA; empty where that may be
  /// a vendor's call.
  std::string_view member_kernel{};
  Tuning tuning{};
  PolicyReason policy_reason{};  ///< null where strategies have no policies
};

/// StrategyRequest::is_verified by a table of evidence.
std::function<bool(std::string_view)> verified_by(std::span<const VerifiedStrategy> verified,
                                                  std::string_view op, const DeviceInfo& device);

/// "simt, which is unverified on compute capability 90", or "simt" alone where it is verified.
std::string own_kernel_text(std::string_view kernel, bool is_verified, const DeviceInfo& device);

/// Why the strategy does not run on the device, for primitives whose `sequential` runs on both,
/// `wide` on the CPU and all others on CUDA; empty where it does.
std::string other_device_reason(std::string_view strategy, const DeviceInfo& device);

/// What an explanation says of the parts that a strategy has, in their order: "simt, gemv, simt",
/// or one name where all have it.
std::string part_strategies_text(std::span<const std::string> names);

/// ": REASON" behind what an explanation says already; nothing where that has the reason.
std::string unless_told(std::string_view explain, const std::string& reason);

/// Why nothing that is built for compute capability 8.0 runs on the device; empty where it does.
std::string kernel_device_reason(const DeviceInfo& device);

/// A row without its types. The functions are called only where the choice depends on them.
struct StrategyCandidate {
  std::string_view name;
  bool is_vendors;
  std::string_view why;
  std::function<std::string()> unsupported_reason;
  std::function<std::string(std::string_view policy)> vendor_refusal;
  std::function<bool()> is_expected_to_win;
};
struct ChosenCandidate {
  size_t index = 0;
  std::string explain, policy{};
};
/// `elsewhere`: names of strategies of other kinds of devices.
ChosenCandidate choose_candidate(const StrategyRequest& request,
                                 std::span<const StrategyCandidate> candidates,
                                 std::span<const std::string_view> elsewhere);

/// Whether the candidate is the CPU's, the vendor's, `sequential` or verified.
bool is_proved(const StrategyRequest& request, const StrategyCandidate& candidate);
/// Whether the automatic choice that is asked for may take the candidate.
bool may_take(const StrategyRequest& request, const StrategyCandidate& candidate);
/// Whether a kernel of ours is launched for each member, and which, in words.
bool launches_own_kernel(const StrategyRequest& request, const StrategyCandidate& candidate);
std::string member_text(const StrategyRequest& request);

/// The strategy of that name; of "auto" what the tuning cache has, see host/core/tuned_choice.hpp;
/// else the first in the table that can run the problem, is expected to win, and is verified, the
/// vendor's and not refused, `sequential` or the CPU's; else the first of those that are not
/// expected to win. "auto_unverified" is "auto" with everything counted as verified.
/// `unsupported_reason` and `vendor_refusal` say why not, and are empty where it can; the latter,
/// which may take seconds, is called only for a strategy that is taken if it is empty, with the
/// tuning cache's policy if it is that one's. Throws
/// invalid_argument for an unknown name, unsupported with the reasons for a strategy that cannot
/// run, if only because it is another device's, or where none is left.
template <class Strategy, class Problem>
StrategyChoice<Strategy> choose_strategy(
    const StrategyRequest& request, std::span<const StrategyRow<Strategy, Problem>> table,
    const Problem& problem,
    std::string (*unsupported_reason)(Strategy, const Problem&, const DeviceInfo&),
    const std::function<std::string(Strategy, std::string_view policy)>& vendor_refusal = nullptr) {
  const DeviceInfo& device = request.device;
  std::vector<Strategy> strategies;
  std::vector<StrategyCandidate> candidates;
  std::vector<std::string_view> elsewhere;
  for (const StrategyRow<Strategy, Problem>& row : table) {
    if (row.device != device.device.type) {
      elsewhere.push_back(strategy_name(row.strategy));
      continue;
    }
    strategies.push_back(row.strategy);
    candidates.push_back({strategy_name(row.strategy), row.is_vendors, row.why,
                          [&] { return unsupported_reason(row.strategy, problem, device); },
                          [&](std::string_view policy) {
                            return row.is_vendors && vendor_refusal
                                       ? vendor_refusal(row.strategy, policy)
                                       : std::string();
                          },
                          [&] {
                            return row.is_expected_to_win == nullptr ||
                                   row.is_expected_to_win(problem, device);
                          }});
  }
  ChosenCandidate chosen = choose_candidate(request, candidates, elsewhere);
  return {strategies[chosen.index], std::move(chosen.explain), std::move(chosen.policy)};
}

}  // namespace wide
