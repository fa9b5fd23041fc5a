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

/// The file that a symbolic link leads to, whether that exists or not; `path` itself if it is none.
/// Throws io for a circle of links.
std::string follow_links(const std::string& path);

/// Whether write_file() replaces a file, or makes one, rather than writing to what is open already.
bool is_replaced(const std::string& path);

/// Throws io where write_file() could not write: onto a folder, where none is, or without the right
/// to. Says nothing of the space on the device.
void require_writable(const std::string& path);

/// Held while a file is read, changed and written, so that no other process or thread that does the
/// same loses what this one adds. Waits for those. The lock is a file of its own, "PATH.lock",
/// since write_file() replaces the file, and is removed at the end; one that a crash left behind is
/// not locked. Throws io.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace wide
