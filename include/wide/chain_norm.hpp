// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The norm at the end of a chain.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class ChainNorm : uint8_t { none, layernorm, rmsnorm };

constexpr std::string_view chain_norm_name(ChainNorm norm) {
  switch (norm) {
    case ChainNorm::none:
      return "none";
    case ChainNorm::layernorm:
      return "layernorm";
    case ChainNorm::rmsnorm:
      return "rmsnorm";
  }
  return "?";
}

inline constexpr auto kAllChainNorms = enumerators<ChainNorm, chain_norm_name>();

constexpr std::optional<ChainNorm> parse_chain_norm(std::string_view name) {
  return parse_enumerator(name, kAllChainNorms, chain_norm_name);
}

}  // namespace wide
