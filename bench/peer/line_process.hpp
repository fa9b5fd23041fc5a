// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A program that answers every line with a line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace wide::bench {

class LineProcess {
 public:
  /// Starts a command of the shell. It shares this program's standard error. Throws io.
  explicit LineProcess(const std::string& command);
  /// Closes its input, and after a while kills it and everything that it has started.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;

  /// Sends a line, waits for one. Throws io if it has ended, is silent for `limit_s`, sends
  /// more than 64 MiB, or the user has interrupted; then it can no longer be used.
  std::string ask(const std::string& line, double limit_s);
  bool is_running() const { return socket_ >= 0; }

 private:
  [[noreturn]] void give_up(const std::string& what, std::chrono::milliseconds patience);
  void send(const std::string& line);
  std::string how_it_ended(std::chrono::milliseconds patience);

  std::string command_;
  pid_t child_ = 0;
  int socket_ = -1;
  std::string unread_;  ///< received after the last line
  std::string ending_;  ///< why it is not running
};

}  // namespace wide::bench
