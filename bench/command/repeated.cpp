// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/command/repeated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>

#include "bench/cases/value_spec.hpp"
#include "bench/command/options.hpp"
#include "bench/command/output_files.hpp"
#include "bench/command/outputs.hpp"
#include "bench/command/run_selection.hpp"
#include "bench/document/result_json.hpp"
#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "bench/process/run_program.hpp"
#include "bench/run/sweep.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// Splits "cuda:0,1" into cuda:0 and cuda:1, each once.
std::vector<std::string> devices_of(const RunOptions& options) {
  const std::string& text = options.selection.device;
  if (text.find(',') == std::string::npos) return {text};
  std::vector<std::string> devices = parse_list("device", text);  // names the same one once
  bool is_repeated = std::ssize(devices) != 1 + std::count(text.begin(), text.end(), ',');
  for (auto name = devices.begin(); name != devices.end(); ++name) {
    const bool is_number = !name->empty() && name->find_first_not_of("0123456789") == name->npos;
    if (is_number && name != devices.begin() && *(name - 1) != "cpu") *name = "cuda:" + *name;
    if (*name == "cuda") *name = "cuda:0";
    is_repeated = is_repeated || std::find(devices.begin(), name, *name) != name;
  }
  if (is_repeated) {
    throw Error(ErrorCode::invalid_argument,
                "--device: \"" + text + "\" names a device twice, expected each once");
  }
  if (options.config.isolate) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--isolate: {} devices, expected one", devices.size()));
  }
  return devices;
}

/// Runs sweep `turn` in a process of its own, which writes and prints as it would here.
int run_in_process(const GlobalOptions& global, const RunOptions& options, int64_t turn,
                   RunResult& result, std::ostream& out, std::ostream& err) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/result.json";
  std::vector<std::string> words = own_command(global, options);
  words.insert(words.end(), {kRepeatTurn, std::to_string(turn), kRepeatResult, file});
  for (const std::string& word : time_left_words()) words.push_back(word);
  out << std::flush;
  err << std::flush;
  const int code = run_program(words, false);
  if (std::filesystem::exists(file)) result = load_result(file);
  if (code <= 128 || is_cut_short(code)) return code;
  if (is_interrupted()) return kInterrupted;  // before its handler was installed
  err << fmt::format("wbench: run {}: its process was ended by {}\n", turn + 1,
                     signal_text(code - 128));
  return kRuntimeError;
}

/// One of several sweeps, by its number.
RunOptions numbered_options(const RunOptions& options, const std::string& device, int64_t i,
                            int64_t total) {
  RunOptions one = options;
  one.selection.device = device;
  one.config.repeat_index = i % options.repeat;
  one.config.repeat_count = options.repeat;
  one.is_one_of_several_devices = total > options.repeat;
  if (total == 1 || options.dry_run) return one;
  one.output = numbered(one.output, i + 1);
  one.saving = numbered_saving(one.saving, i + 1);
  if (!options.repeat_result.empty()) one.output.json.push_back(options.repeat_result);
  return one;
}

}  // namespace

std::vector<std::string> own_command(const GlobalOptions& global, const RunOptions& options) {
  std::vector<std::string> words = global.argv;
  if (!options.words.empty()) {
    words.resize(1);
    words.insert(words.end(), options.words.begin(), options.words.end());
  }
  words.front() = std::filesystem::read_symlink("/proc/self/exe").string();
  return words;
}

std::vector<std::string> time_left_words() {
  const std::optional<double> left_s = time_left_s();
  if (!left_s) return {};
  constexpr double kLeast_s = 1e-3;  // 0 would mean no limit
  return {kTimeLeft, fmt::format("{:.3f}", std::max(kLeast_s, *left_s))};
}

int run_repeatedly(const GlobalOptions& global, const RunOptions& options,
                   std::vector<RunResult>& runs, std::ostream& out, std::ostream& err) {
  const std::vector<std::string> devices = devices_of(options);
  const auto total = options.repeat * static_cast<int64_t>(devices.size());
  const bool is_turn = options.repeat_turn >= 0;
  if (options.repeat_turn >= total)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {}", kRepeatTurn, counted(total, "run")));
  const bool has_processes = options.repeat > 1 && !options.dry_run && !is_turn;
  if (has_processes) install_interrupt_handler();
  for (int64_t i = 0; total > 1 && !options.dry_run && i < total; ++i)
    require_outputs(numbered_options(options, devices.front(), i, total));
  int code = kSuccess;
  for (int64_t i = is_turn ? options.repeat_turn : 0; i < total; ++i) {
    const std::string& device = devices[static_cast<size_t>(i / options.repeat)];
    RunOptions one = numbered_options(options, device, i, total);
    if (total > 1 && !options.dry_run && !is_turn) {
      if (i > 0) pause_for(options.config.cooldown_s);
      if (is_interrupted()) return is_out_of_time() ? kTimedOut : kInterrupted;
      if (!global.quiet)
        err << fmt::format("wbench: run {} of {}{}{}\n", i + 1, total,
                           devices.size() > 1 ? ", on " : "", devices.size() > 1 ? device : "");
    }
    RunResult result;
    const int its_code = has_processes ? run_in_process(global, options, i, result, out, err)
                                       : run_selection(global, std::move(one), result, out, err);
    code = worse_code(code, its_code);
    const bool has_stopped = result.cases.empty() || is_cut_short(its_code) ||
                             (options.exits_on_error && !result.complete);
    if (!result.cases.empty()) runs.push_back(std::move(result));
    if (has_stopped || options.dry_run || is_turn) break;  // the others would be the same
  }
  return code;
}

}  // namespace wide::bench
