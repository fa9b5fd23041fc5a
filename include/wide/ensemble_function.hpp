// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions of all members' outputs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wide {

/// How the members' outputs are combined.
enum class Ensemble : uint8_t {
  mean,
  variance,      ///< the unbiased one, over members
  vote,          ///< per feature, the share of members where it is the largest
  log_mean_exp,  ///< of log-probabilities: the log of the mean probability
};

inline constexpr std::array<Ensemble, 4> kAllEnsembles{Ensemble::mean, Ensemble::variance,
                                                       Ensemble::vote, Ensemble::log_mean_exp};

constexpr std::string_view ensemble_name(Ensemble ensemble) {
  switch (ensemble) {
    case Ensemble::mean:
      return "mean";
    case Ensemble::variance:
      return "variance";
    case Ensemble::vote:
      return "vote";
    case Ensemble::log_mean_exp:
      return "log_mean_exp";
  }
  return "?";
}

constexpr std::optional<Ensemble> parse_ensemble(std::string_view name) {
  for (const Ensemble ensemble : kAllEnsembles) {
    if (ensemble_name(ensemble) == name) return ensemble;
  }
  return std::nullopt;
}

inline constexpr int64_t kMostVoters = 4096;  ///< members of a vote

}  // namespace wide
