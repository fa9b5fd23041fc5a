// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/idle_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "wide/error.hpp"
#include "wide/models.hpp"

namespace wide::bench {

namespace {

using Names = std::initializer_list<const char*>;

/// The options that a command was given, by name.
class Given {
 public:
  explicit Given(const CLI::App& command) : command_(command) {}

  bool has(const std::string& name) const {
    const CLI::Option* option = command_.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  }
  bool has_any(Names names) const {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return has(name); });
  }
  /// Whether the option has one of these values; if not given, `by_default`.
  bool is(const std::string& name, Names values, bool by_default = false) const {
    if (!has(name)) return by_default;
    const std::string value = command_.get_option(name)->results().back();
    return std::find(values.begin(), values.end(), value) != values.end();
  }
  /// The value of an option with a default, given or not.
  template <class Value>
  Value value_of(const std::string& name) const {
    return command_.get_option(name)->as<Value>();
  }
  /// The words of a comma-separated value; none if not given.
  std::vector<std::string> list(const std::string& name) const {
    std::vector<std::string> words;
    if (!has(name)) return words;
    std::istringstream text(command_.get_option(name)->results().back());
    for (std::string word; std::getline(text, word, ',');) words.push_back(word);
    return words;
  }
  /// Whether the axis is given, as --NAME or --axis NAME=.., with more than 0, the model's own.
  bool has_size(const std::string& axis) const {
    if (has("--" + axis)) return !is("--" + axis, {"0"});
    if (!has("--axis")) return false;
    const std::vector<std::string> texts = command_.get_option("--axis")->results();
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return text.starts_with(axis + "=") && text != axis + "=0";
    });
  }

 private:
  const CLI::App& command_;
};

struct Rule {
  const char* commands;  ///< "run verify"
  std::vector<const char*> options;
  bool (*has_effect)(const Given&);
  const char* owner;  ///< what the options belong to
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all{
      {"run",
       {"--launches", "--endless"},
       [](const Given& given) { return given.has("--profile"); },
       "--profile"},
      {"run",
       {"--max-noise"},
       [](const Given& given) { return given.is("--stop", {"stdrel"}); },
       "--stop stdrel"},
      {"run",
       {"--target-ci"},
       [](const Given& given) { return given.is("--stop", {"ci"}, true); },
       "--stop ci"},
      {"run",
       {"--l2-factor"},
       [](const Given& given) { return !given.is("--cache", {"warm"}); },
       "--cache flush and rotate"},
      {"run",
       {"--aa"},
       [](const Given& given) { return !given.is("--baseline", {"none"}); },
       "baselines, which --baseline none leaves out"},
      {"run",
       {"--save-workspace"},
       [](const Given& given) { return !given.is("--verify", {"off"}); },
       "calls that are checked, which --verify off leaves out"},
      {"run",
       {"--metrics"},
       [](const Given& given) { return !given.has("--roofline"); },
       "a table whose columns --roofline does not choose"},
      {"run verify inspect",
       {"--store"},
       [](const Given& given) {
         return given.has_any({"--save", "--tag", "--compare"});
       },
       "--save, --tag and --compare"},
      {"run verify inspect",
       {"--samples"},
       [](const Given& given) {
         return given.has_any({"--json", "--output", "--save", "--tag"});
       },
       "--json, --save and --tag"},
      {"profile",
       {"--set"},
       [](const Given& given) { return given.is("--tool", {"ncu"}); },
       "--tool ncu"},
      {"profile",
       {"--folder"},
       [](const Given& given) { return !given.is("--tool", {"none"}); },
       "--tool nsys and ncu"},
      {"trace",
       {"--tuning"},
       [](const Given& given) {
         return !given.has("--op") && !given.is("--compile", {"none", "safe"});
       },
       "a model whose strategies are chosen, as by --compile default"},
      {"trace",
       {"--times", "--device"},
       [](const Given& given) { return !given.is("--compile", {"none"}); },
       "a graph that is compiled, which --compile none is not"},
      {"trace",
       {"--strategy", "--only", "--skip"},
       [](const Given& given) { return given.has("--op"); },
       "trace --op"},
      {"list",
       {"--op"},
       [](const Given& given) {
         return given.is("what", {"ops", "strategies", "policies", "axes", "presets", "tolerances"},
                         true);
       },
       "list ops, strategies, policies, axes, presets and tolerances"},
      {"info",
       {"--device"},
       [](const Given& given) {
         return given.has_any({"--calibrate", "--self-check"});
       },
       "--calibrate and --self-check"},
      {"compare", {"--repeat"}, [](const Given& given) { return given.has("--rerun"); }, "--rerun"},
      {"report",
       {"--metric", "--threshold"},
       [](const Given& given) { return given.has("--compare"); },
       "--compare"},
      {"report", {"--plots"}, [](const Given& given) { return given.has("--html"); }, "--html"},
      {"history",
       {"--op", "--axis", "--filter", "--strategy"},
       [](const Given& given) {
         return given.is("what", {"trend", "noise", "bisect-hint"});
       },
       "history trend, noise and bisect-hint"},
      {"history",
       {"--keep"},
       [](const Given& given) { return given.is("what", {"gc"}); },
       "history gc"},
      {"history",
       {"--json"},
       [](const Given& given) {
         return given.is("what", {"list", "trend", "noise", "bisect-hint"}, true);
       },
       "history list, trend, noise and bisect-hint"},
      {"history",
       {"arguments"},
       [](const Given& given) {
         return given.is("what", {"show", "add", "tag", "rm"});
       },
       "history show, add, tag and rm"},
      {"suite",
       {"--entry", "--device", "--results", "--save", "--strict", "--dry-run"},
       [](const Given& given) { return given.is("what", {"run"}); },
       "suite run"},
      {"suite",
       {"--json"},
       [](const Given& given) {
         return given.is("what", {"list", "run"}, true);
       },
       "suite list and run"},
      {"suite",
       {"--store"},
       [](const Given& given) { return given.is("what", {"run"}) && given.has("--save"); },
       "suite run --save"},
      {"quantize",
       {"--seed"},
       [](const Given& given) { return !given.has("file"); },
       "random weights, not of a file's"},
  };
  return all;
}

/// Whether the space-separated `words` contain this one.
bool has_word(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

/// Refuses a size for a model that does not have it, named on its own or with others. Among all
/// models it is an impossible case of some.
void refuse_idle_sizes(const CLI::App& command, const Given& given) {
  std::vector<std::string> names = given.list("--model");
  for (const std::string& op : given.list("--op")) {
    if (op.starts_with("model:")) names.push_back(op.substr(op.find(':') + 1));
  }
  for (const std::string axis : {"layers", "seq", "image"}) {
    if (!given.has_size(axis)) continue;
    for (const NamedModel& model : named_models()) {
      const bool is_named = std::find(names.begin(), names.end(), model.name) != names.end();
      if (!is_named || model.has_size(axis)) continue;
      throw Error(ErrorCode::invalid_argument,
                  command.get_name() + ": --" + axis + " " + idle_size_text(axis, model));
    }
  }
}

/// Refuses a least number of samples that the largest does not let be taken. A largest one below
/// the default of the least says what is wanted.
void refuse_idle_samples(const CLI::App& command, const Given& given) {
  if (!given.has("--min-samples")) return;
  const auto least = given.value_of<int64_t>("--min-samples"),
             most = given.value_of<int64_t>("--max-samples");
  if (least <= most) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: --min-samples is {}, expected at most --max-samples, which is {}",
                          command.get_name(), least, most));
}

}  // namespace

void refuse_idle_options(const CLI::App& command) {
  const Given given(command);
  refuse_idle_sizes(command, given);
  refuse_idle_samples(command, given);
  for (const Rule& rule : rules()) {
    if (!has_word(rule.commands, command.get_name()) || rule.has_effect(given)) continue;
    for (const char* option : rule.options) {
      if (!given.has(option)) continue;
      throw Error(ErrorCode::invalid_argument, command.get_name() + ": " + option +
                                                   " has no effect here: it is of " + rule.owner);
    }
  }
}

std::vector<std::string> given_gpu_options(const CLI::App& command) {
  const Given given(command);
  std::vector<std::string> names;
  for (const char* name : {"--cache", "--l2-factor", "--warmup-clock-tol", "--throttle",
                           "--throttle-threshold", "--energy"}) {
    if (given.has(name)) names.emplace_back(name);
  }
  return names;
}

}  // namespace wide::bench
