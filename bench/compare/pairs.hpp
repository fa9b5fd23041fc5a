// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Finds which measurements of two sets of runs belong to the same cell.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "bench/compare/compare.hpp"

namespace wide::bench {

/// One side of a cell, over all runs.
struct Seen {
  Side side;
  bool is_invalid = false;
  std::set<std::string> doubts;
  std::set<std::string> methods;       ///< of cold calls: cold_method()
  std::set<std::string> works;         ///< what its calls do, by the catalogue of each run
  bool is_unchecked = false;           ///< no check saw the outputs of a run
  std::vector<std::string> processes;  ///< of each of the side's runs, until they are merged
};

struct PairedCell {
  ComparedCell cell;
  Seen base, candidate;
  std::string device, regime;  ///< of its first run, as the history names them
  /// Cold calls were made cold by more than one method, which may explain any difference.
  bool is_measured_otherwise() const;
  /// Runs count other operations or bytes for the case, which is then another one.
  bool is_of_other_work() const;
};

/// In the order of the base, then the new ones. Throws as compare() does.
std::vector<PairedCell> pair_cells(std::span<const RunResult> base,
                                   std::span<const RunResult> candidate,
                                   const CompareOptions& options);

}  // namespace wide::bench
