// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Functions of all members' outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

/// How the members' outputs are combined.
enum class EnsembleFunction : uint8_t {
  mean,
  variance,      ///< the unbiased one, over members
  vote,          ///< per feature, the share of members where it is the largest
  log_mean_exp,  ///< of log-probabilities: the log of the mean probability
  sum,           ///< as of the experts that a row was routed to
};

constexpr std::string_view ensemble_function_name(EnsembleFunction function) {
  switch (function) {
    case EnsembleFunction::mean:
      return "mean";
    case EnsembleFunction::variance:
      return "variance";
    case EnsembleFunction::vote:
      return "vote";
    case EnsembleFunction::log_mean_exp:
      return "log_mean_exp";
    case EnsembleFunction::sum:
      return "sum";
  }
  return "?";
}

inline constexpr auto kAllEnsembleFunctions =
    enumerators<EnsembleFunction, ensemble_function_name>();

constexpr std::optional<EnsembleFunction> parse_ensemble_function(std::string_view name) {
  return parse_enumerator(name, kAllEnsembleFunctions, ensemble_function_name);
}

inline constexpr int64_t kMaxVoters = 4096;  ///< members of a vote

}  // namespace wide
