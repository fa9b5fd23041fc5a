// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The part of SQLite that a store needs, with errors as exceptions, with the database's name:
// invalid_argument where the file is no database, otherwise io.
#pragma once

#include <cstdint>
#include <span>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace wide::bench {

class SqliteDatabase {
 public:
  /// Opens or creates the file, and checks all of it. Waits for writers of other processes, 30 s at
  /// most. Where its folder may not be written to, it is read as it is. A file may come from
  /// anyone: its triggers never run, its views are errors.
  explicit SqliteDatabase(const std::string& path);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;

  /// Executes the steps that the database has not seen yet, all or none; PRAGMA user_version counts
  /// them. Throws invalid_argument if it has seen more than there are: a newer program wrote it.
  void migrate(std::span<const char* const> steps);

  void execute(const std::string& sql) const;
  [[noreturn]] void fail() const;
  sqlite3* handle() const { return handle_; }

 private:
  void open(const std::string& name, int flags);
  bool writes_ahead() const;
  void open_unchanging();
  void check() const;

  std::string path_;
  sqlite3* handle_ = nullptr;
};

/// A transaction for writing: the lock is taken at once. Rolled back unless committed.
class SqliteTransaction {
 public:
  explicit SqliteTransaction(const SqliteDatabase& database) : database_(database) {
    database_.execute("BEGIN IMMEDIATE");
  }
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  void commit() {
    database_.execute("COMMIT");
    is_open_ = false;
  }

 private:
  const SqliteDatabase& database_;
  bool is_open_ = true;
};

class SqliteStatement {
 public:
  SqliteStatement(const SqliteDatabase& database, const char* sql);
  ~SqliteStatement();
  SqliteStatement(const SqliteStatement&) = delete;

  /// Binds all parameters from the first on; they must live until the statement has run.
  template <class... Values>
  SqliteStatement& bind(const Values&... values) {
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }
  /// Whether there is a row, or a further one.
  bool step();
  /// A statement without rows; it may be bound and run again.
  void run();

  std::string text(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;

 private:
  void bind_one(int index, const std::string& value);
  void bind_one(int index, int64_t value);
  void bind_one(int index, double value);

  const SqliteDatabase& database_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace wide::bench
