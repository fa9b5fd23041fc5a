// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/interrupt.hpp"

#include <chrono>
#include <csignal>

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;
std::optional<Clock::time_point> deadline;

void note_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
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
