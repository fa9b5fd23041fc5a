// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/command/reproduce.hpp"

#include <fmt/format.h>

#include <utility>

#include "bench/command/options.hpp"
#include "bench/process/run_program.hpp"
#include "bench/process/simulation.hpp"

namespace wide::bench {

namespace {

/// Options of one type: their names and where their values are.
template <class T>
using Option = std::pair<const char*, T>;

constexpr Option<std::string RunOptions::*> kTexts[] = {
    {"--init", &RunOptions::init},
    {"--cache", &RunOptions::cache},
    {"--target-ci", &RunOptions::target_ci},
    {"--max-noise", &RunOptions::max_noise},
    {"--warmup-clock-tol", &RunOptions::clock_tol},
    {"--throttle-threshold", &RunOptions::throttle_threshold},
    {"--lock-clocks", &RunOptions::lock_clocks},
    {"--tuning", &RunOptions::tuning},
};
constexpr Option<bool RunOptions::*> kModes[] = {
    {"--adversarial", &RunOptions::is_adversarial},
    {"--all", &RunOptions::compares_all},
    {"--profile", &RunOptions::is_profiled},
};
constexpr Option<int64_t RunOptions::*> kCalls[] = {{"--launches", &RunOptions::profiled_calls}};
constexpr Option<double RunOptions::*> kShares[] = {{"--budget", &RunOptions::budget_s}};
constexpr Option<std::string RunConfig::*> kWords[] = {
    {"--verify", &RunConfig::verify},
    {"--interleave", &RunConfig::interleave},
    {"--stop", &RunConfig::stop},
    {"--throttle", &RunConfig::throttle},
};
constexpr Option<int64_t RunConfig::*> kCounts[] = {
    {"--rounds", &RunConfig::rounds},
    {"--min-samples", &RunConfig::min_samples},
    {"--max-samples", &RunConfig::max_samples},
};
constexpr Option<double RunConfig::*> kReals[] = {
    {"--l2-factor", &RunConfig::l2_factor},  {"--min-time", &RunConfig::min_time_s},
    {"--warmup-time", &RunConfig::warmup_s}, {"--timeout", &RunConfig::timeout_s},
    {"--cooldown", &RunConfig::cooldown_s},
};
constexpr Option<uint64_t RunConfig::*> kSeeds[] = {
    {"--seed", &RunConfig::seed},
    {"--order-seed", &RunConfig::order_seed},
};
constexpr Option<bool RunConfig::*> kFlags[] = {
    {"--aa", &RunConfig::aa},
    {"--energy", &RunConfig::energy},
};

std::string word_of(const std::string& value) {
  return shell_word(value);
}
template <class T>
std::string word_of(const T& value) {
  return fmt::format("{}", value);
}

/// Flags are given by their names alone.
std::string argument(const char* name, bool) {
  return std::string(" ") + name;
}
template <class T>
std::string argument(const char* name, const T& value) {
  return fmt::format(" {} {}", name, word_of(value));
}

/// Those of `options` that differ from a default-constructed object.
template <class Options, class Object>
std::string given(const Options& options, const Object& object) {
  const Object usual{};
  std::string text;
  for (const auto& [name, member] : options) {
    if (object.*member != usual.*member) text += argument(name, object.*member);
  }
  return text;
}

}  // namespace

std::string reproduce_suffix(const RunOptions& options, const Device& device) {
  const RunConfig& config = options.config;
  std::string text = options.selection.file.words() + " --device " + to_string(device);
  if (is_simulated() && device.type == DeviceType::cuda) text += " --sim";
  text += given(kModes, options) + given(kCalls, options) + given(kTexts, options) +
          given(kWords, config) + given(kCounts, config) + given(kReals, config) +
          given(kShares, options) + given(kSeeds, config) + given(kFlags, config);
  for (const std::string& command : options.peers) text += " --peer " + shell_word(command);
  return text;
}

}  // namespace wide::bench
