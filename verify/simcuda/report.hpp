// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the device has seen, as text: for the end of the process, and for programs that look it up.
#pragma once

#include <string>

#include "verify/simcuda/device.hpp"

namespace wide::simcuda {

/// Prints what was asked for and what was left; ends the process with 86 where findings were.
void report_at_exit();
/// Counters of all launches since they were cleared, as the "launches" of a wbench result.
std::string counters_json(const Device& d);
/// A kernel's name as a person wrote it, without its parameters.
std::string readable(const std::string& mangled);

}  // namespace wide::simcuda
