// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From text and files to documents; result_parse.cpp reads the documents' contents.
#include <filesystem>
#include <iostream>
#include <iterator>

#include "bench/document/events.hpp"
#include "bench/document/json_field.hpp"
#include "bench/document/json_number.hpp"
#include "bench/document/result_check.hpp"
#include "bench/document/result_json.hpp"
#include "bench/document/samples_file.hpp"
#include "host/core/file.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStandardInput = "-";

Json document_of(std::string_view text) {
  return are_events(text) ? document_of_events(text) : parse_json("result", text);
}

std::string text_of(const std::string& path) {
  return path == kStandardInput ? std::string(std::istreambuf_iterator<char>(std::cin), {})
                                : read_file(path);
}

/// The document with its samples; if they are missing, with slices.
Json whole_document_of(const std::string& path, std::string_view text) {
  Json document = document_of(text);
  if (path != kStandardInput)  // standard input has no folder
    restore_samples(document, std::filesystem::path(path).parent_path().string());
  return document;
}

[[noreturn]] void throw_missing(const std::string& path, const std::string& file) {
  throw Error(ErrorCode::io, path + ": its samples are missing: expected " + file +
                                 (path == kStandardInput ? ", which standard input cannot have"
                                                         : " in the same folder"));
}

template <class Read>
auto with_path(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

}  // namespace

RunResult parse_result(std::string_view text) {
  return parse_document(document_of(text));
}

RunResult load_result(const std::string& path, Samples samples) {
  const std::string text = text_of(path);
  RunResult result = with_path(path, [&] {
    RunResult parsed = parse_document(whole_document_of(path, text));
    require_consistent(parsed);
    return parsed;
  });
  if (samples == Samples::needed && !result.samples_missing.empty())
    throw_missing(path, result.samples_missing);
  return result;
}

std::string load_document(const std::string& path) {
  std::string text = text_of(path);
  if (text.find("\"samples_file\"") == std::string::npos) return text;
  const Json document = with_path(path, [&] { return whole_document_of(path, text); });
  const RunResult result = with_path(path, [&] { return parse_document(document); });
  if (!result.samples_missing.empty()) throw_missing(path, result.samples_missing);
  return dumped(document);
}

std::string samples_note(const RunResult& result) {
  if (result.samples_missing.empty()) return "";
  return "samples are missing, summaries alone: expected " + result.samples_missing +
         " in the result's folder";
}

std::string schema_note(const RunResult& result) {
  if (result.newer_schema.empty()) return "";
  return std::string("what a later wbench added is not shown: its schema is ") +
         result.newer_schema + ", this one's " + kSchemaVersion;
}

}  // namespace wide::bench
