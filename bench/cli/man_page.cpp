// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "bench/cli/completion.hpp"
#include "wide/version.hpp"

namespace wide::bench {

namespace {

/// Escapes text for troff: no control lines, no escapes, hyphens that can be copied.
std::string troff(const std::string& text) {
  std::string out;
  bool is_start = true;
  for (const char c : text) {
    if (is_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    is_start = c == '\n';
  }
  return out;
}

std::string option_names(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "--" : ", --") + name;
  return names.empty() ? option.get_name() : names;
}

std::string options_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    text += ".TP\n\\fB" + troff(option_names(*option)) + "\\fR";
    const std::vector<std::string> words = words_of(*option);
    // `wbench list` shows long lists of names.
    if (option->get_items_expected_max() > 0 && !words.empty() && words.size() <= 8)
      text += " " + troff(fmt::format("{}", fmt::join(words, "|")));
    text += "\n" + troff(option->get_description());
    if (!option->get_default_str().empty())
      text += troff(" (default: " + option->get_default_str() + ")");
    text += "\n";
  }
  return text;
}

std::string footer_text(const std::string& footer) {
  return footer.empty() ? "" : ".PP\n.nf\n" + troff(footer) + "\n.fi\n";
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string text = fmt::format(".TH WBENCH 1 \"\" \"wide {}\"\n", version());
  text += ".SH NAME\nwbench \\- " +
          troff(app.get_description().substr(app.get_description().find(' ') + 1)) + "\n";
  text += ".SH SYNOPSIS\n\\fBwbench\\fR [\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]\n";
  text += ".SH OPTIONS\n" + options_text(app) + ".SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    text += ".SS wbench " + troff(command->get_name()) + "\n" + troff(command->get_description()) +
            "\n" + options_text(*command) + footer_text(command->get_footer());
  }
  return text + ".SH EXIT STATUS\n" + footer_text(app.get_footer());
}

}  // namespace wide::bench
