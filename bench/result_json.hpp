// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// RunResult <-> the JSON document that bench/result.schema.json describes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bench/result.hpp"

namespace wide::bench {

nlohmann::ordered_json to_json(const RunResult& result);

/// The inverse, of a stream of events (events.hpp) too. Throws invalid_argument with the path of
/// the field, what was got and what was expected; unknown keys are ignored, a higher major version
/// is refused.
RunResult parse_result(std::string_view text);
/// Launches as in a runner's "launches", and as the simulated runtime writes them.
std::vector<LaunchCounters> launches_from_json(const nlohmann::ordered_json& document);
/// "-" is standard input. Throws io where the file cannot be read.
RunResult load_result(const std::string& path);

}  // namespace wide::bench
