// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategies a real device has proved right. The table is made by the build from
// verify/evidence/*.json; evidence whose hash no longer fits the kernel's sources does not count.
#pragma once

#include <span>
#include <string_view>

namespace wide {

struct VerifiedStrategy {
  std::string_view op;
  std::string_view strategy;
  int compute_capability = 0;
};

std::span<const VerifiedStrategy> verified_strategies();
/// Whether `table` has exactly this strategy and compute capability.
bool is_verified_in(std::span<const VerifiedStrategy> table, std::string_view op,
                    std::string_view strategy, int compute_capability);
/// The same, in the table of this build.
bool is_verified(std::string_view op, std::string_view strategy, int compute_capability);

/// Hash of the sources of all the primitive's CUDA kernels, as this build has them: a change in any
/// of them may change which strategy is fastest. Empty where the primitive has none, or the build
/// could not read them.
std::string_view kernel_hash(std::string_view op);

}  // namespace wide
