// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/inspect/occupancy.hpp"

#include <algorithm>
#include <utility>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr int64_t kWarp = 32, kMaxRegisters = 255;

int64_t rounded_up(int64_t value, int64_t portion) {
  return (value + portion - 1) / portion * portion;
}

/// A scheduler holds only whole warps, and a block's warps are distributed over the schedulers.
int64_t blocks_by_registers(int64_t registers, int64_t warps, const SmLimits& limits) {
  if (registers > kMaxRegisters) return 0;
  if (registers == 0) return limits.blocks;
  const int64_t of_warp = rounded_up(registers * kWarp, limits.register_portion);
  if (of_warp * rounded_up(warps, limits.schedulers) > limits.registers_of_block) return 0;
  const int64_t held = limits.registers / limits.schedulers / of_warp * limits.schedulers;
  return held / warps;
}

int64_t blocks_by_shared(const KernelUse& kernel, const SmLimits& limits) {
  const int64_t asked = kernel.static_shared_bytes + kernel.dynamic_shared_bytes;
  if (asked > limits.shared_bytes_of_block) return 0;
  return limits.shared_bytes / rounded_up(asked + limits.shared_reserved, limits.shared_portion);
}

}  // namespace

std::optional<SmLimits> sm_limits(int compute_capability) {
  SmLimits limits;
  if (compute_capability == 80) {
    limits.shared_bytes = 164 << 10;
    limits.shared_bytes_of_block = 163 << 10;
  } else if (compute_capability == 90) {
    limits.shared_bytes = 228 << 10;
    limits.shared_bytes_of_block = 227 << 10;
  } else {
    return std::nullopt;
  }
  return limits;
}

Occupancy occupancy_of(const KernelUse& kernel, const SmLimits& limits) {
  int64_t threads = kernel.block.empty() ? 0 : 1;
  for (const int64_t extent : kernel.block) threads *= extent;
  if (threads <= 0) throw Error(ErrorCode::invalid_argument, "occupancy: a block without threads");
  const int64_t warps = (threads + kWarp - 1) / kWarp;
  Occupancy o;
  o.by_threads = limits.threads / kWarp / warps;
  o.by_blocks = limits.blocks;
  o.by_shared = blocks_by_shared(kernel, limits);
  if (kernel.registers) o.by_registers = blocks_by_registers(*kernel.registers, warps, limits);
  const std::pair<const char*, std::optional<int64_t>> bounds[] = {{"registers", o.by_registers},
                                                                   {"shared memory", o.by_shared},
                                                                   {"threads", o.by_threads},
                                                                   {"blocks", o.by_blocks}};
  o.blocks = o.by_blocks;
  for (const auto& [name, bound] : bounds) o.blocks = std::min(o.blocks, bound.value_or(o.blocks));
  for (const auto& [name, bound] : bounds) {
    if (bound == o.blocks) o.limited_by.emplace_back(name);
  }
  o.pct =
      100.0 * static_cast<double>(o.blocks * warps * kWarp) / static_cast<double>(limits.threads);
  return o;
}

}  // namespace wide::bench
