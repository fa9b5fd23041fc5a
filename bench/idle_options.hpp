// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Options that another option or argument leaves without a say.
#pragma once

namespace CLI {
class App;
}

namespace wide::bench {

/// Throws invalid_argument for an option that was given to this command and changes nothing of what
/// the others ask for: whoever gave it expects something else than what would come.
void refuse_idle_options(const CLI::App& command);

}  // namespace wide::bench
