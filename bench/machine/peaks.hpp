// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a device cannot exceed, to detect results that are too good to be true. Measured rates
// are no such limit: kernels beat a library's product by a few percent, reads beat a copy, and
// fp32 computed as tf32 beats the units for fp32 by far.
#pragma once

#include "bench/document/result.hpp"
#include "wide/context.hpp"

namespace wide::bench {

/// 0 if unknown.
struct Peaks {
  double mem_bw_bytes_per_s = 0, flops_per_s = 0;
};

/// A GPU as it describes itself; 0 if it does not say.
struct Hardware {
  int compute_capability = 0, num_multiprocessors = 0;
  double sm_hz = 0;  ///< the largest clock
  double mem_hz = 0, bus_bytes = 0;
};

/// Multiprocessors times clock times the operations per clock of the fastest unit for operands of
/// the dtype, for fp32 the one for tf32; and the bus, twice per clock.
Peaks peaks_of(const Hardware& hardware, Dtype dtype);

/// For the context's device. Hardware measured above its own figures gets the measured value as its
/// peak; so does the CPU.
Peaks peaks_of(const Context& context, const Calibration& calibration, Dtype dtype);

/// For a GPU.
Hardware hardware_of(const Context& context);

}  // namespace wide::bench
