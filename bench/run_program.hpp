// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace wide::bench {

/// Runs a program, looked for in PATH, and waits for it; its exit code, or 128 and the signal that
/// ended it. Throws io where it cannot be started.
int run_program(const std::vector<std::string>& words, bool discards_output);
/// The same, with its standard output and standard error in files, made or replaced; "": as it is.
int run_program_into(const std::string& output_file, const std::string& error_file,
                     const std::vector<std::string>& words);

bool is_on_path(const std::string& program);

/// A word as a shell takes it.
std::string shell_word(const std::string& word);

/// A folder that lives as long as this does.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace wide::bench
