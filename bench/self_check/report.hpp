// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/self_check/check.hpp"

namespace wide::bench {

/// A line for each check, and how many passed, failed and were skipped.
std::string to_text(const std::vector<SelfCheck>& checks, int width);
nlohmann::ordered_json to_json(const std::vector<SelfCheck>& checks);
bool has_failed(const std::vector<SelfCheck>& checks);

}  // namespace wide::bench
