// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which devices run the code that a build has: pure functions of CMAKE_CUDA_ARCHITECTURES.
#pragma once

#include <string>
#include <string_view>

#include "wide/device.hpp"

namespace wide {

/// This build's: "80,90a". Empty without CUDA.
extern const std::string_view kBuiltArchitectures;

/// Why the device runs none of the code for these architectures, of which each is, as CMake has
/// them, 80 (code for 8.0 and later minor numbers, and PTX for whatever comes later), 80-real (that
/// code), 80-virtual (that PTX), 90a (for 9.0 alone) or 100f (10.0 and later minor numbers). Empty
/// where it runs some, or the list has a word that only the compiler knows the meaning of.
std::string device_code_reason(const DeviceInfo& device,
                               std::string_view architectures = kBuiltArchitectures);

}  // namespace wide
