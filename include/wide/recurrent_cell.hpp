// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a step of recurrent is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "wide/parse_enumerator.hpp"

namespace wide {

/// What a step does. Gates G and their order in weights and biases are PyTorch's.
enum class RecurrentCell : uint8_t {
  lstm,  ///< G = 4: input, forget, candidate, output
  gru,   ///< G = 3: reset, update, candidate
};

inline constexpr std::array<RecurrentCell, 2> kAllRecurrentCells{RecurrentCell::lstm,
                                                                 RecurrentCell::gru};

constexpr std::string_view recurrent_cell_name(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? "lstm" : "gru";
}

constexpr std::optional<RecurrentCell> parse_recurrent_cell(std::string_view name) {
  return parse_enumerator(name, kAllRecurrentCells, recurrent_cell_name);
}

/// G
constexpr int recurrent_gates(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : 3;
}

}  // namespace wide
