// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/inspect/cuobjdump.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "bench/process/run_program.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr const char* kTool = "cuobjdump";
constexpr std::string_view kEntry = ".entry ", kFunction = "Function : ";

bool ends_name(char c) {
  return c == '(' || c == '\n' || c == ' ' || c == '\r' || c == ':';
}

/// The position of `mark` + `name` as a whole word; npos if it does not occur.
size_t find_named(std::string_view text, std::string_view mark, std::string_view name) {
  for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
    const std::string_view rest = text.substr(at + mark.size());
    if (rest.starts_with(name) && (rest.size() == name.size() || ends_name(rest[name.size()])))
      return at;
  }
  return text.npos;
}

/// The number after `key`, as in "REG:22".
int64_t number_behind(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == line.npos) return 0;
  const std::string_view digits = line.substr(at + key.size());
  int64_t value = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::string_view line_at(std::string_view text, size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace

std::string architecture_of(int compute_capability, std::string_view built) {
  int best = 0;
  std::string name;
  for (size_t from = 0, end = 0; from < built.size(); from = end + 1) {
    end = std::min(built.find(';', from), built.size());
    const std::string_view one = built.substr(from, end - from);
    int number = 0;
    const auto [rest, error] = std::from_chars(one.data(), one.data() + one.size(), number);
    const bool is_alone = error == std::errc() && one.substr(0, one.find('-')).ends_with('a');
    const bool runs = is_alone ? number == compute_capability
                               : number / 10 == compute_capability / 10 &&
                                     number <= compute_capability && !one.ends_with("-virtual");
    if (!runs || number < best) continue;
    best = number;
    name = one.substr(0, one.find('-'));
  }
  if (!name.empty()) return "sm_" + name;
  throw Error(ErrorCode::unsupported,
              fmt::format("this program has no code for compute capability {}.{}, but for {}",
                          compute_capability / 10, compute_capability % 10, built));
}

std::vector<std::string> cuobjdump_words(Listing listing, const std::string& architecture,
                                         const std::vector<std::string>& kernels,
                                         const std::string& program) {
  std::vector<std::string> words{kTool, "-arch", architecture};
  words.emplace_back(listing == Listing::ptx    ? "-ptx"
                     : listing == Listing::sass ? "-sass"
                                                : "-res-usage");
  if (listing == Listing::sass && !kernels.empty())
    words.insert(words.end(), {"-fun", fmt::format("{}", fmt::join(kernels, ","))});
  words.push_back(program);
  return words;
}

std::string ptx_of(std::string_view listing, std::string_view kernel) {
  size_t begin = find_named(listing, kEntry, kernel);
  if (begin == listing.npos) return "";
  // Its linkage precedes it, its body ends with the brace that closes the first.
  begin = listing.rfind('\n', begin) + 1;
  size_t end = listing.find('{', begin);
  int depth = 0;
  for (; end < listing.size(); ++end) {
    depth += listing[end] == '{' ? 1 : listing[end] == '}' ? -1 : 0;
    if (depth == 0) break;
  }
  return std::string(listing.substr(begin, end + 1 - begin)) + "\n";
}

std::string sass_of(std::string_view listing, std::string_view kernel) {
  size_t begin = find_named(listing, kFunction, kernel);
  if (begin == listing.npos) return "";
  begin = listing.rfind('\n', begin) + 1;
  size_t end = listing.find(kFunction, begin + line_at(listing, begin).size());
  const size_t next_binary = listing.find("\nFatbin ", begin);
  end = std::min(end == listing.npos ? listing.size() : listing.rfind('\n', end) + 1,
                 next_binary == listing.npos ? listing.size() : next_binary);
  return std::string(listing.substr(begin, end - begin));
}

ResourcesByKernel resources_of(std::string_view listing) {
  constexpr std::string_view kMark = " Function ";
  ResourcesByKernel all;
  for (size_t at = listing.find(kMark); at != listing.npos; at = listing.find(kMark, at + 1)) {
    const std::string_view title = line_at(listing, at);
    const size_t colon = title.find(':');
    if (colon == title.npos || at + title.size() >= listing.size()) continue;
    const std::string_view usage = line_at(listing, at + title.size() + 1);
    if (usage.find("REG:") == usage.npos) continue;
    all[std::string(title.substr(kMark.size(), colon - kMark.size()))] = {
        number_behind(usage, "REG:"),
        number_behind(usage, "STACK:") + number_behind(usage, "LOCAL:")};
  }
  return all;
}

std::string find_cuobjdump() {
  if (is_on_path(kTool)) return kTool;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* folder = std::getenv(variable);
    if (folder == nullptr) continue;
    const std::string tool = std::string(folder) + "/bin/" + kTool;
    if (::access(tool.c_str(), X_OK) == 0) return tool;
  }
  return "";
}

std::string run_cuobjdump(std::vector<std::string> words) {
  const std::string tool = find_cuobjdump();
  if (tool.empty()) {
    throw Error(ErrorCode::unsupported,
                std::string(kTool) +
                    " of the CUDA toolkit is neither on PATH nor in bin of CUDA_HOME or "
                    "CUDA_PATH; the command is\n  " +
                    shell_line(words));
  }
  words.front() = tool;
  const TemporaryFolder folder;
  const std::string output = folder.path() + "/listing", errors = folder.path() + "/errors";
  // It warns of every module that lacks a function: shown only if it fails.
  const int code = run_program_into(output, errors, words);
  if (code == 0) return read_file(output);
  throw Error(ErrorCode::unsupported,
              fmt::format("exit code {} of\n  {}\n{}", code, shell_line(words), read_file(errors)));
}

}  // namespace wide::bench
