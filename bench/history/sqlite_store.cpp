// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The default store: one SQLite database. Readers never wait for writers (write-ahead log), writers
// wait for each other; a writer takes its lock before it reads, so that none has to be retried. A
// run has digests of its document, of its points, and of the rest of its row.
#include <filesystem>
#include <span>
#include <system_error>

#include "bench/document/json_number.hpp"
#include "bench/document/sha256.hpp"
#include "bench/history/history.hpp"
#include "bench/history/run_json.hpp"
#include "bench/history/sqlite.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr const char* kSteps[] = {
    // 1
    "CREATE TABLE run(id TEXT PRIMARY KEY NOT NULL, started TEXT NOT NULL, git_sha TEXT NOT NULL,"
    " git_dirty INTEGER NOT NULL, device TEXT NOT NULL, ops TEXT NOT NULL, cases INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL, complete INTEGER NOT NULL, document TEXT NOT NULL);"
    "CREATE TABLE tag(tag TEXT PRIMARY KEY NOT NULL,"
    " run TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE);"
    "CREATE TABLE point(run TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE,"
    " case_id TEXT NOT NULL, op TEXT NOT NULL, axes TEXT NOT NULL, runner TEXT NOT NULL,"
    " regime TEXT NOT NULL, median_ns REAL NOT NULL, ci_lo_ns REAL NOT NULL,"
    " ci_hi_ns REAL NOT NULL, PRIMARY KEY(run, case_id, runner, regime));"
    "CREATE INDEX tag_by_run ON tag(run);",
    // 2: empty digests are those of runs that were there before
    "ALTER TABLE run ADD device_uuid TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE run ADD sha256 TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE run ADD points_sha256 TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE run ADD row_sha256 TEXT NOT NULL DEFAULT '';",
};

class SqliteStore final : public HistoryStore {
 public:
  explicit SqliteStore(const std::string& path) : database_(path) { database_.migrate(kSteps); }

  bool add(const HistoryRecord& record) override {
    const HistoryRun& r = record.run;
    SqliteTransaction transaction(database_);
    if (has(r.id)) {
      if (document(r.id) == record.document) return false;
      throw Error(ErrorCode::invalid_argument,
                  "another run has the id " + r.id + ", expected the same document");
    }
    const std::string of_points = sha256(dumped(to_json(record.points)));
    const std::string of_row = sha256(dumped(to_json(r)));
    SqliteStatement(database_, "INSERT INTO run VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
        .bind(r.id, r.started, r.git_sha, int64_t{r.git_dirty}, r.device, r.ops, r.num_cases,
              int64_t{r.exit_code}, int64_t{r.complete}, record.document, r.device_uuid, r.sha256,
              of_points, of_row)
        .run();
    SqliteStatement insert(database_, "INSERT INTO point VALUES(?,?,?,?,?,?,?,?,?)");
    for (const HistoryPoint& p : record.points) {
      insert
          .bind(r.id, p.case_id, p.op, p.axes, p.runner, p.regime, p.median_ns, p.ci_lo_ns,
                p.ci_hi_ns)
          .run();
    }
    transaction.commit();
    return true;
  }

  std::vector<HistoryRun> runs() const override {
    std::vector<HistoryRun> all;
    for_each_run([&](HistoryRun& run, const std::string&) { all.push_back(std::move(run)); });
    return all;
  }

  std::vector<HistoryPoint> points() const override {
    std::vector<HistoryPoint> all;
    for_each_run([&](const HistoryRun& run, const std::string& digest) {
      const size_t begin = all.size();
      SqliteStatement rows(database_,
                           "SELECT case_id, op, axes, runner, regime, median_ns, ci_lo_ns, ci_hi_ns"
                           " FROM point WHERE run = ? ORDER BY rowid");
      rows.bind(run.id);
      while (rows.step()) {
        all.push_back({run.id, run.started, run.device, rows.text(0), rows.text(1), rows.text(2),
                       rows.text(3), rows.text(4), rows.real(5), rows.real(6), rows.real(7),
                       code_of(run)});
      }
      require_stored("the medians of " + run.id, digest,
                     dumped(to_json(std::span(all).subspan(begin))));
    });
    return all;
  }

  std::string document(const std::string& id) const override {
    SqliteStatement row(database_, "SELECT document, sha256 FROM run WHERE id = ?");
    row.bind(id);
    if (!row.step()) throw Error(ErrorCode::invalid_argument, "no run has the id " + id);
    std::string text = row.text(0);
    require_stored("the document of " + id, row.text(1), text);
    return text;
  }

  void tag(const std::string& id, const std::string& tag) override {
    SqliteTransaction transaction(database_);
    require(id);
    SqliteStatement(database_, "INSERT OR REPLACE INTO tag VALUES(?,?)").bind(tag, id).run();
    transaction.commit();
  }

  void remove(const std::vector<std::string>& ids) override {
    SqliteTransaction transaction(database_);
    for (const std::string& id : ids) {
      require(id);
      SqliteStatement(database_, "DELETE FROM run WHERE id = ?").bind(id).run();
    }
    transaction.commit();
  }

 private:
  /// Calls f(run, digest of its points), oldest first, all as of one moment.
  template <class F>
  void for_each_run(const F& f) const {
    SqliteStatement rows(database_,
                         "SELECT id, started, git_sha, git_dirty, device, ops, cases, exit_code,"
                         " complete, device_uuid, sha256, points_sha256, row_sha256 FROM run"
                         " ORDER BY started, rowid");
    while (rows.step()) {
      HistoryRun r;
      r.id = rows.text(0);
      r.started = rows.text(1);
      r.git_sha = rows.text(2);
      r.git_dirty = rows.integer(3) != 0;
      r.device = rows.text(4);
      r.ops = rows.text(5);
      r.num_cases = rows.integer(6);
      r.exit_code = static_cast<int>(rows.integer(7));
      r.complete = rows.integer(8) != 0;
      r.device_uuid = rows.text(9);
      r.sha256 = rows.text(10);
      require_stored("the run " + r.id, rows.text(12), dumped(to_json(r)));
      SqliteStatement tags(database_, "SELECT tag FROM tag WHERE run = ? ORDER BY tag");
      tags.bind(r.id);
      while (tags.step()) r.tags.push_back(tags.text(0));
      f(r, rows.text(11));
    }
  }

  bool has(const std::string& id) const {
    SqliteStatement row(database_, "SELECT 1 FROM run WHERE id = ?");
    row.bind(id);
    return row.step();
  }
  void require(const std::string& id) const {
    if (!has(id)) throw Error(ErrorCode::invalid_argument, "no run has the id " + id);
  }

  SqliteDatabase database_;
};

}  // namespace

std::unique_ptr<HistoryStore> open_sqlite_history(const std::string& folder, bool must_exist) {
  const std::string path = folder + "/history.sqlite";
  if (must_exist && !std::filesystem::exists(path))
    throw Error(ErrorCode::io,
                "there is no history in " + folder + ": run --save and history add begin one");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(ErrorCode::io, "cannot make " + folder + ": " + error.message());
  return std::make_unique<SqliteStore>(path);
}

}  // namespace wide::bench
