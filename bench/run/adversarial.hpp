// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `verify --adversarial`: operands that expose what random ones hide, and members that must not
// influence one another. The tests of every primitive do the same on problems of their own; this
// checks the problem and the device that were selected.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bench/run/contender.hpp"
#include "bench/run/rounds.hpp"

namespace wide::bench {

struct Adversary {
  const catalog::PrimitiveSpec& spec;
  uint64_t seed = 0;
  double reference_flops = 0;  ///< of each fill
  std::function<std::unique_ptr<catalog::Workload>(const catalog::WorkloadOptions&)> make_workload;
  catalog::WorkloadOptions options;  ///< of the contenders' own workload
};

/// Checks every contender that is ok against the reference: with whole numbers, NaN and infinities
/// (only where all of the output is compared; otherwise the result's reason says they were
/// skipped), sums that cancel, subnormals, a wide range of magnitudes and sums of one sign; and
/// whether NaN in all operands of one member changes a bit of another's output, unless members are
/// joined. The findings become the contender's result, and so does what `guard` catches.
void verify_adversarially(const Adversary& adversary,
                          const std::vector<std::unique_ptr<Contender>>& contenders,
                          const Guard& guard);

}  // namespace wide::bench
