// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Files: read whole, written so that a crash at any moment leaves the old file or the new one.
#include "host/core/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
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
  Descriptor(const std::string& path, int flags, mode_t mode, const std::string& shown)
      : path_(shown), fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (fd_ < 0) fail("cannot write", path_, errno);
  }
  /// A duplicate, which shares the position.
  Descriptor(int own, const std::string& shown)
      : path_(shown), fd_(::fcntl(own, F_DUPFD_CLOEXEC, 0)) {
    if (fd_ < 0) fail("cannot write", path_, errno);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;

  /// Takes over who may read and write the file that is to be replaced.
  void take_rights_of(const struct stat& old) {
    // Only a privileged user may give a file away; for others it is theirs already or becomes so.
    [[maybe_unused]] const int given = ::fchown(fd_, old.st_uid, old.st_gid);
    if (::fchmod(fd_, old.st_mode & 07777) != 0) fail("cannot write", path_, errno);
  }
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

/// Makes a rename in this folder last.
void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);  // a file system that cannot is not our failure
  ::close(fd);
}

/// The number of this process' open file that the path names, as /dev/stdout and /dev/fd/3 do. What
/// it leads to must not be replaced, since the process goes on writing to the old file.
std::optional<int> own_descriptor(const std::string& path) {
  std::error_code error;
  std::filesystem::path target(path);
  if (target == "/dev/stdout" || target == "/dev/stderr")
    target = std::filesystem::read_symlink(target, error);
  const std::string name = target.filename().string();
  const bool is_number =
      !name.empty() && name.size() < 8 && name.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || !target.has_parent_path()) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::canonical(target.parent_path(), error);
  if (error || folder != std::filesystem::canonical("/proc/self/fd", error)) return std::nullopt;
  return std::stoi(name);
}

/// A name beside the target, nobody else's: of other threads, nor of other machines that share the
/// folder. It is no longer than the 255 bytes that a target may have.
std::string temporary_beside(const std::string& target) {
  constexpr size_t kKept = 200;
  const std::filesystem::path path(target);
  const std::string name = path.filename().string().substr(0, kKept) + ".tmp" +
                           std::to_string(std::random_device()()) +
                           std::to_string(std::random_device()());
  return (path.parent_path() / name).string();
}

void write_and_close(Descriptor&& file, std::span<const std::string_view> pieces) {
  file.write_all(pieces);
  file.sync_and_close();
}

}  // namespace

std::string follow_links(const std::string& path) {
  constexpr int kMaxLinks = 40;  // Linux's own limit
  std::filesystem::path target(path);
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code is_no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(target, is_no_link);
    if (is_no_link) return target.string();
    target = target.parent_path() / next;  // `next` alone where that is absolute
  }
  fail("cannot write", path, ELOOP);
}

bool is_replaced(const std::string& path) {
  struct stat status {};
  if (own_descriptor(path)) return false;
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

void require_writable(const std::string& path) {
  struct stat status {};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  // What is only missing may be made; a name that is too long cannot.
  if (!is_there && errno != ENOENT && errno != ENOTDIR) fail("cannot write", path, errno);
  if (is_there && S_ISDIR(status.st_mode)) fail("cannot write", path, EISDIR);
  const auto require_access = [&](const std::string& target, int how) {
    if (::faccessat(AT_FDCWD, target.c_str(), how, AT_EACCESS) != 0)
      fail("cannot write", path, errno);
  };
  if (own_descriptor(path)) return;
  if (!is_replaced(path)) return require_access(path, W_OK);
  const std::filesystem::path parent = std::filesystem::path(follow_links(path)).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  std::error_code is_absent;
  if (!std::filesystem::is_directory(folder, is_absent))
    throw Error(ErrorCode::io, "cannot write " + path + ": " + folder + " is no folder");
  require_access(folder, W_OK | X_OK);  // where its successor is made and renamed
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::span(&text, 1));
}

void write_file(const std::string& path, std::span<const std::string_view> pieces) {
  struct stat old {};
  const bool is_there = ::stat(path.c_str(), &old) == 0;
  if (is_there && S_ISDIR(old.st_mode)) fail("cannot write", path, EISDIR);
  if (const std::optional<int> own = own_descriptor(path))
    return write_and_close(Descriptor(*own, path), pieces);
  if (is_there && !S_ISREG(old.st_mode))
    return write_and_close(Descriptor(path, O_WRONLY, 0, path), pieces);
  const std::string target = follow_links(path);  // a rename onto a link would replace the link
  const std::string temporary = temporary_beside(target);
  // What replaces a private file is never open to others.
  Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL, is_there ? 0600 : 0644, path);
  try {
    if (is_there) file.take_rights_of(old);
    write_and_close(std::move(file), pieces);
    if (::rename(temporary.c_str(), target.c_str()) != 0) fail("cannot write", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(std::filesystem::path(target).parent_path());
}

FileLock::FileLock(const std::string& path) : path_(follow_links(path) + ".lock") {
  for (;;) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("cannot lock", path, errno);
    int result = 0;
    do result = ::flock(fd_, LOCK_EX);
    while (result != 0 && errno == EINTR);
    const int error = errno;
    struct stat locked {
    }, there{};
    // Its last owner may have removed the file that this one waited for.
    const bool is_current = result == 0 && ::fstat(fd_, &locked) == 0 &&
                            ::stat(path_.c_str(), &there) == 0 && locked.st_dev == there.st_dev &&
                            locked.st_ino == there.st_ino;
    if (is_current) return;
    ::close(fd_);
    if (result != 0) fail("cannot lock", path, error);
  }
}

FileLock::~FileLock() {
  struct stat status {};
  // While it is locked: no other process holds it. What has contents is no lock of ours.
  if (::fstat(fd_, &status) == 0 && status.st_size == 0) ::unlink(path_.c_str());
  ::close(fd_);
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
