// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A folder of a test's own, the current one while it lives.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace wide::test {

class TemporaryFolder {
 public:
  TemporaryFolder() : old_(std::filesystem::current_path()) {
    std::string name = (std::filesystem::temp_directory_path() / "wide-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp: " + name);
    path_ = name;
    std::filesystem::current_path(path_);
  }
  ~TemporaryFolder() {
    std::filesystem::current_path(old_);
    std::filesystem::remove_all(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;

 private:
  std::filesystem::path old_, path_;
};

}  // namespace wide::test
