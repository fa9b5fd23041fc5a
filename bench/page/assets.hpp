// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a report's page needs besides its data: bench/page/script, as the build found and
// bundled it.
#pragma once

namespace wide::bench {

extern const char* const kReportStyles;
extern const char* const kReportScript;      ///< empty if the build has none
extern const char* const kReportScriptHash;  ///< SHA-256 in base64
extern const char* const kWhyNoReportScript;

}  // namespace wide::bench
