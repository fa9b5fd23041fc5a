// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A checked call as a file: its inputs, its outputs and the expected outputs.
#pragma once

#include <string>

#include "host/compare.hpp"
#include "wide/catalog.hpp"

namespace wide::bench {

/// When a call is saved, and where.
struct SavingRule {
  enum class When : uint8_t { never, incorrect, always };
  When when = When::never;
  std::string folder;
  /// Whether to save a call that passed or not.
  bool applies(bool passed) const {
    return when == When::always || (when == When::incorrect && !passed);
  }
};

/// "never", "incorrect", "always", "incorrect:FOLDER" or "always:FOLDER"; the default folder is
/// "workspace". Throws invalid_argument for anything else.
SavingRule parse_saving_rule(const std::string& text);

/// The rule for one of several runs: its folder gets the number.
std::string numbered_saving(const std::string& text, int64_t number);

/// Identifies a call: its file is FOLDER/OP-CASE_ID-NAME-PHASE.safetensors.
struct CallName {
  std::string op, case_id;
  std::string name;       ///< of the strategy or baseline
  std::string phase;      ///< "before" or "after" timing, or the fill of an adversarial check
  std::string reproduce;  ///< the case's command
};

/// Writes the workload's current inputs under their names. Throws io; waits for `stream`.
void save_inputs(const std::string& path, const Context& context, Stream stream,
                 const catalog::Workload& workload);

/// Writes the workload's inputs, as save_inputs() does; outputs as "got" [N, rows,
/// row_length], or "got.0", "got.1", .. if members' outputs differ in shape; and for the rows
/// that were compared "member", "row", and in fp64 "expected" and "tolerance", [rows, row_length],
/// padded with NaN. The metadata say what was run and what was found. Creates the folder; returns
/// the file's path. Throws io; waits for `stream`.
std::string save_call(const std::string& folder, const CallName& name, const Context& context,
                      Stream stream, const catalog::Workload& workload,
                      const catalog::ReferenceSample& reference,
                      const catalog::MemberOutputs& outputs, const std::string& finding);

}  // namespace wide::bench
