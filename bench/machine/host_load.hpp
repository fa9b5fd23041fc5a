// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How busy the host was while this program measured: with what, and what its hypervisor took.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "bench/document/result.hpp"

namespace wide::bench {

/// Seconds that cores have worked since some moment; of two of them the difference counts.
struct HostLoad {
  double at_s = 0;
  double busy_s = 0;    ///< of all cores, for whomever
  double stolen_s = 0;  ///< that the hypervisor gave to others
  double own_s = 0;     ///< of this process, and of its children that have ended
};

/// Now; none where /proc/stat below `root` says nothing.
std::optional<HostLoad> host_load(const std::filesystem::path& root = "/");

/// The share of one core that others may use before a run is called loaded; an idle machine's
/// services use less. Below that many seconds in all, the kernel's ticks are too coarse to tell.
constexpr double kLoaded_pct = 5, kLeastLoad_s = 0.1;

/// E_LOAD and E_STEAL, for those of the two that were above these bounds between two moments.
std::vector<EnvironmentCheck> load_checks(const HostLoad& before, const HostLoad& after);

}  // namespace wide::bench
