// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Options that have no effect because of another option or argument.
#pragma once

namespace CLI {
class App;
}

namespace wide::bench {

/// Throws invalid_argument for an option that was given to this command but changes nothing given
/// the others: the user evidently expects something else than what would happen.
void refuse_idle_options(const CLI::App& command);

}  // namespace wide::bench
