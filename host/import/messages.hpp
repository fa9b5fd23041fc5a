// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Messages of the readers of files.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wide {

/// "a", as messages show a file's text: long texts are cut, unprintable characters are marked.
std::string in_quotes(std::string_view text);

/// Throws invalid_argument, with those of `names` that look like `name`.
[[noreturn]] void refuse_unknown_tensor(const std::string& format, std::string_view name,
                                        std::span<const std::string_view> names);

}  // namespace wide
