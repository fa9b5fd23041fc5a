// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/history/names.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "host/core/text.hpp"
#include "wide/error.hpp"

extern char** environ;

namespace wide::bench {

namespace {

constexpr std::string_view kGit = "git:";
constexpr std::string_view kLast = "last";
constexpr size_t kShortestHash = 7;

[[noreturn]] void throw_unknown(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

bool is_hash(std::string_view text) {
  return text.size() >= kShortestHash && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// The commit that git resolves a name to; empty if it cannot, or git is not installed. No
/// shell sees the name, and git does not take it for an option.
std::string commit_of(const std::string& ref) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const std::string commit = ref + "^{commit}";
  const char* argv[] = {"git",          "rev-parse", "--verify", "--quiet", "--end-of-options",
                        commit.c_str(), nullptr};
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, "git", &actions, nullptr, const_cast<char**>(argv), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  char buffer[256];
  while (error == 0) {
    const ssize_t bytes = ::read(ends[0], buffer, sizeof(buffer));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    text.append(buffer, static_cast<size_t>(bytes));
  }
  ::close(ends[0]);
  int status = 0;
  if (error != 0 || ::waitpid(child, &status, 0) != child || status != 0) return "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

const HistoryRun* newest_of_commit(const std::vector<HistoryRun>& runs, const std::string& hash) {
  if (!is_hash(hash)) return nullptr;
  const auto found = std::find_if(runs.rbegin(), runs.rend(), [&](const HistoryRun& run) {
    return !run.git_dirty && is_hash(run.git_sha) &&
           (run.git_sha.starts_with(hash) || hash.starts_with(run.git_sha));
  });
  return found == runs.rend() ? nullptr : &*found;
}

const HistoryRun& find_commit(const std::vector<HistoryRun>& runs, const std::string& ref) {
  if (const HistoryRun* run = newest_of_commit(runs, ref)) return *run;
  const std::string commit = commit_of(ref);
  if (commit.empty())
    throw_unknown("git:" + ref + ": no run is of such a commit, and git knows none in this folder");
  if (const HistoryRun* run = newest_of_commit(runs, commit)) return *run;
  throw_unknown("git:" + ref + ": no run is of a clean build of commit " + commit);
}

/// "last" is 0, "last~2" is 2, anything else is -1.
int64_t steps_back(std::string_view name) {
  if (name == kLast) return 0;
  if (!name.starts_with("last~")) return -1;
  const std::string_view digits = name.substr(kLast.size() + 1);
  int64_t steps = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), steps);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || steps < 0)
    throw_unknown("@" + std::string(name) + ": expected a number of runs after last~");
  return steps;
}

const HistoryRun& find_name(const std::vector<HistoryRun>& runs, const std::string& name) {
  std::vector<const HistoryRun*> begin_so;
  for (const HistoryRun& run : runs) {
    const bool has_tag = std::find(run.tags.begin(), run.tags.end(), name) != run.tags.end();
    if (has_tag || run.id == name) return run;
    if (run.id.starts_with(name)) begin_so.push_back(&run);
  }
  if (begin_so.size() == 1) return *begin_so.front();
  throw_unknown("@" + name + ": " +
                (begin_so.empty() ? "no run has such a tag or id"
                                  : std::to_string(begin_so.size()) + " ids begin so"));
}

}  // namespace

std::string store_or_default(const std::string& store) {
  if (!store.empty()) return store;
  const char* from_environment = std::getenv("WBENCH_HISTORY");
  const bool is_set = from_environment != nullptr && *from_environment != '\0';
  return is_set ? from_environment : "results";
}

void require_tag(const std::string& tag) {
  require_name("the tag", tag);
  if (tag == kLast || tag.starts_with("last~"))
    throw_unknown("the tag is \"" + tag + "\", expected another one: the newest run has that name");
}

bool is_history_name(const std::string& name) {
  return name.starts_with("@") || name.starts_with(kGit);
}

std::string find_run(const HistoryStore& store, const std::string& name) {
  const std::vector<HistoryRun> runs = store.runs();
  if (name.starts_with(kGit)) return find_commit(runs, name.substr(kGit.size())).id;
  const std::string plain = name.starts_with("@") ? name.substr(1) : name;
  const int64_t steps = steps_back(plain);
  if (steps < 0) {
    require_name("the run", plain);
    return find_name(runs, plain).id;
  }
  const auto count = static_cast<int64_t>(runs.size());
  if (steps >= count) throw_unknown("@" + plain + ": the history has " + counted(count, "run"));
  return runs[static_cast<size_t>(count - 1 - steps)].id;
}

RunResult load_named_result(const std::string& name, const std::string& store, Samples samples) {
  if (!is_history_name(name)) return load_result(name, samples);
  const std::unique_ptr<HistoryStore> history = open_history(store_or_default(store), true);
  const std::string id = find_run(*history, name);
  try {
    return parse_result(history->document(id));
  } catch (const Error& error) {
    throw Error(error.code(), name + " (" + id + "): " + error.what());
  }
}

std::vector<RunResult> load_named_results(const std::string& name, const std::string& store) {
  if (!std::filesystem::is_directory(name))
    return {load_named_result(name, store, Samples::if_there)};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(name)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  if (files.empty())
    throw Error(ErrorCode::invalid_argument, name + ": no .json file in this folder");
  std::sort(files.begin(), files.end());
  std::vector<RunResult> runs;
  for (const auto& file : files) runs.push_back(load_result(file.string(), Samples::if_there));
  return runs;
}

}  // namespace wide::bench
