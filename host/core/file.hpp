// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Files: read whole, written so that a crash at any moment leaves the old file or the new one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wide {

/// Throws io.
std::string read_file(const std::string& path);

/// Writes to a temporary file beside `path`, syncs and renames: the old file or the new one, never
/// half of it. An existing file's permissions stay, and a symbolic link, which leads to the file
/// that is written. Devices, pipes and /dev/stdout are written directly. Throws io.
void write_file(const std::string& path, std::string_view text);
/// One after another.
void write_file(const std::string& path, std::span<const std::string_view> pieces);

}  // namespace wide
