// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A checked call as a file: what went in, what came out, what was expected.
#pragma once

#include <map>
#include <string>

#include "host/compare.hpp"
#include "wide/catalog.hpp"

namespace wide::bench {

/// When a call is saved, and where.
struct SavingRule {
  enum class When : uint8_t { never, incorrect, always };
  When when = When::never;
  std::string folder;
  /// Of a call that passed or did not.
  bool applies(bool passed) const {
    return when == When::always || (when == When::incorrect && !passed);
  }
};

/// "never", "incorrect", "always", "incorrect:FOLDER" or "always:FOLDER"; without one it is
/// "workspace". Throws invalid_argument for others.
SavingRule parse_saving_rule(const std::string& text);

/// The rule of one of several runs: its folder gets the number.
std::string numbered_saving(const std::string& text, int64_t number);

/// What a call is known by: its file is FOLDER/OP-CASE_ID-NAME-PHASE.safetensors.
struct CallName {
  std::string op, case_id;
  std::string name;       ///< of the strategy or baseline
  std::string phase;      ///< "before" or "after" times, or the fill of an adversarial check
  std::string reproduce;  ///< the case's command
};

/// Writes the workload's inputs under their names as they are now. Throws io; waits for `stream`.
void save_inputs(const std::string& path, const Context& context, Stream stream,
                 const catalog::Workload& workload);

/// Writes the workload's inputs, as save_inputs() does; outputs as "got" [N, rows,
/// row_length], where members' outputs differ in shape as "got.0", "got.1", ..; and of the rows
/// that were compared "member", "row", and in fp64 "expected" and "tolerance", [rows, row_length],
/// filled up with NaN. The metadata say what was run and what was found. Makes the folder; returns
/// the file's path. Throws io; waits for `stream`.
std::string save_call(const std::string& folder, const CallName& name, const Context& context,
                      Stream stream, const catalog::Workload& workload,
                      const catalog::ReferenceSample& reference,
                      const catalog::MemberOutputs& outputs, const std::string& finding);

}  // namespace wide::bench
