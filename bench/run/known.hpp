// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The criterion of `--stop ci`: whether a case's times, or its speedups, are known well enough.
#pragma once

#include <cstdint>
#include <span>

#include "bench/document/result.hpp"

namespace wide::bench {

/// Whether all medians, or all speedups, are known within the share `target` of them: half of each
/// 95 % interval is, and half of each 99.8 % interval is within twice that. This is asked again and
/// again, and where rounds take one of two times, at some point most have taken the same by chance.
/// An interval at 95 % then spans that time alone, but one at 99.8 % both; with a single mode it is
/// only half wider.
bool are_known(std::span<const RunnerResult> strategies, std::span<const RunnerResult> baselines,
               uint64_t seed, double target);

}  // namespace wide::bench
