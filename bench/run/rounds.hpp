// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Times the contenders of a case in turns. In each round every one takes a block of samples,
// forward in even rounds and backward in odd ones (ABBA) or in random order, so that drift of
// clocks and temperature affects all alike; speedups pair the blocks of a round.
#pragma once

#include <functional>
#include <vector>

#include "bench/run/contender.hpp"

namespace wide::bench {

struct Timing {
  const RunConfig& config;
  Sampling sampling;
  double limit_s = 0;          ///< includes warm-up; at least four rounds are taken
  Monitor* monitor = nullptr;  ///< of the device's clocks; may be null
};

/// Runs a body for a contender unless it has failed; an exception becomes the contender's failure.
using Guard = std::function<void(Contender&, const std::function<void()>&)>;

/// Fills the contenders' measurements: samples, rounds, stop reason.
void time_in_rounds(std::vector<Contender*> contenders, const Timing& timing, const Guard& guard);

}  // namespace wide::bench
