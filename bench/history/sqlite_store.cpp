// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The default store: one SQLite database. Readers never wait for writers (write-ahead log), writers
// wait for each other; a writer takes its lock before it reads, so that none has to be retried.
#include <filesystem>
#include <system_error>

#include "bench/history/history.hpp"
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
    SqliteStatement(database_, "INSERT INTO run VALUES(?,?,?,?,?,?,?,?,?,?)")
        .bind(r.id, r.started, r.git_sha, int64_t{r.git_dirty}, r.device, r.ops, r.num_cases,
              int64_t{r.exit_code}, int64_t{r.complete}, record.document)
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
    SqliteStatement rows(database_,
                         "SELECT id, started, git_sha, git_dirty, device, ops, cases, exit_code,"
                         " complete FROM run ORDER BY started, rowid");
    while (rows.step()) {
      HistoryRun& r = all.emplace_back();
      r.id = rows.text(0);
      r.started = rows.text(1);
      r.git_sha = rows.text(2);
      r.git_dirty = rows.integer(3) != 0;
      r.device = rows.text(4);
      r.ops = rows.text(5);
      r.num_cases = rows.integer(6);
      r.exit_code = static_cast<int>(rows.integer(7));
      r.complete = rows.integer(8) != 0;
      SqliteStatement tags(database_, "SELECT tag FROM tag WHERE run = ? ORDER BY tag");
      tags.bind(r.id);
      while (tags.step()) r.tags.push_back(tags.text(0));
    }
    return all;
  }

  std::vector<HistoryPoint> points() const override {
    std::vector<HistoryPoint> all;
    SqliteStatement rows(
        database_,
        "SELECT run, started, device, case_id, op, axes, runner, regime,"
        " median_ns, ci_lo_ns, ci_hi_ns, git_sha, git_dirty FROM point JOIN run ON run.id = run"
        " ORDER BY started, run.rowid, point.rowid");
    while (rows.step()) {
      HistoryRun run;
      run.id = rows.text(0);
      run.git_sha = rows.text(11);
      run.git_dirty = rows.integer(12) != 0;
      all.push_back({run.id, rows.text(1), rows.text(2), rows.text(3), rows.text(4), rows.text(5),
                     rows.text(6), rows.text(7), rows.real(8), rows.real(9), rows.real(10),
                     code_of(run)});
    }
    return all;
  }

  std::string document(const std::string& id) const override {
    SqliteStatement row(database_, "SELECT document FROM run WHERE id = ?");
    row.bind(id);
    if (!row.step()) throw Error(ErrorCode::invalid_argument, "no run has the id " + id);
    return row.text(0);
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
