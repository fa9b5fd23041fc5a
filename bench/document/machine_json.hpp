// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The machine's part of a result <-> JSON: host, devices, calibration and environment checks.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/document/json_field.hpp"
#include "bench/document/result.hpp"

namespace wide::bench {

nlohmann::ordered_json host_json(const RunResult& result);
nlohmann::ordered_json devices_json(const RunResult& result);
nlohmann::ordered_json calibration_json(const Calibration& calibration);
nlohmann::ordered_json checks_json(const RunResult& result);
/// All of them, from the document's root.
void parse_machine(const Field& root, RunResult& result);

}  // namespace wide::bench
