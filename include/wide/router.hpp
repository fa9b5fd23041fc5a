// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Who decides which members run a row of a routed model.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

/// By this a routed model has other inputs after the graph's (ModelProblem::router).
enum class Router : uint8_t {
  ids,        ///< the caller: `member_ids`
  gated_ids,  ///< the caller, who also says how much each counts: `member_ids` and `gates`
  scores,     ///< the model, which takes the members with a row's largest `scores`
};

constexpr std::string_view router_name(Router router) {
  switch (router) {
    case Router::ids:
      return "ids";
    case Router::gated_ids:
      return "gated_ids";
    case Router::scores:
      return "scores";
  }
  return "?";
}

inline constexpr auto kAllRouters = enumerators<Router, router_name>();

constexpr std::optional<Router> parse_router(std::string_view name) {
  return parse_enumerator(name, kAllRouters, router_name);
}

}  // namespace wide
