// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex>
#include <string>

namespace wide::bench {

/// The regular expression of --filter, and of a suite's. Throws invalid_argument for what is none,
/// and for long or deeply nested ones: std::regex recurses as deep, and would overflow the stack.
std::regex parse_filter(const std::string& text);

}  // namespace wide::bench
