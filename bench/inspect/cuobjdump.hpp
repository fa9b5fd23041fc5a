// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA toolkit's cuobjdump says of the kernels in this very program: their PTX, their
// machine code, and how many registers ptxas gave them. The tool is asked; what it prints is only
// cut into kernels here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/inspect/launches.hpp"

namespace wide::bench {

enum class Listing : uint8_t { ptx, sass, resources };

/// "sm_90a" for 90 where `built` is "80;90a" (CMAKE_CUDA_ARCHITECTURES). Throws unsupported where
/// the program has no code for such a device.
std::string architecture_of(int compute_capability, std::string_view built);

/// The command that lists `program`; of machine code only these kernels, by their mangled names.
std::vector<std::string> cuobjdump_words(Listing listing, const std::string& architecture,
                                         const std::vector<std::string>& kernels,
                                         const std::string& program);

/// A kernel's part of a listing; empty where it has none.
std::string ptx_of(std::string_view listing, std::string_view kernel);
std::string sass_of(std::string_view listing, std::string_view kernel);
ResourcesByKernel resources_of(std::string_view listing);

/// PATH's, or else CUDA_HOME's or CUDA_PATH's; empty where there is none.
std::string find_cuobjdump();

/// Runs such a command, with the tool that was found in the first word's place; what it printed.
/// Throws unsupported with the command where there is no tool, or where it failed.
std::string run_cuobjdump(std::vector<std::string> words);

}  // namespace wide::bench
