// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/command/outputs.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "bench/cases/value_spec.hpp"
#include "bench/command/options.hpp"
#include "bench/document/result_json.hpp"
#include "bench/document/samples_file.hpp"
#include "bench/history/names.hpp"
#include "bench/page/page.hpp"
#include "bench/report/exports.hpp"
#include "bench/report/junit.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

/// The history stores whole documents, without side-cars.
void remember(const RunResult& result, SamplesIn samples, const OutputOptions& output) {
  const SamplesIn kept = samples == SamplesIn::nowhere ? samples : SamplesIn::document;
  const std::unique_ptr<HistoryStore> store = open_history(store_or_default(output.store));
  (void)store->add(record_of(result, document_text(result, kept)));
  if (!output.tag.empty()) store->tag(result.id, output.tag);
}

}  // namespace

bool goes_to_stdout(const OutputOptions& output) {
  const auto count = [](const std::vector<std::string>& paths) {
    return std::count(paths.begin(), paths.end(), "-");
  };
  auto documents = count(output.json) + count(output.csv) + count(output.md) + count(output.html) +
                   count(output.junit);
  for (const std::string& text : output.exports) documents += parse_export(text).path == "-";
  if (documents > 1) {
    throw Error(ErrorCode::invalid_argument,
                "standard output takes one of --json -, --csv -, --md -, --html -, --junit - and "
                "--export FORMAT=-");
  }
  if (count(output.json) > 0 && samples_in(output.samples) == SamplesIn::side_car) {
    throw Error(ErrorCode::invalid_argument,
                "--samples sidecar: standard output has nothing beside it, expected --json FILE");
  }
  return documents == 1;
}

OutputOptions numbered(OutputOptions output, int64_t number) {
  const std::string suffix = "-" + std::to_string(number);
  const auto add = [&](std::string& file) {
    const std::filesystem::path path(file);
    file = path.parent_path() / (path.stem().string() + suffix + path.extension().string());
  };
  if (goes_to_stdout(output)) {
    throw Error(ErrorCode::invalid_argument,
                "--repeat: standard output takes one document, expected files");
  }
  for (auto* files : {&output.json, &output.csv, &output.md, &output.html, &output.junit}) {
    for (std::string& file : *files) add(file);
  }
  for (std::string& text : output.exports) {
    Export asked = parse_export(text);
    add(asked.path);
    text = std::string(asked.format->name) + "=" + asked.path;
  }
  if (!output.events.empty()) add(output.events);
  if (!output.tag.empty()) output.tag += suffix;
  return output;
}

std::string saved_path(const OutputOptions& output, const Selection& selection, std::string id) {
  if (!output.save_as.empty()) return output.save_as;
  if (!output.save && output.tag.empty()) return "";
  constexpr size_t kLongest = 100;  // of 255, with the id and the extensions
  std::string ops = selection.ops;
  if (ops.size() > kLongest) {
    const std::vector<std::string> names = parse_list("op", ops);
    ops = names.front().substr(0, kLongest);
    if (names.size() > 1) ops += "+" + std::to_string(names.size() - 1);
  }
  std::replace(ops.begin(), ops.end(), ',', '+');
  for (char& c : ops) {
    if (c == ':' || c == '/') c = '-';
  }
  std::erase(id, ':');
  return "results/" + id + "-" + ops + ".json";
}

bool write_outputs(const RunResult& result, const OutputOptions& output, const std::string& saved,
                   std::ostream& out, std::ostream& err) {
  bool all_written = true;
  const auto guarded = [&](const auto& write) {
    try {
      write();
    } catch (const Error& error) {
      err << "wbench: " << error.what() << "\n";
      all_written = false;
    }
  };
  const auto write = [&](const std::string& path, const std::string& text) {
    guarded([&] { write_document(text, path, out); });
  };
  const SamplesIn samples = *samples_in(output.samples);
  for (const std::string& path : output.json) {
    if (path == "-") {
      out << document_text(result, samples);
    } else {
      guarded([&] { write_result(result, path, samples); });
    }
  }
  if (!saved.empty()) {
    std::error_code ignored;  // write_result() reports the error
    std::filesystem::create_directories(std::filesystem::path(saved).parent_path(), ignored);
    guarded([&] { write_result(result, saved, samples); });
    guarded([&] { remember(result, samples, output); });
  }
  for (const std::string& path : output.csv) write(path, report_csv(result));
  for (const std::string& path : output.md) write(path, report_markdown(result));
  for (const std::string& path : output.junit) write(path, report_junit(result));
  if (!output.html.empty()) {
    PageContent content;
    content.results.push_back(result);
    const std::string page = report_page(content);
    for (const std::string& path : output.html) write(path, page);
  }
  for (const std::string& text : output.exports) {
    const Export asked = parse_export(text);
    write(asked.path, export_text(*asked.format, result));
  }
  return all_written;
}

void write_document(const std::string& text, const std::string& file, std::ostream& out) {
  if (file == "-") {
    out << text;
  } else {
    write_file(file, text);
  }
}

bool write_documents(const std::string& text, const std::vector<std::string>& files,
                     std::ostream& out) {
  bool went_out = false;
  for (const std::string& file : files) {
    if (file != "-") {
      write_file(file, text);
    } else if (!went_out) {
      out << text;
      went_out = true;
    }
  }
  return went_out;
}

}  // namespace wide::bench
