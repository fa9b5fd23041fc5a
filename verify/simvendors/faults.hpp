// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Calls that fail because a test wants them to: the k-th from when it says so, once.
#pragma once

namespace wide::simvendors {

/// Counts a call, by its name; whether it is the one that is to fail.
bool fails(const char* call);

}  // namespace wide::simvendors
