// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/machine/peaks.hpp"

#include <algorithm>

#include "bench/machine/calibrate.hpp"

namespace wide::bench {

namespace {

/// Operations of a multiprocessor per clock, dense, counting a multiply-add as two. If parts of one
/// compute capability differ (GeForce and its professional twins), those of the fastest.
struct Units {
  int compute_capability;
  double fp32, half, fp8;
};
constexpr Units kUnits[] = {
    {70, 128, 1024, 1024},    {75, 128, 1024, 1024},    {80, 1024, 2048, 2048},
    {86, 512, 1024, 1024},    {87, 1024, 2048, 2048},   {89, 512, 1024, 2048},
    {90, 2048, 4096, 8192},   {100, 4096, 8192, 16384}, {103, 4096, 8192, 16384},
    {110, 4096, 8192, 16384}, {120, 512, 1024, 2048},   {121, 512, 1024, 2048},
};

double operations_of(const Units& units, Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return units.fp32;
    case Dtype::fp16:
    case Dtype::bf16:
      return units.half;
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      return units.fp8;
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::uint8:
      return 0;
  }
  return 0;
}

}  // namespace

Peaks peaks_of(const Hardware& h, Dtype dtype) {
  Peaks peaks;
  peaks.mem_bw_bytes_per_s = 2 * h.mem_hz * h.bus_bytes;
  for (const Units& units : kUnits) {
    if (units.compute_capability == h.compute_capability)
      peaks.flops_per_s = operations_of(units, dtype) * h.num_multiprocessors * h.sm_hz;
  }
  return peaks;
}

Peaks peaks_of(const Context& context, const Calibration& c, Dtype dtype) {
  const Peaks measured{c.mem_bw_bytes_per_s, flops_rate(c, dtype, false)};
  if (context.device().type == DeviceType::cpu) {
    // A CPU's peaks are unknown: the measured rate is one, which may vary by a tenth.
    constexpr double kUnsteady = 1.2;
    return {kUnsteady * measured.mem_bw_bytes_per_s, kUnsteady * measured.flops_per_s};
  }
  Peaks peaks = peaks_of(hardware_of(context), dtype);
  const auto correct = [](double& peak, double rate) {
    if (peak > 0) peak = std::max(peak, rate);
  };
  correct(peaks.mem_bw_bytes_per_s, measured.mem_bw_bytes_per_s);
  correct(peaks.flops_per_s, measured.flops_per_s);
  return peaks;
}

}  // namespace wide::bench
