// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What readers of files have to say.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wide {

/// "a", as messages show what a file holds: long texts are cut, what cannot be printed is marked.
std::string in_quotes(std::string_view text);

/// Throws invalid_argument, with those of `names` that look like `name`.
[[noreturn]] void refuse_unknown_tensor(const std::string& format, std::string_view name,
                                        std::span<const std::string_view> names);

}  // namespace wide
