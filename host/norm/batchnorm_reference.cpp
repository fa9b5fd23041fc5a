// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain fp64 loops; shares only the problem struct with what it judges.
#include "host/norm/batchnorm_reference.hpp"

#include <algorithm>
#include <cmath>

namespace wide::catalog {

namespace {

constexpr double kRoundoff = unit_roundoff(Dtype::fp32);  ///< u of the bounds

/// batchnorm_reference.hpp derives it.
double roundings_of(const BatchnormProblem& p, int64_t count) {
  constexpr int64_t kRound = 512 * 4;
  if (count == 0) return 0;
  const int64_t size = 16 / dtype_bytes(p.dtype), length = p.height * p.width;
  const int64_t chunks = p.batch * ((length + size - 1) / size);
  const int64_t more_rounds = (chunks - 1) / kRound;
  return std::min(16 + std::sqrt(static_cast<double>(count)), 48.0) +
         static_cast<double>(more_rounds * 4 * size);
}

}  // namespace

std::vector<ChannelStatistics> channel_statistics(const BatchnormProblem& problem,
                                                  std::span<const double> x) {
  const int64_t length = problem.height * problem.width;
  const auto at = [&](int64_t b, int64_t c, int64_t i) {
    return x[static_cast<size_t>((b * problem.channels + c) * length + i)];
  };
  const int64_t count = problem.batch * length;
  std::vector<ChannelStatistics> all;
  for (int64_t c = 0; c < problem.channels; ++c) {
    double mean = 0, variance = 0;
    for (int64_t b = 0; b < problem.batch; ++b) {
      for (int64_t i = 0; i < length; ++i) mean += at(b, c, i);
    }
    mean /= static_cast<double>(count);
    for (int64_t b = 0; b < problem.batch; ++b) {
      for (int64_t i = 0; i < length; ++i) {
        variance += (at(b, c, i) - mean) * (at(b, c, i) - mean);
      }
    }
    all.push_back(
        {mean, variance / static_cast<double>(count), count, roundings_of(problem, count)});
  }
  return all;
}

const std::string_view kBatchnormToleranceFormula =
    "|gamma| s (|x - mean| + sqrt(var)) c 2^-24 + 8 2^-24 (|gamma (x - mean) s| + |beta|) + u_out "
    "|y| + min_subnormal, s = 1 / sqrt(var + eps), c = min(16 + sqrt(M), 48) + 4 V floor((C - 1) / "
    "2048) of M values that are normalised together, in C chunks of 16 bytes, each of V; c = 0 "
    "where statistics are given (mode eval)";

void batchnorm_reference(const BatchnormProblem& problem, const ChannelStatistics& statistics,
                         double gamma, double beta, std::span<const double> x, std::span<double> y,
                         std::span<double> tolerance) {
  const double mean = statistics.mean, variance = statistics.variance;
  const double scale = 1 / std::sqrt(variance + static_cast<double>(problem.epsilon));
  const double c = statistics.roundings;
  for (size_t i = 0; i < x.size(); ++i) {
    const double centred = x[i] - mean, product = gamma * centred * scale;
    y[i] = product + beta;
    const double taken =
        std::fabs(gamma) * scale * (std::fabs(centred) + std::sqrt(variance)) * c * kRoundoff;
    tolerance[i] = taken + 8 * kRoundoff * (std::fabs(product) + std::fabs(beta)) +
                   unit_roundoff(problem.dtype) * std::fabs(y[i]) + min_subnormal(problem.dtype);
  }
}

RunningStatistics running_statistics(const ChannelStatistics& batch, double mean, double variance,
                                     double momentum) {
  const auto count = static_cast<double>(batch.count);
  const double unbiased = batch.variance * count / (count - 1);
  const double c = batch.roundings;
  RunningStatistics after;
  after.mean = (1 - momentum) * mean + momentum * batch.mean;
  after.variance = (1 - momentum) * variance + momentum * unbiased;
  after.mean_tolerance = kRoundoff * (4 * (std::fabs(mean) + momentum * std::fabs(batch.mean)) +
                                      momentum * c * std::sqrt(batch.variance));
  after.variance_tolerance = kRoundoff * (4 * variance + (8 + c) * momentum * unbiased);
  return after;
}

}  // namespace wide::catalog
