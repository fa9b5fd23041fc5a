// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stored results: documents as they were written, once each, and the median of every case, so that
// trends need not read documents. Users of a store need not know which kind it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

struct HistoryRun {
  std::string id, started;  ///< of the result
  std::string git_sha, device;
  std::string device_uuid;  ///< of the device; empty for the CPU
  std::string ops;          ///< "layernorm,linear"
  int64_t num_cases = 0;
  int exit_code = 0;
  bool git_dirty = false, complete = false;
  std::string sha256;             ///< of the document; empty where nobody recorded it
  std::vector<std::string> tags;  ///< ascending
  friend bool operator==(const HistoryRun&, const HistoryRun&) = default;
};

/// A strategy or baseline in one case and regime of a run. Cases with equal ids are comparable: the
/// id covers op, its version and all axes.
struct HistoryPoint {
  std::string run, started, device;               ///< those of the run
  std::string case_id, op, axes, runner, regime;  ///< history_regime()
  double median_ns = 0, ci_lo_ns = 0, ci_hi_ns = 0;
  std::string code;  ///< code_of() the run
  friend bool operator==(const HistoryPoint&, const HistoryPoint&) = default;
};

/// The commit; for a run with uncommitted changes or an unknown commit, the run.
std::string code_of(const HistoryRun& run);

struct HistoryRecord {
  HistoryRun run;
  std::vector<HistoryPoint> points;
  std::string document;
};

/// From a result and its text, as read or as written. Throws invalid_argument for an
/// invalid id; valid are letters, digits and "-_.:+", at most 80, the first a letter or digit.
HistoryRecord record_of(const RunResult& result, std::string document);

/// Every call is atomic, and durable when it returns; several processes may use a store at a time.
/// All throw io if the store cannot be read or written, and invalid_argument if what it says of a
/// run is not what was stored: documents, medians and runs have SHA-256 digests. That a run or tag
/// is missing is not noticed.
class HistoryStore {
 public:
  virtual ~HistoryStore() = default;
  /// False if this very document is stored. Throws invalid_argument if another one has its id.
  virtual bool add(const HistoryRecord& record) = 0;
  /// Oldest first; within a second, in the order they were added. The same holds for points().
  virtual std::vector<HistoryRun> runs() const = 0;
  virtual std::vector<HistoryPoint> points() const = 0;
  /// Throws invalid_argument for an unknown id; so do tag() and remove().
  virtual std::string document(const std::string& id) const = 0;
  /// A tag names one run: it is taken from the run that had it.
  virtual void tag(const std::string& id, const std::string& tag) = 0;
  /// Removes all of them or, on error, none.
  virtual void remove(const std::vector<std::string>& ids) = 0;
  /// What a crash, or another tool, left that is no run of the store, and what to do: a sentence
  /// each.
  virtual std::vector<std::string> leftovers() const { return {}; }
};

/// "FOLDER" is a SQLite database in a folder, "jsonl:FOLDER" is text files. Missing ones are
/// created; with `must_exist` that throws io instead.
std::unique_ptr<HistoryStore> open_history(const std::string& where, bool must_exist = false);
bool has_history(const std::string& where);
/// The file whose presence makes a folder a history.
std::string history_file(const std::string& where);

std::unique_ptr<HistoryStore> open_sqlite_history(const std::string& folder, bool must_exist);
std::unique_ptr<HistoryStore> open_jsonl_history(const std::string& folder, bool must_exist);

/// Throws invalid_argument if `found`, called `what`, has another SHA-256 than what was stored; an
/// empty `expected` is that of what was stored before there were digests.
void require_stored(const std::string& what, const std::string& expected, std::string_view found);

/// Throws invalid_argument, with `what` the name stands for, unless it is valid for record_of().
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

/// The centre of the runs' medians, and what a change must exceed to be more than noise.
struct NoiseBand {
  double centre_ns = 0;           ///< median of the runs' medians
  double floor_pct = 0;           ///< as in compare/gate.hpp
  double few_runs_floor_pct = 0;  ///< the same for comparisons of so few runs that they have no p
  bool is_of_one_code = true;     ///< else it may include changes of the code, and is too large
};
/// Over the last `most` runs. Deviations are taken from the median of all runs of the same code, so
/// that a change of the code does not count as noise; if no code has three runs, nor several two,
/// all runs are treated as runs of one code. The result is 1.4826 x the median deviation, the
/// standard deviation if they are normally distributed. None below three runs.
/// A median does not see what disturbs three runs in ten, by which two runs differ all the same:
/// for a few runs the floor is at least 1.5 times the largest log ratio of two runs of the same
/// code.
std::optional<NoiseBand> noise_band(const HistorySeries& series, int64_t most = 20);

/// The first of the result's devices, as named in the history.
std::string history_device(const RunResult& result);

/// "stream", "cold: flush of 2 x L2": cold calls by another method form another series, since
/// their times differ. Plain "cold" marks points stored before the method was recorded.
std::string history_regime(const RunConfig& config, const Measurement& m);

}  // namespace wide::bench
