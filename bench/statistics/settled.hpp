// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Criteria, besides the interval, for whether there are enough samples.
#pragma once

#include <span>

namespace wide::bench {

/// Standard deviation over mean, in percent; 0 for fewer than two samples.
double relative_noise_pct(std::span<const double> samples);

/// Shannon entropy, in bits, of the samples put into bins of that width.
double sample_entropy(std::span<const double> samples, double bin);

/// Whether the last half of the samples added no information: it changed their entropy, in bins of
/// 0.1 % of the median, by less than 2 %.
bool is_entropy_settled(std::span<const double> samples);

}  // namespace wide::bench
