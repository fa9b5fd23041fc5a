// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reads the kernels in this very program by the CUDA toolkit's cuobjdump: their PTX, their
// machine code, and how many registers ptxas gave them. Its output is only
// split into kernels here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/inspect/launches.hpp"

namespace wide::bench {

enum class Listing : uint8_t { ptx, sass, resources };

/// What such a device runs: "sm_90a" for 90 and "sm_80" for 89 if `built` is "80;90a"
/// (CMAKE_CUDA_ARCHITECTURES). Throws unsupported if the program has no code for it, or only PTX.
std::string architecture_of(int compute_capability, std::string_view built);

/// The command that lists `program`; for machine code only these kernels, by their mangled names.
std::vector<std::string> cuobjdump_words(Listing listing, const std::string& architecture,
                                         const std::vector<std::string>& kernels,
                                         const std::string& program);

/// A kernel's part of a listing; empty if it is not in there.
std::string ptx_of(std::string_view listing, std::string_view kernel);
std::string sass_of(std::string_view listing, std::string_view kernel);
ResourcesByKernel resources_of(std::string_view listing);

/// From PATH, or else CUDA_HOME or CUDA_PATH; empty if not found.
std::string find_cuobjdump();

/// Runs such a command, with its first word replaced by the tool's path; returns what it printed.
/// Throws unsupported with the command if there is no tool, or if it failed.
std::string run_cuobjdump(std::vector<std::string> words);

}  // namespace wide::bench
