// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "wide/batchnorm.hpp"

namespace wide::catalog {

/// What normalises one channel, in fp64.
struct ChannelStatistics {
  double mean = 0;
  double variance = 0;   ///< biased
  int64_t count = 0;     ///< values that they were taken from; 0: given
  double roundings = 0;  ///< at most, in a sum over these values
};

/// The statistics of every channel of one member's x [B, C, positions].
std::vector<ChannelStatistics> channel_statistics(const BatchnormProblem& problem,
                                                  std::span<const double> x);

/// Values of one channel, and the largest errors that pass.
///
/// Bound, with u = 2^-24, s = 1 / sqrt(variance + epsilon): a sum each of whose terms goes through
/// at most c roundings errs by less than c u times the sum of magnitudes, whose mean is at most
/// sqrt(variance); an error of the rough mean is corrected, so the channel's offset does not
/// appear.
///   |gamma| s (|x - mean| + sqrt(variance)) c u + 8 u (|gamma (x - mean) s| + |beta|) + u_out |y|
///   + min
/// Given statistics have no error: c = 0. Else c is the longest path of a value into a sum. On CUDA
/// up to 512 lanes each add four chunks of 16 bytes, up to 32 values, one after another in every
/// round of 2048 chunks; a tree of 10 levels adds the lanes, and x - mean is a rounding more. On
/// the CPU 16 lanes add 512 values, a tree of 4 levels the lanes, and the rest is fp64. So up to
/// 2048 chunks c = 32 + 10 + 1, taken as 48, and the values of four chunks for every round more.
/// Few values need less: a lane that adds 32 takes 97 chunks or more, of which every other one may
/// hold a single value; so M >= 441, and 5 levels add the lanes. c <= 16 + sqrt(M) there, and for
/// shorter lanes, too. Columns of one position (kernels/norm/batchnorm_columns.cu) stay below all
/// this: a lane adds four rows, then every sum of four, of up to 256 rows two, of more rows one for
/// every 128; a tree of up to 5 levels adds the lanes. On the CPU that is 16 rows, and fp64.
void batchnorm_reference(const BatchnormProblem& problem, const ChannelStatistics& statistics,
                         double gamma, double beta, std::span<const double> x, std::span<double> y,
                         std::span<double> tolerance);
extern const std::string_view kBatchnormToleranceFormula;

/// The running statistics after one call in mode train, and the largest errors that pass.
struct RunningStatistics {
  double mean = 0, variance = 0;
  double mean_tolerance = 0, variance_tolerance = 0;
};
RunningStatistics running_statistics(const ChannelStatistics& batch, double mean, double variance,
                                     double momentum);

}  // namespace wide::catalog
