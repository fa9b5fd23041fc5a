// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/peer/line_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "bench/process/interrupt.hpp"
#include "bench/process/run_program.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kLongestLine = size_t{64} << 20;
constexpr auto kFarewell = 3s;  // for a program to end by itself
constexpr auto kLastAnswer =
    2s;  // the same, for the answer to a request during which the user interrupted
constexpr auto kLook = 100ms;

/// In a process group of its own: an interrupt from the terminal is for this program to handle, and
/// whatever the command starts ends with it.
pid_t start(const std::string& command, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const std::array<const char*, 4> words{"/bin/sh", "-c", command.c_str(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, words[0], &actions, &attributes,
                                  const_cast<char* const*>(words.data()), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(ErrorCode::io, fmt::format("cannot start {}: {}", command, std::strerror(error)));
  return child;
}

}  // namespace

LineProcess::LineProcess(const std::string& command) : command_(command) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error(ErrorCode::io, fmt::format("{}: {}", command, std::strerror(errno)));
  try {
    child_ = start(command, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

LineProcess::~LineProcess() {
  if (socket_ >= 0) ::close(socket_);
  if (child_ > 0) (void)how_it_ended(kFarewell);
}

/// Waits for the process to end, and kills it if needed.
std::string LineProcess::how_it_ended(std::chrono::milliseconds patience) {
  int status = 0;
  const auto deadline = Clock::now() + patience;
  pid_t ended = 0;
  while ((ended = ::waitpid(child_, &status, WNOHANG)) == 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(kLook / 10);
  ::kill(-child_, SIGKILL);  // the group: also processes left over from the command
  if (ended == 0) (void)::waitpid(child_, &status, 0);
  child_ = 0;
  if (ended == 0) return "it was killed";
  if (WIFEXITED(status)) return fmt::format("it ended with exit code {}", WEXITSTATUS(status));
  return "it was ended by " + signal_text(WTERMSIG(status));
}

void LineProcess::give_up(const std::string& what, std::chrono::milliseconds patience) {
  ::close(socket_);
  socket_ = -1;
  ending_ = fmt::format("{}: {}; {}", command_, what, how_it_ended(patience));
  throw Error(ErrorCode::io, ending_);
}

void LineProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    // No SIGPIPE if nothing reads any more.
    const ssize_t count = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) give_up("it takes no requests", kFarewell);
    sent += static_cast<size_t>(count);
  }
}

std::string LineProcess::ask(const std::string& line, double limit_s) {
  if (!is_running()) throw Error(ErrorCode::io, ending_);
  send(line);
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(limit_s));
  bool was_interrupted = false;
  for (;;) {
    const size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string answer = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return answer;
    }
    if (unread_.size() > kLongestLine) give_up("a line of more than 64 MiB", 0ms);
    if (is_interrupted() && !was_interrupted) {
      was_interrupted = true;
      deadline = std::min(deadline, Clock::now() + kLastAnswer);
    }
    if (Clock::now() > deadline)
      give_up(was_interrupted ? "interrupted" : fmt::format("no answer for {:.0f} s", limit_s),
              0ms);
    pollfd waiting{socket_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kLook.count())) <= 0) continue;
    std::array<char, 1 << 16> buffer;
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) give_up("no answer", kFarewell);
    unread_.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace wide::bench
