// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C, and SIGTERM, end a sweep after the block of samples under way, so that partial results
// are written and locked clocks given back; a second one ends the process.
#pragma once

namespace wide::bench {

void install_interrupt_handler();
bool is_interrupted();
void set_interrupted(bool value);  ///< for tests

}  // namespace wide::bench
