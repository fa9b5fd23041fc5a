// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The choice among strategies of which one is preferred to another, as primitives make it whose
// strategies are made of other primitives'. A pure function.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/verified.hpp"
#include "wide/device.hpp"

namespace wide {

template <class Strategy>
struct StrategyChoice {
  Strategy strategy{};
  std::string explain;
};

/// A strategy on its way to be chosen.
template <class Strategy>
struct StrategyOffer {
  Strategy strategy{};
  std::string_view why{};       ///< what "auto" says of it
  bool needs_evidence = false;  ///< "auto" takes it where it is verified on the device alone
};

/// `offers` are all of the device's strategies, the best first; the last one is what "auto" is
/// where no other takes the problem. `reason_against(strategy)` is empty where one can run. Throws
/// invalid_argument for an unknown name, unsupported with the reason for one that cannot run.
template <class Strategy, class Reason>
StrategyChoice<Strategy> choose_in_order(std::string_view primitive, const DeviceInfo& device,
                                         std::string_view name,
                                         std::span<const VerifiedStrategy> verified,
                                         std::initializer_list<StrategyOffer<Strategy>> offers,
                                         const Reason& reason_against) {
  std::vector<std::string_view> known{"auto"};
  for (const auto& offer : offers) known.insert(known.begin() + 1, strategy_name(offer.strategy));
  require_known_strategy(primitive, name, known);

  std::string why_not;
  for (const auto& offer : offers) {
    const std::string own(strategy_name(offer.strategy));
    const bool is_named = name == own, is_last = &offer + 1 == offers.end();
    if (name != "auto" && !is_named) continue;
    const std::string reason = reason_against(offer.strategy);
    if (!reason.empty() && (is_named || is_last)) {
      throw_unsupported(std::string(primitive) + ": " + reason);
    }
    if (is_named) return {offer.strategy, own + ": asked for by name"};
    const bool is_proved = !offer.needs_evidence ||
                           is_verified_in(verified, primitive, own, device.compute_capability);
    if (reason.empty() && is_proved) {
      return {offer.strategy,
              own + (offer.why.empty() ? "" : ": ") + std::string(offer.why) + why_not};
    }
    why_not += "; " + (reason.empty() ? own + " is unverified on compute capability " +
                                            std::to_string(device.compute_capability)
                                      : reason);
  }
  return {};  // not reached: the name is known
}

}  // namespace wide
