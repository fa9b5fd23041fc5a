// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What one call of each strategy launches, and what its kernels need of a multiprocessor: tables
// and a document, computed from a result alone.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

enum class Inspected : uint8_t { launches, resources, occupancy };

/// By a kernel's mangled name, for one architecture.
struct KernelResources {
  int64_t registers = 0, local_bytes = 0;
};
using ResourcesByKernel = std::map<std::string, KernelResources>;

/// Completes kernels whose registers the runtime did not report, and what is derived from them.
void add_resources(RunResult& result, const ResourcesByKernel& known);

/// The kernels whose registers are unknown, each once, by mangled name.
std::vector<std::string> kernels_without_registers(const RunResult& result);

/// The kernels of all strategies that ran, each once, by mangled name.
std::vector<std::string> launched_kernels(const RunResult& result);

/// A table for each op. A strategy without known launches has a row that says why.
std::string inspection_text(const RunResult& result, Inspected what, int width, bool has_color);

/// All three tables in one document; `what` names the one that was requested.
nlohmann::ordered_json inspection_json(const RunResult& result, const std::string& what);

}  // namespace wide::bench
