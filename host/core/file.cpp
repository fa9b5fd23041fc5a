// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Files: read whole, written so that a crash at any moment leaves the old file or the new one.
#include "host/core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <utility>

#include "wide/error.hpp"

namespace wide {

namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  throw Error(ErrorCode::io, what + " " + path + ": " + std::strerror(error));
}

/// Closes on every way out; close() of a written file may be what reports the error.
class Descriptor {
 public:
  /// `shown` is the file that errors are about.
  Descriptor(const std::string& path, int flags, const std::string& shown)
      : path_(shown), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail("cannot write", path_, errno);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;

  void write_all(std::span<const std::string_view> pieces) {
    for (const std::string_view piece : pieces) write_piece(piece);
  }
  void sync_and_close() {
    if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail("cannot write", path_, errno);
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) fail("cannot write", path_, errno);
  }

 private:
  void write_piece(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(fd_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot write", path_, errno);
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  std::string path_;
  int fd_;
};

}  // namespace

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::span(&text, 1));
}

void write_file(const std::string& path, std::span<const std::string_view> pieces) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) fail("cannot write", path, EISDIR);
    Descriptor special(path, O_WRONLY, path);
    special.write_all(pieces);
    special.sync_and_close();
    return;
  }
  // Nobody else's: of other threads, nor of other machines that share the folder.
  const std::string temporary = path + ".tmp" + std::to_string(std::random_device()()) +
                                std::to_string(std::random_device()());
  Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL, path);
  try {
    file.write_all(pieces);
    file.sync_and_close();
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot write", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    (void)::fsync(fd);  // the rename itself; a file system that cannot is not our failure
    ::close(fd);
  }
}

std::string read_file(const std::string& path) {
  const auto check = [&](bool holds, int error) {
    if (!holds) fail("cannot read", path, error);
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(fd >= 0, errno);
  const std::unique_ptr<const int, void (*)(const int*)> closed(&fd,
                                                                [](const int* f) { ::close(*f); });
  std::string text;
  for (char piece[1 << 16];;) {
    const ssize_t count = ::read(fd, piece, sizeof piece);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    check(count > 0, errno);
    text.append(piece, static_cast<size_t>(count));
  }
}

}  // namespace wide
