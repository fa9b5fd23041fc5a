// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What --help says below the options: the meaning of columns, names and exit codes.
#pragma once

#include <string>

namespace wide::bench {

std::string exit_codes();
std::string run_footer();
std::string tune_footer();
std::string quantize_footer();
std::string inspect_footer();
std::string history_footer();

}  // namespace wide::bench
