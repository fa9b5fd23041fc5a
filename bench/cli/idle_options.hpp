// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Options that have no effect because of another option or argument.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace wide::bench {

/// Throws invalid_argument for an option that was given to this command but changes nothing given
/// the others: the user evidently expects something else than what would happen.
void refuse_idle_options(const CLI::App& command);

/// The options given to this command that change something on GPUs only. Which device is used may
/// depend on the machine, so they are not refused, but reported where it is the CPU. --lock-clocks
/// is not among them: there is an error of its own where there are no clocks.
std::vector<std::string> given_gpu_options(const CLI::App& command);

}  // namespace wide::bench
