// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `profile`: the command that shows NVIDIA's profilers one case and nothing else. If the tool
// is installed, it is run. A profiler serialises launches, so its results contain no times of ours.
#include <algorithm>
#include <filesystem>
#include <ostream>

#include "bench/cli/cli.hpp"
#include "bench/cli/commands.hpp"
#include "bench/command/options.hpp"
#include "bench/command/running.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/run_program.hpp"
#include "bench/run/contender.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// The words of this command that select: without its name, and without its own options.
std::vector<std::string> selecting_words(const std::vector<std::string>& argv) {
  const std::vector<std::string> own{"--tool", "--set", "--folder", "--baseline"};
  std::vector<std::string> words;
  bool was_named = false;
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word == "--") break;
    const std::string name = word.substr(0, word.find('='));
    if (!was_named && word == "profile") {
      was_named = true;
    } else if (std::find(own.begin(), own.end(), name) != own.end()) {
      i += name == word ? 1 : 0;
    } else if (word != "--dry-run") {
      words.push_back(word);
    }
  }
  return words;
}

std::vector<std::string> tool_words(const ProfileOptions& o, const std::string& file) {
  if (o.tool == "nsys") {
    // By default nsys shows a graph as one bar, without its kernels.
    return {"nsys",
            "profile",
            "--capture-range=cudaProfilerApi",
            "--capture-range-end=stop",
            "--trace=cuda,nvtx",
            "--cuda-graph-trace=node",
            "--force-overwrite=true",
            "--output=" + file};
  }
  if (o.tool == "ncu") {
    // By default ncu locks clocks to base, unlike all other measurements here.
    std::vector<std::string> words{"ncu", "--clock-control", "none", "--profile-from-start", "off"};
#if WIDE_HAS_NVTX
    // DOMAIN@RANGE; the slash means a push/pop range rather than a start/end range.
    words.insert(words.end(), {"--nvtx", "--nvtx-include",
                               std::string(kNvtxDomain) + "@" + kProfiledRange + "/"});
#endif
    words.insert(words.end(), {"--set", o.set, "--force-overwrite", "--export", file});
    return words;
  }
  return {};
}

}  // namespace

int command_profile(const GlobalOptions& global, const ProfileOptions& options, std::ostream& out,
                    std::ostream& err) {
  const std::optional<Context> context = make_context(options.run.selection, err);
  if (!context) return kEnvironment;
  RunPlan plan(*context);
  RunResult result;
  const std::string nothing = select_work(options.run.selection, plan, result);
  if (!nothing.empty()) {
    report_nothing(nothing, result, err);
    return kNothingRan;
  }
  if (plan.num_cases() != 1) {
    throw Error(ErrorCode::invalid_argument,
                "profile: " + std::to_string(plan.num_cases()) +
                    " cases are selected, expected 1: a profiler's report is of one");
  }
  const std::string file =
      (std::filesystem::path(options.folder) / std::string(plan.work.front().first->name)).string();
  std::vector<std::string> words = tool_words(options, file);
  words.insert(words.end(), options.tool_arguments.begin(), options.tool_arguments.end());
  words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  words.emplace_back("run");
  for (const std::string& word : selecting_words(global.argv)) words.push_back(word);
  words.insert(words.end(), {"--baseline", options.run.selection.baselines});
  words.emplace_back("--profile");
  for (size_t i = 0; i < words.size(); ++i) out << (i == 0 ? "" : " ") << shell_word(words[i]);
  out << std::endl;  // flush before the tool writes
  if (options.run.dry_run) return kSuccess;
  if (options.tool != "none" && !is_on_path(options.tool)) {
    err << "wbench: " << options.tool << " is not on PATH: not run\n";
    return kEnvironment;
  }
  const int code = run_program(words, false);
  return code == kSuccess || options.tool == "none" ? code : kRuntimeError;  // a tool has its own
}

}  // namespace wide::bench
