// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What one call of each strategy launches, and what its kernels ask of a multiprocessor: tables
// and a document, of a result alone.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/result.hpp"

namespace wide::bench {

enum class Inspected : uint8_t { launches, resources, occupancy };

/// By a kernel's mangled name, of one architecture.
struct KernelResources {
  int64_t registers = 0, local_bytes = 0;
};
using ResourcesByKernel = std::map<std::string, KernelResources>;

/// Completes kernels whose registers the runtime did not say, and what follows from them.
void add_resources(RunResult& result, const ResourcesByKernel& known);

/// The kernels whose registers are not known, each once: mangled.
std::vector<std::string> kernels_without_registers(const RunResult& result);

/// The kernels of all strategies that ran, each once: mangled.
std::vector<std::string> launched_kernels(const RunResult& result);

/// A table for each op. A strategy that launches nothing known has a row that says why.
std::string inspection_text(const RunResult& result, Inspected what, int width, bool has_color);

/// Everything of the three tables at once; `what` says which was asked for.
nlohmann::ordered_json inspection_json(const RunResult& result, const std::string& what);

}  // namespace wide::bench
