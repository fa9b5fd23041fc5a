// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Whether a run will measure anything that an earlier one has measured: found before it takes its
// time.
#pragma once

#include <span>
#include <string>

#include "bench/document/result.hpp"
#include "bench/run/runner.hpp"

namespace wide::bench {

/// Why compare() would find that `device` is another than that of `base`; empty where it would not.
/// A run may be `one_of_several`, each of a device of its own, which the base then has all of.
std::string other_device_reason(const RunDevice& device, bool one_of_several,
                                std::span<const RunResult> base);

/// Why no cell of the plan, a case by a strategy in a regime, is in `base`; empty where one may be.
std::string incomparable_reason(const RunPlan& plan, std::span<const RunResult> base);

}  // namespace wide::bench
