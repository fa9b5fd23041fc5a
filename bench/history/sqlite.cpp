// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/history/sqlite.hpp"

#include <sqlite3.h>

#include <chrono>
#include <thread>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int kPatienceMs = 30'000;

}  // namespace

SqliteDatabase::SqliteDatabase(const std::string& path) : path_(path) {
  try {
    open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (!writes_ahead()) open_unchanging();
    check();
    execute("PRAGMA synchronous = FULL");  // written data survives a power cut
    execute("PRAGMA foreign_keys = ON");
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

void SqliteDatabase::open(const std::string& name, int flags) {
  if (sqlite3_open_v2(name.c_str(), &handle_, flags, nullptr) != SQLITE_OK) fail();
  sqlite3_busy_timeout(handle_, kPatienceMs);
  constexpr int kSettings[][2] = {{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                  {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                  {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                  {SQLITE_DBCONFIG_DEFENSIVE, 1}};
  for (const auto& [setting, value] : kSettings) {
    if (sqlite3_db_config(handle_, setting, value, nullptr) != SQLITE_OK) fail();
  }
  execute("PRAGMA cell_size_check = ON");
}

/// More than quick_check, indices too: rows are found by them.
void SqliteDatabase::check() const {
  SqliteStatement row(*this, "PRAGMA integrity_check(1)");
  const std::string found = row.step() ? row.text(0) : "nothing";
  if (found != "ok") throw Error(ErrorCode::invalid_argument, path_ + ": is damaged: " + found);
}

/// To change its journal mode a connection must be alone for a moment, and SQLite, which waits for
/// other locks, may fail at once while others open the database. False where it may not write.
bool SqliteDatabase::writes_ahead() const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(kPatienceMs);
  for (;;) {
    const int code = sqlite3_exec(handle_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return true;
    if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) return false;
    if (code != SQLITE_BUSY || Clock::now() > end) fail();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// Even readers of a write-ahead log write to its folder, unless they may take the file as one that
/// nobody changes.
void SqliteDatabase::open_unchanging() {
  std::string uri = "file:";
  for (const char c : path_) {
    constexpr const char* kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    const bool is_special = c == '%' || c == '?' || c == '#';
    uri +=
        is_special ? std::string{'%', kDigits[byte / 16], kDigits[byte % 16]} : std::string(1, c);
  }
  sqlite3_close(handle_);
  handle_ = nullptr;
  uri += "?immutable=1";
  open(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

SqliteDatabase::~SqliteDatabase() {
  sqlite3_close(handle_);
}

void SqliteDatabase::fail() const {
  if (handle_ == nullptr) throw Error(ErrorCode::io, path_ + ": out of memory");
  const int code = sqlite3_errcode(handle_);
  const bool is_content = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
  throw Error(is_content ? ErrorCode::invalid_argument : ErrorCode::io,
              path_ + ": " + sqlite3_errmsg(handle_));
}

void SqliteDatabase::execute(const std::string& sql) const {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

void SqliteDatabase::migrate(std::span<const char* const> steps) {
  const auto seen_steps = [&] {
    SqliteStatement version(*this, "PRAGMA user_version");
    return version.step() ? version.integer(0) : 0;
  };
  const auto last = static_cast<int64_t>(steps.size());
  if (seen_steps() == last) return;
  SqliteTransaction transaction(*this);
  const int64_t seen = seen_steps();  // another process may have been faster
  if (seen < 0 || seen > last) {
    throw Error(ErrorCode::invalid_argument, path_ + ": is of version " + std::to_string(seen) +
                                                 ", expected at most " + std::to_string(last) +
                                                 ": a newer wbench made it");
  }
  for (int64_t step = seen; step < last; ++step) execute(steps[static_cast<size_t>(step)]);
  execute("PRAGMA user_version = " + std::to_string(last));
  transaction.commit();
}

SqliteTransaction::~SqliteTransaction() {
  if (is_open_) (void)sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

SqliteStatement::SqliteStatement(const SqliteDatabase& database, const char* sql)
    : database_(database) {
  if (sqlite3_prepare_v2(database.handle(), sql, -1, &statement_, nullptr) != SQLITE_OK)
    database_.fail();
}

SqliteStatement::~SqliteStatement() {
  sqlite3_finalize(statement_);
}

void SqliteStatement::bind_one(int index, const std::string& value) {
  const auto bytes = static_cast<sqlite3_uint64>(value.size());
  if (sqlite3_bind_text64(statement_, index, value.data(), bytes, SQLITE_STATIC, SQLITE_UTF8) !=
      SQLITE_OK)
    database_.fail();
}

void SqliteStatement::bind_one(int index, int64_t value) {
  if (sqlite3_bind_int64(statement_, index, value) != SQLITE_OK) database_.fail();
}

void SqliteStatement::bind_one(int index, double value) {
  if (sqlite3_bind_double(statement_, index, value) != SQLITE_OK) database_.fail();
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail();
  return code == SQLITE_ROW;
}

void SqliteStatement::run() {
  (void)step();
  if (sqlite3_reset(statement_) != SQLITE_OK) database_.fail();
}

std::string SqliteStatement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (bytes == nullptr) return "";
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

int64_t SqliteStatement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double SqliteStatement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

}  // namespace wide::bench
