// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/process/run_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "bench/process/interrupt.hpp"
#include "wide/error.hpp"

namespace wide::bench {

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "wbench-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr)
    throw Error(ErrorCode::io, path_ + ": " + std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int run_program(const std::vector<std::string>& words, bool discards_output) {
  return run_program_into(discards_output ? "/dev/null" : "", "", words);
}

int run_program_into(const std::string& output_file, const std::string& error_file,
                     const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [descriptor, file] :
       {std::pair(STDOUT_FILENO, &output_file), std::pair(STDERR_FILENO, &error_file)}) {
    if (file->empty()) continue;
    posix_spawn_file_actions_addopen(&actions, descriptor, file->c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  }
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(ErrorCode::io, fmt::format("cannot start {}: {}", words[0], std::strerror(error)));
  set_awaited_program(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    const int failure = errno;
    set_awaited_program(0);
    throw Error(ErrorCode::io, words[0] + ": " + std::strerror(failure));
  }
  set_awaited_program(0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string signal_text(int signal) {
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

void require_program(const std::string& program) {
  std::error_code is_absent;
  int reason = 0;
  if (program.find('/') == std::string::npos) {
    reason = is_on_path(program) ? 0 : ENOENT;
  } else if (::access(program.c_str(), X_OK) != 0) {
    reason = errno;
  } else if (std::filesystem::is_directory(program, is_absent)) {
    reason = EACCES;
  }
  if (reason != 0)
    throw Error(ErrorCode::io, fmt::format("cannot start {}: {}", program, std::strerror(reason)));
}

std::string shell_word(const std::string& word) {
  const bool is_plain = !word.empty() && word.find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789-_=./:,+@%") == std::string::npos;
  if (is_plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace wide::bench
