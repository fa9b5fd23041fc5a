// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/cli/cli_messages.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "host/core/nearest.hpp"
#include "wide/error.hpp"

namespace wide::bench {

void require_no_extras(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> extras = command.remaining();
  for (const std::string& extra : app.remaining()) extras.push_back(extra);
  std::erase(extras, "--");  // marks the end of the options and is not one itself
  if (extras.empty()) return;
  const auto option =
      std::find_if(extras.begin(), extras.end(), [](const auto& e) { return e.starts_with("-"); });
  const std::string& extra = option != extras.end() ? *option : extras.front();
  std::vector<std::string> names;
  for (const CLI::App* owner : {&command, &app}) {
    for (const CLI::Option* known : owner->get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::string option_name = extra.substr(0, extra.find('='));
  if (std::find(names.begin(), names.end(), option_name) != names.end()) {
    throw Error(ErrorCode::invalid_argument,
                "\"" + option_name + "\" precedes the command, expected after it: wbench " +
                    command.get_name() + " " + extra);
  }
  if (option_name == "--all" && command.get_option_no_throw("--op") != nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "unknown argument \"--all\", did you mean wbench " + command.get_name() + " all?");
  }
  std::sort(names.begin(), names.end());  // --help belongs to a command and to the program
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = did_you_mean(option_name, views);
  throw Error(ErrorCode::invalid_argument,
              "unknown argument \"" + extra + "\"" +
                  (near.empty() ? "; see wbench " + command.get_name() + " --help" : near));
}

std::string with_named_ops(const CLI::App& command, std::string ops,
                           const std::vector<std::string>& named) {
  for (const std::string& name : named) {
    // `verify` has an option --all, yet the word means all primitives.
    if (name != "all" && command.get_option_no_throw("--" + name) != nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  "unknown argument \"" + name + "\", did you mean --" + name + "?");
    }
    if (name.find_first_not_of("0123456789") == std::string::npos) {
      throw Error(ErrorCode::invalid_argument,
                  "unknown argument \"" + name + "\"; commas separate values: --n 4,8,16");
    }
    ops += (ops.empty() ? "" : ",") + name;
  }
  return ops;
}

std::string parse_message(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  // CLI11's words for an option that is repeated: "--op: At Most 1 required but received 2".
  constexpr std::string_view kOnce = ": At Most 1 required but received ";
  if (const size_t at = text.find(kOnce); at != std::string::npos) {
    const std::string count = text.substr(at + kOnce.size());
    return text.substr(0, at) + " is given " + (count == "2" ? "twice" : count + " times") +
           ", expected once";
  }
  // "--n: 1 required TEXT missing", TEXT being what --help calls the value.
  if (const size_t at = text.find(": 1 required "); text.ends_with(" missing") && at != text.npos)
    return text.substr(0, at) + ": no value, expected one";
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (commands.empty()) return text;
  const CLI::App& command = *commands.front();
  for (const CLI::Option* argument : command.get_options()) {
    if (!argument->get_positional()) continue;
    const std::string name = argument->get_name();
    if (text == name + " is required") {
      return command.get_name() + ": no " + name + ", expected " + argument->get_description() +
             "; see wbench " + command.get_name() + " --help";
    }
    if (text.starts_with(name + ": ")) return command.get_name() + ": " + text;
  }
  return text;
}

std::string help_of(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->check_name(name)) return command->help(app.get_name());
  }
  return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
    for (const std::string& alias : command->get_aliases()) names.push_back(alias);
  }
  return names;
}

}  // namespace wide::bench
