// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Results kept: documents as they were written, once each, and of every case its median, so that
// trends need not read documents. Who opens a store need not know which kind it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

struct HistoryRun {
  std::string id, started;  ///< of the result
  std::string git_sha, device;
  std::string ops;  ///< "layernorm,linear"
  int64_t num_cases = 0;
  int exit_code = 0;
  bool git_dirty = false, complete = false;
  std::vector<std::string> tags;  ///< ascending
  friend bool operator==(const HistoryRun&, const HistoryRun&) = default;
};

/// A strategy or baseline in one case and regime of a run. Cases of equal ids are comparable: op,
/// its version and all axes are in them.
struct HistoryPoint {
  std::string run, started, device;               ///< of the run
  std::string case_id, op, axes, runner, regime;  ///< history_regime()
  double median_ns = 0, ci_lo_ns = 0, ci_hi_ns = 0;
  std::string code;  ///< code_of() the run
  friend bool operator==(const HistoryPoint&, const HistoryPoint&) = default;
};

/// The commit; of a run whose commit was changed or is not known, the run.
std::string code_of(const HistoryRun& run);

struct HistoryRecord {
  HistoryRun run;
  std::vector<HistoryPoint> points;
  std::string document;
};

/// Of a result and the text that it was read from or is written as. Throws invalid_argument for an
/// id that is no name: letters, digits and "-_.:+", at most 80, first a letter or digit.
HistoryRecord record_of(const RunResult& result, std::string document);

/// Every call is atomic, and durable when it returns; several processes may use a store at a time.
/// All throw io where the store cannot be read or written.
class HistoryStore {
 public:
  virtual ~HistoryStore() = default;
  /// False where this very document is there. Throws invalid_argument where another one has its id.
  virtual bool add(const HistoryRecord& record) = 0;
  /// Oldest first, those of one second as they were added; as is what points() returns.
  virtual std::vector<HistoryRun> runs() const = 0;
  virtual std::vector<HistoryPoint> points() const = 0;
  /// Throws invalid_argument for an unknown id; so do tag() and remove().
  virtual std::string document(const std::string& id) const = 0;
  /// A tag names one run: it leaves the run that has had it.
  virtual void tag(const std::string& id, const std::string& tag) = 0;
  /// All or none.
  virtual void remove(const std::vector<std::string>& ids) = 0;
};

/// "FOLDER" is a SQLite database in a folder, "jsonl:FOLDER" files of text. Both are made where
/// there is none; `must_exist` throws io instead.
std::unique_ptr<HistoryStore> open_history(const std::string& where, bool must_exist = false);
bool has_history(const std::string& where);

std::unique_ptr<HistoryStore> open_sqlite_history(const std::string& folder, bool must_exist);
std::unique_ptr<HistoryStore> open_jsonl_history(const std::string& folder, bool must_exist);

/// Throws invalid_argument that says `what` it is, unless it is a name as record_of() describes.
void require_name(std::string_view what, std::string_view name);

/// Points that are comparable: of one case, runner, regime and device, oldest first.
struct HistorySeries {
  HistoryPoint last;
  std::vector<double> medians_ns;
  std::vector<std::string> runs;
  std::vector<std::string> codes;  ///< code_of() each run
};
/// In the order of op, axes, runner, regime, device.
std::vector<HistorySeries> series_of(const std::vector<HistoryPoint>& points);

/// Where medians of runs lie, and what a change must exceed to be none of what they differ by.
struct NoiseBand {
  double centre_ns = 0;        ///< median of the runs' medians
  double floor_pct = 0;        ///< as of compare/gate.hpp
  bool is_of_one_code = true;  ///< else changes of the code may be in it, and it is too large
};
/// Of the last `most` runs. Deviations are those of runs from the median of all runs of their code,
/// so that no change of the code is noise; where no code has three runs, nor several have two, all
/// runs are taken for runs of one. What they come to is 1.4826 x their median, the standard
/// deviation where they are normally distributed. None below three runs.
std::optional<NoiseBand> noise_band(const HistorySeries& series, int64_t most = 20);

/// The first of the result's devices, as the history names it.
std::string history_device(const RunResult& result);

/// "stream", "cold: flush of 2 x L2": cold calls by another method are of another series, since
/// they have other times. "cold" alone are points that were kept before the method was.
std::string history_regime(const RunConfig& config, const Measurement& m);

}  // namespace wide::bench
