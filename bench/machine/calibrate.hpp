// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is measured before anything else: the two ceilings that a floor is computed from, an empty
// launch, and the timer itself.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/document/result.hpp"
#include "bench/timer/sampler.hpp"
#include "wide/context.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

/// On the CPU a copy and a loop of multiply-adds over all threads, under a second; on CUDA a copy
/// in device memory, products of 4096^3 by cuBLAS and event pairs. What cannot be measured (cuBLAS
/// cannot start, out of memory) stays 0 or absent, and floors are computed without it. Throws if
/// the device itself fails. `l2_factor`: what a flush covers, in sizes of the L2.
Calibration calibrate(const Context& context, double l2_factor = RunConfig().l2_factor);

/// The CPU's, in windows of a third of that time, for a sweep that spreads them: what one quarter
/// of a second shows of a machine that others use is a fraction of what it can do.
class CpuCeilings {
 public:
  /// Makes buffers of up to 256 MB, which cost more time than a window. No allocator counts them.
  explicit CpuCeilings(const Context& context);
  Calibration measure();

 private:
  Context context_;
  std::vector<char> source_, destination_;
};

/// Raises both ceilings to what was found, if that is higher: a ceiling is a maximum.
void raise_ceilings(Calibration& ceilings, const Calibration& found);

/// The name, among the dtypes, under which the rate of fp32 multiplied as tf32 is stored.
inline constexpr const char* kTf32 = "tf32";

/// Parts of the floor of one call in nanoseconds; a part whose ceiling is unknown is 0.
struct Floor {
  double bytes_ns = 0, flops_ns = 0, launch_ns = 0;
  double total_ns() const { return (bytes_ns > flops_ns ? bytes_ns : flops_ns) + launch_ns; }
};
/// `allows_tf32`: fp32 may be multiplied as tf32; uses that rate if it was measured.
Floor floor_of(const Calibration& calibration, const catalog::Cost& cost, Dtype dtype,
               bool allows_tf32 = false);
/// The ceiling that a floor uses for operations; 0 if it was not measured.
double flops_rate(const Calibration& calibration, Dtype dtype, bool allows_tf32);

/// Seeded values in [-1, 1], for measuring copies and products on a GPU: constant data draw less
/// power and therefore run faster than any real data.
std::vector<std::byte> uniform_operand(Dtype dtype, int64_t count, uint64_t seed);
/// Fills a contiguous view with them, repeating every 2^20 elements, and waits for the stream.
void fill_uniform(const Context& context, const TensorView& to, uint64_t seed, Stream stream);

/// The best of the samples taken in a quarter of a second, the time that a clock takes to rise and
/// the same as on the CPU; a few samples if they are long, at most `at_most` if they are short.
double best_sample_ns(Sampler& sampler, int64_t at_most = 2000);

/// The best of several samples of a call on a GPU; graphs hide the host's launch if the call can be
/// captured, otherwise the time includes it.
double best_captured_ns(const Context& context, Stream stream, const Call& call);

void calibrate_cuda(const Context& context, double l2_factor, Calibration& calibration);

}  // namespace wide::bench
