// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One measurement <-> JSON: samples, statistics, rates, clocks and energy.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/document/json_field.hpp"
#include "bench/document/result.hpp"

namespace wide::bench {

nlohmann::ordered_json measurement_json(const Measurement& measurement);
Measurement parse_measurement(const Field& field);

}  // namespace wide::bench
