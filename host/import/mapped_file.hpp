// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A file's bytes, mapped. The C interface hands out writable views of them: writing changes a
// private copy of the page, never the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace wide {

class MappedFile {
 public:
  /// Throws io, also for anything but a regular file: opening a pipe would block.
  explicit MappedFile(const std::string& path);
  /// An open file, which is closed here; `shown` is its name in messages.
  MappedFile(int fd, const std::string& shown);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace wide
