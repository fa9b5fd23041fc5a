// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/interrupt.hpp"

#include <csignal>

namespace wide::bench {

namespace {

volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void install_interrupt_handler() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, note_interrupt);
}
bool is_interrupted() {
  return interrupted != 0;
}
void set_interrupted(bool value) {
  interrupted = value ? 1 : 0;
}

}  // namespace wide::bench
