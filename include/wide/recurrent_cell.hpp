// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a step of recurrent is.
#pragma once

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

constexpr std::string_view recurrent_cell_name(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm:
      return "lstm";
    case RecurrentCell::gru:
      return "gru";
  }
  return "?";
}

inline constexpr auto kAllRecurrentCells = enumerators<RecurrentCell, recurrent_cell_name>();

constexpr std::optional<RecurrentCell> parse_recurrent_cell(std::string_view name) {
  return parse_enumerator(name, kAllRecurrentCells, recurrent_cell_name);
}

/// G
constexpr int recurrent_gates(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : 3;
}

}  // namespace wide
