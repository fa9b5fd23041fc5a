// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/process/interrupt.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;
std::atomic<pid_t> awaited = 0;
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal's handler reads it");
std::optional<Clock::time_point> deadline;

/// By the other signal: a terminal's Ctrl-C reaches the program, too, and a second one would end it
/// at once.
void forward(int signal) {
  if (const pid_t program = awaited; program != 0)
    (void)::kill(program, signal == SIGINT ? SIGTERM : SIGINT);
}

void note_interrupt(int signal) {
  const int error = errno;
  interrupted = 1;
  std::signal(signal, SIG_DFL);
  forward(signal);
  errno = error;
}

}  // namespace

void install_interrupt_handler() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, note_interrupt);
}
bool is_interrupted() {
  return interrupted != 0 || is_out_of_time();
}
void set_interrupted(bool value) {
  interrupted = value ? 1 : 0;
  if (!value) deadline.reset();
}
void set_awaited_program(pid_t program) {
  awaited = program;
  if (interrupted != 0) forward(SIGINT);  // it came while the program was started
}
void set_time_limit(double seconds) {
  deadline = Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}
std::optional<double> time_left_s() {
  if (!deadline) return std::nullopt;
  return std::chrono::duration<double>(*deadline - Clock::now()).count();
}
bool is_out_of_time() {
  return interrupted == 0 && deadline && Clock::now() >= *deadline;
}

}  // namespace wide::bench
