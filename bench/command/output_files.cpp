// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/command/output_files.hpp"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "bench/cases/model_file.hpp"
#include "bench/cases/value_spec.hpp"
#include "bench/command/options.hpp"
#include "bench/document/samples_file.hpp"
#include "bench/history/names.hpp"
#include "bench/report/exports.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

namespace fs = std::filesystem;

/// A file that a document replaces, by what identifies it.
struct Target {
  NamedFile named;
  fs::path path;  ///< absolute, without links
};

std::vector<Target> targets_of(const NamedFiles& files) {
  std::vector<Target> targets;
  for (const NamedFile& file : files) {
    if (file.path.empty() || file.path == "-" || !is_replaced(file.path)) continue;
    std::error_code ignored;  // of a path that cannot be resolved, and written even less
    targets.push_back({file, fs::weakly_canonical(follow_links(file.path), ignored)});
  }
  return targets;
}

bool is_same(const Target& a, const Target& b) {
  if (a.path == b.path) return true;
  std::error_code is_absent;
  return fs::equivalent(a.path, b.path, is_absent);  // hard links, mounts
}

/// The files that a run reads.
NamedFiles files_read_by(const RunOptions& options) {
  NamedFiles inputs{{"--tuning", options.tuning}};
  if (!options.compare.base.empty()) add_results(inputs, "--compare", options.compare.base);
  for (const std::string& model : parse_list("op", options.selection.ops)) {
    if (is_model_file(model)) inputs.push_back({"--model", model.substr(model.find(':') + 1)});
  }
  return inputs;
}

/// Throws invalid_argument where two outputs are one file, or one is an input.
void require_distinct(const NamedFiles& outputs, const NamedFiles& inputs) {
  const std::vector<Target> written = targets_of(outputs), read = targets_of(inputs);
  for (size_t i = 0; i < written.size(); ++i) {
    const NamedFile& file = written[i].named;
    for (size_t j = 0; j < i; ++j) {
      if (!is_same(written[j], written[i])) continue;
      const NamedFile& other = written[j].named;
      throw Error(ErrorCode::invalid_argument, other.option + " " + other.path + " and " +
                                                   file.option + " " + file.path +
                                                   " are one file, expected two");
    }
    for (const Target& input : read) {
      if (!is_same(input, written[i])) continue;
      throw Error(ErrorCode::invalid_argument, file.option + " " + file.path + " would replace " +
                                                   input.named.option + " " + input.named.path +
                                                   ", which is read, expected another file");
    }
  }
}

void require_writable(const NamedFiles& outputs) {
  for (const NamedFile& file : outputs) {
    if (!file.path.empty() && file.path != "-") wide::require_writable(file.path);
  }
}

}  // namespace

NamedFiles files_of(const OutputOptions& output) {
  NamedFiles files;
  const std::pair<const char*, const std::vector<std::string>*> lists[] = {
      {"--json", &output.json},
      {"--csv", &output.csv},
      {"--md", &output.md},
      {"--html", &output.html},
      {"--junit", &output.junit}};
  for (const auto& [option, paths] : lists) {
    for (const std::string& path : *paths) files.push_back({option, path});
  }
  for (const std::string& text : output.exports)
    files.push_back({"--export", parse_export(text).path});
  files.push_back({"--events", output.events});
  return files;
}

void add_results(NamedFiles& files, const std::string& option, const std::string& name) {
  std::error_code is_absent;
  if (is_history_name(name)) return;
  if (!fs::is_directory(name, is_absent)) {
    files.push_back({option, name});
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(name, is_absent)) {
    if (entry.path().extension() == ".json") files.push_back({option, entry.path().string()});
  }
}

void require_outputs(const NamedFiles& outputs, const NamedFiles& inputs) {
  require_distinct(outputs, inputs);
  require_writable(outputs);
}

void require_saving(const std::string& file, const std::string& store) {
  fs::path folder = fs::path(file).parent_path();
  std::error_code is_absent;
  while (!folder.empty() && !fs::exists(folder, is_absent)) folder = folder.parent_path();
  wide::require_writable(
      (folder / fs::path(file).filename()).string());  // what is missing below it will be made
  // Made now: that is the one way to know that it can be.
  (void)open_history(store)->runs();
  wide::require_writable(history_file(store));
}

void require_outputs(const RunOptions& options) {
  require_outputs(files_of(options.output), files_read_by(options));
  const std::optional<SamplesIn> samples = samples_in(options.output.samples);
  if (samples != SamplesIn::automatic && samples != SamplesIn::side_car) return;
  for (const std::string& path : options.output.json) {
    if (path != "-" && is_replaced(path)) wide::require_writable(pending_side_car(path));
  }
}

}  // namespace wide::bench
