// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and SIGTERM end a sweep after the current block of samples, so that partial results
// are written and locked clocks released; a second one ends the process. The time limit
// of a run also ends a sweep.
#pragma once

#include <sys/types.h>

#include <optional>

namespace wide::bench {

void install_interrupt_handler();
/// Whether a sweep is to end, by a signal or by its time limit.
bool is_interrupted();
void set_interrupted(bool value);  ///< for tests; false also clears the time limit
/// A program that this process waits for, and that is told to end when this process is: `timeout`
/// and schedulers tell the parent alone. 0: none.
void set_awaited_program(pid_t program);

/// Starts the time limit now.
void set_time_limit(double seconds);
/// None: no limit.
std::optional<double> time_left_s();
/// Whether the time limit has ended it, and no signal.
bool is_out_of_time();

}  // namespace wide::bench
