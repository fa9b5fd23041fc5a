// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a device cannot exceed, by which results are told that are too good to be true. What was
// measured is no such limit: kernels beat a library's product by a few percent, reads a copy, and
// fp32 by way of tf32 the units for fp32 by far.
#pragma once

#include "bench/result.hpp"
#include "wide/context.hpp"

namespace wide::bench {

/// 0 where unknown.
struct Peaks {
  double mem_bw_bytes_per_s = 0, flops_per_s = 0;
};

/// A GPU as it describes itself; 0 where it does not.
struct Hardware {
  int compute_capability = 0, num_multiprocessors = 0;
  double sm_hz = 0;  ///< the largest clock
  double mem_hz = 0, bus_bytes = 0;
};

/// Multiprocessors times clock times what the fastest unit that takes operands of the dtype does in
/// one, which for fp32 is the one for tf32; and the bus, twice in a clock.
Peaks peaks_of(const Hardware& hardware, Dtype dtype);

/// Of the context's device. Hardware that was measured to exceed what it says has no other peak
/// than that; the CPU has what was measured.
Peaks peaks_of(const Context& context, const Calibration& calibration, Dtype dtype);

/// Of a GPU.
Hardware hardware_of(const Context& context);

}  // namespace wide::bench
