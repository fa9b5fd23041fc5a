// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The norm at the end of a chain.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

enum class ChainNorm : uint8_t { none, layernorm, rmsnorm };

inline constexpr std::array<ChainNorm, 3> kAllChainNorms{ChainNorm::none, ChainNorm::layernorm,
                                                         ChainNorm::rmsnorm};

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

constexpr std::optional<ChainNorm> parse_chain_norm(std::string_view name) {
  return parse_enumerator(name, kAllChainNorms, chain_norm_name);
}

}  // namespace wide
