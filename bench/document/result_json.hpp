// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// RunResult <-> the JSON document that bench/result.schema.json describes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bench/document/result.hpp"

namespace wide::bench {

nlohmann::ordered_json to_json(const RunResult& result);

/// Names and values, all of them.
nlohmann::ordered_json axes_json(const catalog::Case& point);

/// What a result says of how it was measured.
nlohmann::ordered_json config_json(const RunConfig& config);

/// The inverse, also for a stream of events (events.hpp). Throws invalid_argument with the path of
/// the field, its value and what was expected; unknown keys are ignored, a higher major version
/// is refused. Samples stored beside the document (samples_file.hpp) are not read.
RunResult parse_result(std::string_view text);
RunResult parse_document(const nlohmann::ordered_json& document);
/// Launches as in a runner's "launches", and as the simulated runtime writes them.
std::vector<LaunchCounters> launches_from_json(const nlohmann::ordered_json& document);

/// Whether a caller accepts a result without its samples, for its summaries alone. An existing
/// side-car must be the one that was written in either case.
enum class Samples : uint8_t { needed, if_there };

/// "-" is standard input. Throws io if the file, or the side-car of samples that are needed,
/// cannot be read, and invalid_argument if its numbers contradict one another
/// (result_check.hpp).
RunResult load_result(const std::string& path, Samples samples = Samples::needed);
/// The file's text, including samples stored beside it. Throws as load_result() does.
std::string load_document(const std::string& path);

/// Says that samples are missing, and where they were expected; empty if they are there.
std::string samples_note(const RunResult& result);
/// Says that the result has a later schema than this program knows; empty if not.
std::string schema_note(const RunResult& result);

}  // namespace wide::bench
