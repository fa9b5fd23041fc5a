// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace wide::bench {

/// Runs a program, searched in PATH, and waits for it; returns its exit code, or 128 plus the
/// signal that ended it. Throws io if it cannot be started.
int run_program(const std::vector<std::string>& words, bool discards_output);
/// The same, with standard output and standard error redirected to files; "": inherited.
int run_program_into(const std::string& output_file, const std::string& error_file,
                     const std::vector<std::string>& words);

/// "signal 9 (Killed)"
std::string signal_text(int signal);

bool is_on_path(const std::string& program);
/// Throws io, as starting it would, where a program is not there or may not be executed.
void require_program(const std::string& program);

/// Quotes a word for a shell.
std::string shell_word(const std::string& word);

/// A folder that is removed when this is destroyed.
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
