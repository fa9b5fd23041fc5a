// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "wide/batchnorm.hpp"

namespace wide::catalog {

/// What normalises one channel, in fp64.
struct ChannelStatistics {
  double mean = 0;
  double variance = 0;  ///< biased
  int64_t count = 0;    ///< values that they were taken from; 0: given
};

/// Of every channel of one member's x [B, C, positions].
std::vector<ChannelStatistics> channel_statistics(const BatchnormProblem& problem,
                                                  std::span<const double> x);

/// Values of one channel, and the largest errors that pass.
///
/// Bound, with u = 2^-24, s = 1 / sqrt(variance + epsilon): statistics that were taken from M
/// values, c = 16 + sqrt(M) + M / 512: a sum of M terms that is taken in up to 512 lanes and then
/// as a tree errs by less than c u times the sum of magnitudes, whose mean is at most
/// sqrt(variance); an error of the rough mean is corrected, so the channel's offset does not
/// appear. Given ones have no error.
///   |gamma| s (|x - mean| + sqrt(variance)) c u + 8 u (|gamma (x - mean) s| + |beta|) + u_out |y|
///   + min
void batchnorm_reference(const BatchnormProblem& problem, const ChannelStatistics& statistics,
                         double gamma, double beta, std::span<const double> x, std::span<double> y,
                         std::span<double> tolerance);

/// The running statistics after one call in mode train, and the largest errors that pass.
struct RunningStatistics {
  double mean = 0, variance = 0;
  double mean_tolerance = 0, variance_tolerance = 0;
};
RunningStatistics running_statistics(const ChannelStatistics& batch, double mean, double variance,
                                     double momentum);

}  // namespace wide::catalog
