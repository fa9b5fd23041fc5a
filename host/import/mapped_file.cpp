// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A file's bytes, mapped: unwritten pages are the file's own.
#include "host/import/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "wide/error.hpp"

namespace wide {

namespace {

[[noreturn]] void fail(const std::string& shown, const std::string& why) {
  throw Error(ErrorCode::io, "cannot read " + shown + ": " + why);
}

int open_file(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(path, std::strerror(errno));
  return fd;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : MappedFile(open_file(path), path) {}

MappedFile::MappedFile(int fd, const std::string& shown) {
  struct stat status {};
  const bool is_known = ::fstat(fd, &status) == 0;
  void* data = nullptr;
  if (is_known && S_ISREG(status.st_mode) && status.st_size > 0) {
    // Without MAP_NORESERVE a file that is larger than the memory would be refused, as if all of it
    // could be written to.
    data = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  }
  const int error = errno;
  ::close(fd);
  if (!is_known || data == MAP_FAILED) fail(shown, std::strerror(error));
  if (!S_ISREG(status.st_mode)) fail(shown, "it is no regular file");
  data_ = static_cast<const std::byte*>(data);
  size_ = static_cast<size_t>(status.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace wide
