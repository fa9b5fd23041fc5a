// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define WIDE_VERSION_MAJOR 0
#define WIDE_VERSION_MINOR 1
#define WIDE_VERSION_PATCH 0

namespace wide {

/// "0.1.0", of the library that is linked; the macros are of the headers.
const char* version();

}  // namespace wide
