// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bench/cases/value_spec.hpp"
#include "bench/document/result.hpp"
#include "bench/report/exports.hpp"
#include "host/core/strategy_choice.hpp"
#include "wide/catalog.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words, const char* separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

/// Words of an axis, or of an option that takes names of the catalogue.
Words catalogue_words(const std::string& option) {
  std::set<std::string> words;
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    if (option == "op") words.emplace(spec->name);
    for (const catalog::Sweep& sweep : spec->sweeps) {
      if (option == "preset") words.emplace(sweep.name);
    }
    for (const catalog::StrategyInfo& info : spec->strategies) {
      if (option == "strategy" || option == "only" || option == "skip") words.emplace(info.name);
    }
    for (const catalog::AxisInfo& axis : spec->axes) {
      if (option == axis.name) words.insert(axis.words.begin(), axis.words.end());
    }
  }
  if (option == "op" || option == "strategy" || option == "only" || option == "skip")
    words.emplace(kAll);
  if (option == "strategy" || option == "only") {
    words.insert(std::string(kAuto));
    words.insert(std::string(kAutoUnverified));
  }
  return {words.begin(), words.end()};
}

struct Described {
  std::string name, text;
};

/// Commands that may come next, by name and summary.
std::vector<Described> commands_of(const CLI::App& app) {
  std::vector<Described> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back({command->get_name(), command->get_description()});
  return commands;
}

/// "--op", "-p": all spellings.
Words spellings(const CLI::Option& option) {
  Words all;
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  return all;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

/// A command's own options and the program's, which it inherits.
std::vector<const CLI::Option*> options_of(const CLI::App& app, const CLI::App* command) {
  std::vector<const CLI::Option*> options;
  if (command != nullptr) options = command->get_options();
  for (const CLI::Option* option : app.get_options()) {
    if (command == nullptr || !option->check_lname("help")) options.push_back(option);
  }
  std::erase_if(options, [](const CLI::Option* option) { return spellings(*option).empty(); });
  return options;
}

/// For the arguments without a dash, in any place: none of ours is ambiguous.
Words argument_words(const CLI::App& command) {
  Words words;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    for (std::string& word : words_of(*option)) words.push_back(std::move(word));
  }
  return words;
}

std::string bash_command(const CLI::App& app, const CLI::App* command) {
  Words names;
  std::string values;
  for (const CLI::Option* option : options_of(app, command)) {
    const Words all = spellings(*option);
    names.insert(names.end(), all.begin(), all.end());
    const Words words = words_of(*option);
    if (takes_value(*option))
      values += fmt::format("        {}) takes_value=1; words=\"{}\" ;;\n", joined(all, "|"),
                            joined(words));
  }
  Words arguments;
  if (command != nullptr) {
    arguments = argument_words(*command);
  } else {
    for (const Described& known : commands_of(app)) arguments.push_back(known.name);
  }
  return fmt::format(
      "    {})\n      options=\"{}\"\n      arguments=\"{}\"\n      case $previous in\n{}      "
      "esac\n      ;;\n",
      command == nullptr ? "''" : command->get_name(), joined(names), joined(arguments), values);
}

std::string bash_script(const CLI::App& app) {
  Words commands;
  for (const Described& command : commands_of(app)) commands.push_back(command.name);
  std::string cases = bash_command(app, nullptr);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    cases += bash_command(app, command);
  return R"sh(# wbench completion bash: eval "$(wbench completion bash)", or into
# ~/.local/share/bash-completion/completions/wbench
_wbench() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command= options= arguments= words= takes_value= word
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      )sh" +
         joined(commands, "|") +
         R"sh() command=$word; break ;;
    esac
  done
  case $command in
)sh" + cases +
         R"sh(  esac
  if [[ $takes_value ]]; then
    # Lists continue after their last comma; without words, files are completed.
    local head=${current%"${current##*,}"}
    COMPREPLY=($(compgen -P "$head" -W "$words" -- "${current##*,}"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$arguments" -- "$current"))
  fi
}
complete -o default -F _wbench wbench
)sh";
}

/// In single quotes; brackets and colons are special in zsh's specifications.
std::string plain(const std::string& text, const char* forbidden) {
  std::string out;
  for (const char c : text) {
    const bool is_bad =
        std::string_view(forbidden).find(c) != std::string_view::npos || c == '\'' || c == '\n';
    out += is_bad ? ' ' : c;
  }
  return out;
}

std::string zsh_options(const CLI::App& app, const CLI::App* command) {
  std::string text;
  for (const CLI::Option* option : options_of(app, command)) {
    for (const std::string& name : spellings(*option)) {
      text += fmt::format(" \\\n        '*{}[{}]", name, plain(option->get_description(), "[]:"));
      const Words words = words_of(*option);
      if (takes_value(*option))
        text += words.empty() ? ":value:_files" : ":value:_sequence compadd - " + joined(words);
      text += "'";
    }
  }
  return text;
}

std::string zsh_script(const CLI::App& app) {
  std::string described, cases;
  for (const Described& command : commands_of(app))
    described += fmt::format("    '{}:{}'\n", command.name, plain(command.text, ":"));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const Words arguments = argument_words(*command);
    cases += fmt::format("      {}) _arguments{} \\\n        '*:argument:{}' ;;\n",
                         command->get_name(), zsh_options(app, command),
                         arguments.empty() ? "_files" : fmt::format("({})", joined(arguments)));
  }
  return R"sh(#compdef wbench
# wbench completion zsh: into a file _wbench in a folder of $fpath
_wbench() {
  local curcontext=$curcontext state line
  local -a commands=(
)sh" + described +
         "  )\n  _arguments -C" + zsh_options(app, nullptr) +
         R"sh( \
        '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands ;;
    argument)
      case $line[1] in
)sh" + cases +
         R"sh(      esac ;;
  esac
}
if [[ $funcstack[1] == _wbench ]]; then _wbench "$@"; else compdef _wbench wbench; fi
)sh";
}

std::string fish_options(const CLI::App& app, const CLI::App* command,
                         const std::string& condition) {
  std::string text;
  const auto options = command == nullptr ? options_of(app, nullptr) : command->get_options();
  for (const CLI::Option* option : options) {
    if (spellings(*option).empty()) continue;
    text += "complete -c wbench" + condition;
    for (const std::string& name : option->get_snames()) text += " -s " + name;
    for (const std::string& name : option->get_lnames()) text += " -l " + name;
    const Words words = words_of(*option);
    if (takes_value(*option)) text += words.empty() ? " -r -F" : " -x -a '" + joined(words) + "'";
    text += " -d '" + plain(option->get_description(), "\\") + "'\n";
  }
  return text;
}

std::string fish_script(const CLI::App& app) {
  std::string text = "# wbench completion fish: into ~/.config/fish/completions/wbench.fish\n" +
                     fish_options(app, nullptr, "");
  for (const Described& command : commands_of(app)) {
    text += fmt::format("complete -c wbench -n __fish_use_subcommand -f -a {} -d '{}'\n",
                        command.name, plain(command.text, "\\"));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string condition =
        fmt::format(" -n '__fish_seen_subcommand_from {}'", command->get_name());
    text += fish_options(app, command, condition);
    const Words arguments = argument_words(*command);
    if (!arguments.empty())
      text += "complete -c wbench" + condition + " -a '" + joined(arguments) + "'\n";
  }
  return text;
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string description = "{" + joined(words, ",") + "}";
  return CLI::Validator(
      [words](std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        const std::vector<std::string_view> known(words.begin(), words.end());
        return catalog::unknown_name_message("word", text, known);
      },
      description);
}

Words words_of(const CLI::Option& option) {
  // A validator of words describes itself as "{a,b}".
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin != std::string::npos && end != std::string::npos)
    return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
  const std::string name = option.get_lnames().empty() ? "" : option.get_lnames().front();
  if (name == "device") return {"cpu", "cuda"};
  if (name == "regime") {
    Words regimes;
    for (const Regime regime : kRegimes) regimes.emplace_back(to_string(regime));
    regimes.emplace_back(kAll);
    return regimes;
  }
  if (name == "baseline") return {"loop", "streams", "graph", std::string(kAll), "none"};
  Words formats;
  for (const ExportFormat& format : export_formats())
    formats.push_back(std::string(format.name) + "=");
  if (name == "export") return formats;
  Words words = catalogue_words(name);
  if (!words.empty() && option.get_group() == "Axes") words.emplace_back(kAll);
  return words;
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  if (shell == "fish") return fish_script(app);
  static constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
  throw Error(ErrorCode::invalid_argument,
              "completion: " + catalog::unknown_name_message("shell", shell, kShells));
}

}  // namespace wide::bench
