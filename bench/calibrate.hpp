// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What is measured before anything else: the two ceilings that a floor is made of, an empty launch,
// and the timer itself.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/result.hpp"
#include "bench/timer/sampler.hpp"
#include "wide/context.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

/// On the CPU a copy and a loop of multiply-adds over all threads, under a second; on CUDA a copy
/// in device memory, products of 4096^3 by cuBLAS and event pairs. What cannot be measured (cuBLAS
/// cannot start, no memory is left) stays 0 or absent, and floors do without it. Throws where the
/// device itself fails.
Calibration calibrate(const Context& context);

/// The name, among those of dtypes, of the rate at which fp32 is multiplied as tf32.
inline constexpr const char* kTf32 = "tf32";

/// Parts of the floor of one call in nanoseconds; a part whose ceiling is unknown is 0.
struct Floor {
  double bytes_ns = 0, flops_ns = 0, launch_ns = 0;
  double total_ns() const { return (bytes_ns > flops_ns ? bytes_ns : flops_ns) + launch_ns; }
};
/// `allows_tf32`: fp32 may be multiplied as tf32, whose rate it is then where that was measured.
Floor floor_of(const Calibration& calibration, const catalog::Cost& cost, Dtype dtype,
               bool allows_tf32 = false);
/// The ceiling that a floor's operations are at; 0 where it was not measured.
double flops_rate(const Calibration& calibration, Dtype dtype, bool allows_tf32);

/// Seeded values of [-1, 1], what copies and products on a GPU are measured with: constant data
/// draw less power, and are the faster for it than any real ones.
std::vector<std::byte> uniform_operand(Dtype dtype, int64_t count, uint64_t seed);
/// Fills a contiguous view with them, the same ones again every 2^20, and waits for the stream.
void fill_uniform(const Context& context, const TensorView& to, uint64_t seed, Stream stream);

/// The best of samples of a quarter of a second, as long as a clock takes to rise and as on the
/// CPU; of a few where they are long, and of no more than so many where they are short.
double best_sample_ns(Sampler& sampler, int64_t at_most = 2000);

/// The best of samples of a call on a GPU, the host's launch hidden by graphs where the call can be
/// captured; else it is in the time.
double best_captured_ns(const Context& context, Stream stream, const Call& call);

void calibrate_cuda(const Context& context, Calibration& calibration);

}  // namespace wide::bench
